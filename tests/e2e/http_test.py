"""Arms of backend http against a server of known behaviour, and against llama.cpp's real one with a trained model.

usage: http_test.py ASSAY
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from program import ProgramTest, rows_of

HERE = pathlib.Path(__file__).parent
# Each model's rows in prefill and in decoding: status and class.
OK = ("ok", "")
FATES = {
    "steady": (OK, OK), "role_first": (OK, OK), "pairs": (OK, ("false_success", "coarse_events")),
    "cached": (("false_success", "prompt_cached"),) * 2,
    "short": (("false_success", "other_token_count"),) * 2,
    "uncounted": (("false_success", "no_token_count"),) * 2,
    "silent": (("false_success", "no_token"),) * 2,
    "error": (OK, ("error", "server_error")), "cut": (OK, ("error", "stream_cut")),
    "malformed": (OK, ("error", "malformed_answer")), "stall": (OK, ("timeout", "server_stalled")),
    "busy": (("error", "http_503"),) * 2, "elsewhere": (("error", "redirect"),) * 2,
}
# These fail before their prompts are known: one of words is counted first.
UNPREPARED = {"uncounted", "busy", "elsewhere"}


def listening(argv):
    """The server's process and address."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if found := re.search(r"listening on (https?://\S+)", line):
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
        with urllib.request.urlopen(self.url + "/sent") as answer:
            sent = [one["at"] for one in json.load(answer) if one["model"] == "steady"]
        decoded = [times for times in sent if len(times) == 6]
        measured = [one["token_events_us"] for one in self.requests("steady", "kv_decode")]
        self.assertEqual(len(decoded), len(measured), "one request a repetition")
        gaps = [abs((times[i + 1] - times[i]) / 1e6 - (us[i + 1] - us[i]) / 1e3)
                for times, us in zip(decoded, measured) for i in range(5)]
        self.assertLess(statistics.median(gaps), 1, f"ms between what was sent and what was measured: {gaps}")
        for row in rows_of(self.folder / "truth", arm="steady", phase="prefill"):
            self.assertGreaterEqual(float(row["latency_ms"]), 30, "a token can't come before it is sent")
        for row in rows_of(self.folder / "truth", arm="steady", phase="kv_decode"):
            self.assertGreaterEqual(float(row["latency_ms"]), 5 * 10 * 0.9)

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

    def test_prompts_are_unique_and_their_tokens_counted(self):
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
        gone = self.assay("bench", "--server", "http://127.0.0.1:1")
        self.assertEqual((gone.returncode, gone.stdout), (3, ""))
        self.assertRegex(gone.stderr, r"\Aassay: expected a server at http://127.0.0.1:1, found none: [^\n]+\n\Z")

    def test_tls_trusts_the_named_certificate_and_no_other(self):
        certificate, key = self.folder / "certificate.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key], check=True, capture_output=True)
        server, url = listening([sys.executable, HERE / "truth_server.py", "0", certificate, key])
        try:
            asked = ["bench", "--server", url, "--model", "steady", "-p", "16", "-n", "0", "-r", "5"]
            self.assertIn("pp16", self.succeed(*asked, "--tls-ca", certificate))
            self.assert_refused(asked, "trusted certificate", "--tls-ca")
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


class LlamaCpp(ProgramTest):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([HERE.parents[1] / "scripts" / "server-env"], capture_output=True, text=True)
        if made.returncode != 0:
            raise unittest.SkipTest(f"no llama.cpp here: {made.stderr}")
        cls.python, cls.model = made.stdout.strip().splitlines()[-2:]
        cls.program = pathlib.Path(sys.argv[1]).resolve()
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_the_real_server_with_a_trained_model_is_started_measured_and_ended(self):
        arm = {"name": "llama.cpp", "backend": "http", "start": [self.python, str(HERE / "llama_server.py"), self.model, "1"]}
        (self.folder / "real.yaml").write_text(json.dumps(study(
            [arm], phases=["prefill", "kv_decode", "e2e_kv"], repetitions=2, timeout_s=300)))
        done = self.assay("run", "real.yaml", "-o", "real")
        rows = rows_of(self.folder / "real")
        self.assertEqual({row["status"] for row in rows}, {"ok"}, done.stderr)
        self.assertEqual({row["quantization"] for row in rows}, {"Q4_1"})
        self.assertEqual({row["cached_tokens_delta"] for row in rows}, {"0"}, "nothing comes from its cache")
        self.assertEqual(len(rows), 6)
        for row in rows:
            self.assertGreater(float(row["client_ms"]), 0)
            if row["phase"] == "e2e_kv":
                self.assertEqual(row["client_ms"], row["latency_ms"])
                self.assertLess(float(row["ttft_ms"]), float(row["latency_ms"]))
        (evidence, *_) = (self.folder / "real" / "cells").glob("*/evidence.json")
        actual = json.loads(evidence.read_text())["reported"]["actual"]
        self.assertEqual((actual["api"], actual["prompts"], actual["server"]["vocab_size"]), ("llama_server", "ids", 49152))
        self.succeed("verify", "real")
        running = subprocess.run(["pgrep", "-f", f"{HERE / 'llama_server.py'} {self.model} 1$"], capture_output=True, text=True).stdout
        self.assertEqual(running, "", "every server has ended")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
