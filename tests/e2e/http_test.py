"""Arms of backend http against a server of known behaviour.

usage: http_test.py ASSAY
"""

import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from program import ProgramTest, lives, rows_of, until

HERE = pathlib.Path(__file__).parent
# Each model's rows in prefill and in decoding: status and class.
OK = ("ok", "")
FATES = {
    "steady": (OK, OK), "boasts": (OK, OK), "role_first": (OK, OK), "pairs": (OK, ("false_success", "coarse_events")),
    "cached": (("false_success", "prompt_cached"),) * 2,
    "short": (("false_success", "other_token_count"),) * 2,
    "uncounted": (("false_success", "no_token_count"),) * 2,
    "silent": (("false_success", "no_token"),) * 2,
    "error": (OK, ("error", "server_error")), "cut": (OK, ("error", "stream_cut")),
    "malformed": (OK, ("error", "malformed_answer")), "stall": (OK, ("timeout", "server_stalled")),
    "busy": (("error", "http_503"),) * 2, "elsewhere": (("error", "redirect"),) * 2,
}
# A site that answers every question with its one page.
SITE = """
import http.server, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = pathlib.Path("index.html").read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
site = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(site.server_address[1])
site.serve_forever()
"""
# These fail before their prompts are known: one of words is counted first.
UNPREPARED = {"uncounted", "busy", "elsewhere"}


def listening(argv, env=None):
    """The server's process and address, with which a line of its output ends. Its error output isn't in the same pipe: that might
    write into the address, and nobody reads on."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env)
    for line in process.stdout:
        if found := re.search(r"\blistening on (https?://[\d.]+:\d+)\n", line):
            return process, found[1]
    raise AssertionError(f"{argv}: expected an address, found the end: {process.wait()}")


def study(arms, **changes):
    return {"name": "servers", "models": [{"path": "served", "name": "served"}], "arms": arms,
            "phases": ["prefill", "kv_decode"], "scenarios": [{"name": "words", "prompt_tokens": [20]}],
            "token_lengths": [5], "batch": [1], "repetitions": 3, "processes": 1, "warmup": 0, "timeout_s": 8} | changes


class Truth(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.program = pathlib.Path(sys.argv[1]).resolve()
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.server, cls.url = listening([sys.executable, HERE / "truth_server.py"])
        cls.arms = [{"name": name, "backend": "http", "api": "openai", "url": cls.url, "model": name} for name in FATES]
        (cls.folder / "truth.yaml").write_text(json.dumps(study(cls.arms)))
        cls.run_done = subprocess.run([cls.program, "run", "truth.yaml", "-o", "truth"], cwd=cls.folder, capture_output=True,
                                      text=True, timeout=300)
        with urllib.request.urlopen(cls.url + "/sent") as answer:
            cls.sent = json.load(answer)  # other tests ask the same server

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.server.wait()
        cls.server.stdout.close()
        cls.scratch.cleanup()

    def test_each_behaviour_is_the_row_that_it_should_be(self):
        for arm, fates in FATES.items():
            for phase, fate in zip(("prefill", "kv_decode"), fates):
                rows = rows_of(self.folder / "truth", arm=arm, phase=phase)
                self.assertEqual(len(rows), 3, f"{arm} {phase}: {self.run_done.stderr}")
                for row in rows:
                    found = (row["status"], row["error_class"])
                    if arm in UNPREPARED:  # by the request that counts, which is an error of the preparation
                        fate = ("error", fate[1])
                    self.assertEqual(found, fate, f"{arm} {phase}")

    def requests(self, arm, phase):
        for path in (self.folder / "truth" / "cells").iterdir():
            evidence = json.loads((path / "evidence.json").read_text())
            if f"-{arm}-" in path.name and f"-{phase}-" in path.name:
                return [one for one in evidence["reported"]["actual"]["requests"] if one["repetition"] is not None]
        raise AssertionError(f"no cell of {arm} {phase}")

    def test_first_tokens_and_steps_are_those_that_were_sent(self):
        sent = [one["at"] for one in self.sent if one["model"] == "steady"]
        decoded = [times for times in sent if len(times) == 6]
        measured = [one["token_events_us"] for one in self.requests("steady", "kv_decode")]
        self.assertEqual(len(decoded), len(measured), "one request a repetition")
        gaps = [abs((times[i + 1] - times[i]) / 1e6 - (us[i + 1] - us[i]) / 1e3)
                for times, us in zip(decoded, measured) for i in range(5)]
        # A step is 10 ms; e2e.load has the bound for a machine that does nothing else.
        self.assertLess(statistics.median(gaps), 5, f"ms between what was sent and what was measured: {gaps}")
        for row in rows_of(self.folder / "truth", arm="steady", phase="prefill"):
            self.assertGreaterEqual(float(row["latency_ms"]), 30, "a token can't come before it is sent")
        for row in rows_of(self.folder / "truth", arm="steady", phase="kv_decode"):
            self.assertGreaterEqual(float(row["latency_ms"]), 5 * 10 * 0.9)

    def test_no_prompt_begins_as_another_did(self):
        prompts = [one["prompt"] for one in self.sent if one["model"] == "steady"]
        self.assertEqual(len(prompts), 7, "one that counts, three of each phase")
        begun = {tuple(prompt.split()[:10]) for prompt in prompts}
        self.assertEqual(len(begun), len(prompts), "a cache of prefixes finds none of them")

    def test_the_first_request_of_a_kind_is_cold(self):
        for phase in ("prefill", "kv_decode"):
            cold = [row["cold"] for row in rows_of(self.folder / "truth", arm="steady", phase=phase)]
            self.assertEqual(cold, ["true", "false", "false"], phase)

    def test_both_clocks_stand_on_the_row_of_every_phase(self):
        arms = [one for one in self.arms if one["name"] in ("steady", "boasts")]
        (self.folder / "clocks.yaml").write_text(json.dumps(study(arms, phases=["prefill", "kv_decode", "e2e_kv"], repetitions=6)))
        self.succeed("run", "clocks.yaml", "-o", "clocks")
        for row in rows_of(self.folder / "clocks"):
            where = (row["arm"], row["phase"])
            if row["arm"] == "steady":
                self.assertEqual((row["server_ms"], row["latency_ms"]), ("", row["client_ms"]), where)
                continue
            expected = {"prefill": 10, "kv_decode": 50 / 3, "e2e_kv": 10 + 50 / 3}[row["phase"]]
            self.assertAlmostEqual(float(row["server_ms"]), expected, 5, where)
            self.assertEqual(row["latency_ms"], row["client_ms" if row["phase"] == "e2e_kv" else "server_ms"], where)
            self.assertGreater(float(row["client_ms"]), 2 * expected, where)
        found = json.loads(self.succeed("analyze", "clocks", "-o", "json"))["findings"]
        named = {(one["arm"], one["phase"]): one["text"] for one in found if one["kind"] == "clocks_disagree"}
        self.assertEqual(set(named), {("boasts", phase) for phase in ("prefill", "kv_decode", "e2e_kv")})
        self.assertTrue(named["boasts", "e2e_kv"].endswith("figures here are the client's"), named)
        self.assertTrue(named["boasts", "prefill"].endswith("figures here are the server's"), named)
        self.succeed("verify", "clocks")

    def test_a_role_is_no_token(self):
        for row in rows_of(self.folder / "truth", arm="role_first", phase="prefill"):
            self.assertGreaterEqual(float(row["latency_ms"]), 30, "the role's chunk came at once")

    def test_the_key_stands_in_no_file(self):
        arm = {"name": "keyed", "backend": "http", "api": "openai", "url": self.url, "model": "steady",
               "api_key_env": "ASSAY_SERVER_KEY"}
        leaky = arm | {"name": "leaky", "model": "leaky"}
        (self.folder / "keyed.yaml").write_text(json.dumps(study([arm, leaky], repetitions=2)))
        subprocess.run([self.program, "run", "keyed.yaml", "-o", "keyed"], cwd=self.folder, capture_output=True, timeout=120,
                       env={**os.environ, "ASSAY_SERVER_KEY": "s3cr3t-k3y"})
        self.assertEqual({row["status"] for row in rows_of(self.folder / "keyed", arm="keyed")}, {"ok"})
        self.assertEqual({row["error_class"] for row in rows_of(self.folder / "keyed", arm="leaky")}, {"http_400"})
        for path in (self.folder / "keyed").rglob("*"):
            if path.is_file():
                self.assertNotIn(b"s3cr3t-k3y", path.read_bytes(), path)

    def test_a_server_that_wants_a_key_and_time_to_load_is_waited_for(self):
        start = [sys.executable, str(HERE / "truth_server.py"), "{port}"]
        arm = {"name": "locked", "backend": "http", "api": "openai", "model": "steady", "start": start,
               "env": {"TRUTH_KEY": "s3cr3t-k3y", "TRUTH_LOADING": "3"}, "api_key_env": "ASSAY_SERVER_KEY"}
        (self.folder / "locked.yaml").write_text(json.dumps(study([arm], repetitions=2)))
        done = subprocess.run([self.program, "run", "locked.yaml", "-o", "locked"], cwd=self.folder, capture_output=True,
                              text=True, timeout=120, env={**os.environ, "ASSAY_SERVER_KEY": "s3cr3t-k3y"})
        self.assertEqual({row["status"] for row in rows_of(self.folder / "locked")}, {"ok"}, done.stderr)

    def test_a_kill_of_the_program_ends_the_server_and_all_that_it_started(self):
        for wrapper in ([], ["setsid"]):  # the server in a session of its own, too
            family = self.folder / "family"
            family.unlink(missing_ok=True)
            arm = {"name": "long", "backend": "http", "api": "openai", "model": "steady", "env": {"TRUTH_FAMILY": str(family)},
                   "start": [*wrapper, sys.executable, str(HERE / "truth_server.py"), "{port}"]}
            (self.folder / "long.yaml").write_text(json.dumps(study([arm], repetitions=1000)))
            bundle = self.folder / f"long{len(wrapper)}"
            run = subprocess.Popen([self.program, "run", "long.yaml", "-o", bundle], cwd=self.folder, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
            until(lambda: bundle.exists() and len(rows_of(bundle)) > 2)
            pids = [int(one) for one in family.read_text().split()]
            self.assertEqual([lives(pid) for pid in pids], [True, True])
            run.send_signal(signal.SIGKILL)
            run.wait()
            until(lambda: not any(lives(pid) for pid in pids))

    def test_a_server_that_runs_already_isnt_taken_for_the_one_to_start(self):
        arm = {"name": "taken", "backend": "http", "api": "openai", "model": "steady", "url": self.url,
               "start": [sys.executable, str(HERE / "truth_server.py"), self.url.rsplit(":", 1)[1]]}
        (self.folder / "taken.yaml").write_text(json.dumps(study([arm], repetitions=2)))
        done = self.assay("run", "taken.yaml", "-o", "taken")
        self.assertEqual({row["status"] for row in rows_of(self.folder / "taken")}, {"error"}, done.stderr)
        said = "".join(path.read_text() for path in (self.folder / "taken" / "cells").glob("*/evidence.json"))
        self.assertIn("before the server starts there, found one that answers", said)

    def test_arms_without_ids_are_compared(self):
        (self.folder / "two.yaml").write_text(json.dumps(study(
            [self.arms[0], self.arms[0] | {"name": "again"}], phases=["prefill"], processes=5, repetitions=10)))
        self.succeed("run", "two.yaml", "-o", "two")
        found = json.loads(self.succeed("analyze", "two", "-o", "json"))
        self.assertEqual([one["verdict"] != "void" for one in found["contrasts"] if one["arm"] == "again"][:1], [True])

    def test_tokens_of_prompts_are_counted(self):
        for request in self.requests("steady", "prefill"):
            self.assertEqual(request["prompt_tokens"], 20, "19 words, and one token that the server adds")

    def test_bench_needs_no_study_and_says_what_is_wrong_in_one_line(self):
        shown = self.succeed("bench", "--server", self.url, "--model", "steady", "-p", "16", "-n", "4", "-r", "5")
        self.assertRegex(shown, r"openai +pp16 ")
        self.assertRegex(shown, r"openai +tg4 @ d32 ")
        self.assertIn("openai", self.succeed("probe", "--server", self.url))
        self.assert_refused(["bench", "--server", self.url, "--model", "none"], "found steady, role_first")
        self.assert_refused(["bench", "--server", "127.0.0.1:80"], "expected http://HOST")
        self.assert_refused(["bench", "--server", self.url, "--api-key-env", "ASSAY_NO_SUCH_KEY"], "ASSAY_NO_SUCH_KEY")
        self.assert_refused(["bench", "--server", self.url + "/elsewhere"], "found status 404", "the address of a server's API")
        self.assert_refused(["bench", "--server", self.url, "--api", "ollama"], "found status 404", "leave the API out")
        self.assert_refused(["bench", "--server", self.url.replace("http:", "https:")], "TLS server", "or http://")
        self.assert_refused(["bench", "--server", "http://no.such.machine.invalid"], "no.such.machine.invalid", "--server")
        gone = self.assay("bench", "--server", "http://127.0.0.1:1")
        self.assertEqual((gone.returncode, gone.stdout), (3, ""))
        self.assertRegex(gone.stderr, r"\Aassay: expected a server at http://127.0.0.1:1, found none: [^\n]+\n\Z")

    def test_a_site_of_pages_is_no_server_of_models(self):
        (self.folder / "index.html").write_text("<html><body>" + "welcome " * 100 + "</body></html>")
        site = subprocess.Popen([sys.executable, "-u", "-c", SITE], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (site.kill(), site.wait(), site.stdout.close()))
        said = self.assert_refused(["bench", "--server", f"http://127.0.0.1:{site.stdout.readline().strip()}"],
                                   "<html><body>welcome", "the address of a server's API")
        self.assertLess(len(said), 400)

    def test_a_server_that_wants_a_key_says_so_where_it_lacks_one(self):
        server, url = listening([sys.executable, HERE / "truth_server.py"], env={**os.environ, "TRUTH_KEY": "s3cr3t-k3y"})
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stdout.close()))
        asked = ["bench", "--server", url, "--model", "steady", "-p", "16", "-n", "0", "-r", "5"]
        self.assert_refused(asked, "found status 401", "Invalid API Key", "--api-key-env")
        for key, status in (("wrong", 2), ("s3cr3t-k3y", 0)):
            done = subprocess.run([self.program, *asked, "--api-key-env", "ASSAY_SERVER_KEY"], cwd=self.folder, timeout=120,
                                  env={**os.environ, "ASSAY_SERVER_KEY": key}, capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual("the server's key into the variable ASSAY_SERVER_KEY" in done.stderr, status == 2, done.stderr)

    def test_tls_trusts_the_named_certificate_and_no_other(self):
        certificate, key = self.folder / "certificate.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key], check=True, capture_output=True)
        server, url = listening([sys.executable, HERE / "truth_server.py", "0", certificate, key])
        try:
            asked = ["bench", "--server", url, "--model", "steady", "-p", "16", "-n", "0", "-r", "5"]
            self.assertIn("pp16", self.succeed(*asked, "--tls-ca", certificate))
            self.assert_refused(asked, "trusted certificate", "--tls-ca")
            self.assert_refused(["bench", "--server", url.replace("https:", "http:")], "https://")
            self.assert_refused([*asked, "--tls-ca", "nowhere.pem"], "nowhere.pem")
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_a_server_that_is_started_for_an_arm_and_dies_is_a_crash_with_its_log(self):
        arm = {"name": "mortal", "backend": "http", "api": "openai", "model": "crash",
               "start": [sys.executable, str(HERE / "truth_server.py"), "{port}"]}
        (self.folder / "mortal.yaml").write_text(json.dumps(study([arm], repetitions=2)))
        self.assay("run", "mortal.yaml", "-o", "mortal")
        prefills = rows_of(self.folder / "mortal", phase="prefill")
        self.assertEqual({row["status"] for row in prefills}, {"ok"})
        for row in rows_of(self.folder / "mortal", phase="kv_decode"):
            self.assertEqual((row["status"], row["error_class"]), ("crash", "SIGSEGV"))
        logs = "".join(path.read_text() for path in (self.folder / "mortal" / "cells").glob("*/stderr.log"))
        self.assertIn("listening on http://127.0.0.1:", logs)


class Ollama(ProgramTest):
    def test_its_figures_are_told_at_the_end_or_not_at_all(self):
        self.program = pathlib.Path(sys.argv[1]).resolve()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        server, url = listening([sys.executable, HERE / "ollama_truth.py"])
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stdout.close()))
        arms = [{"name": name, "backend": "http", "url": url, "model": name}
                for name in ("steady", "terse", "cached", "uncounted", "tires")]
        (self.folder / "ollama.yaml").write_text(json.dumps(study(arms, token_lengths=[40], repetitions=2)))
        done = self.assay("run", "ollama.yaml", "-o", "ollama")
        with urllib.request.urlopen(url + "/prompts") as answer:
            begun = [tuple(prompt.split()[:10]) for prompt in json.load(answer)]
        self.assertEqual(len(set(begun)), len(begun), "its cache is always on, and finds no prompt")
        for phase, own_ms, client_ms in (("prefill", 15, 30), ("kv_decode", 200, 400)):
            fates = {"steady": OK, "terse": OK, "cached": ("false_success", "prompt_cached"),
                     "uncounted": ("error", "no_token_count"),  # its words can't be told to be as many tokens
                     # Without a key against it the server stops where a model repeats itself.
                     "tires": OK if phase == "prefill" else ("false_success", "other_token_count")}
            for arm, fate in fates.items():
                rows = rows_of(self.folder / "ollama", arm=arm, phase=phase)
                self.assertEqual({(row["status"], row["error_class"]) for row in rows}, {fate}, f"{arm} {phase} {done.stderr}")
            for row in rows_of(self.folder / "ollama", arm="steady", phase=phase):
                self.assertEqual((float(row["server_ms"]), float(row["latency_ms"])), (own_ms, own_ms))
                self.assertGreaterEqual(float(row["client_ms"]), client_ms * 0.9)
            for row in rows_of(self.folder / "ollama", arm="terse", phase=phase):
                self.assertEqual((row["server_ms"], row["latency_ms"]), ("", row["client_ms"]))
        (evidence,) = {path.parent: json.loads(path.read_text()) for path in
                       (self.folder / "ollama" / "cells").glob("*-steady-*-prefill-*/evidence.json")}.values()
        facts = evidence["reported"]["actual"]["server"]
        self.assertEqual((facts["server"], facts["version"], facts["quantization"]), ("ollama", "0.12.6", "Q4_K_M"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
