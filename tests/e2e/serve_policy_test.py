"""`assay serve --policy`: from a measured policy to rules that serve, give way and say so.

usage: serve_policy_test.py ASSAY
"""

import concurrent.futures
import contextlib
import csv
import json
import os
import pathlib
import re
import signal
import sys
import time
import unittest
import urllib.request

from program import lives
from serve_test import ServeTest

SHORT, LONG, NEW = 5, 40, 8


class ServePolicy(ServeTest):
    def setUp(self):
        super().setUp()
        bundle, self.policy = self.folder / "b", self.folder / "policy.yaml"
        self.succeed("bench", "tiny-llama", "--arms", "eager,compiled", "-p", f"{SHORT},{LONG}", "-n", NEW, "-d", LONG, "-r", 8, "--save", bundle)
        self.succeed("route", bundle, "-o", self.policy)
        # Rules whose arms don't depend on this machine's noise.
        head, _, rules = self.policy.read_text().partition("rules:\n")
        self.axes = head
        triggers = '    triggers:\n      - {on: p99_ms, allowed: 2, limit_ms: LIMIT, source: "a test"}\n      - {on: lost_row, allowed: 0, source: "a test"}\n'
        self.rules = "".join(
            f'  - model: "tiny-llama"\n    phase: {phase}\n    batch: 1\n{fresh}    prompt_tokens: [{LONG}, {LONG}]\n'
            f'    arm: "compiled"\n    fallback: "eager"\n{triggers}'
            for phase, fresh in (("prefill", ""), ("kv_decode", f"    new_tokens: {NEW}\n")))
        self.assertIn("kv_decode", rules)

    def write(self, limit_ms, axes=None):
        self.policy.write_text((axes or self.axes) + "rules:\n" + self.rules.replace("LIMIT", str(limit_ms)) +
                               'not_measured:\n  - "all of e2e_kv"\n')

    def served(self, url):
        """Requests by rule, phase and way."""
        metrics = self.ask(url, "/metrics")[1]
        return {match.group(1, 2, 3): int(match[4]) for match in
                re.finditer(r'assay_route_requests_total\{rule="(\d)",phase="(\w+)",served="(\w+)"\} (\d+)', metrics)}

    def assert_served(self, url, expected):
        restarts = {("1", "prefill", "restart"): 0, ("2", "kv_decode", "restart"): 0}
        self.assertEqual(self.served(url), expected | restarts)

    def test_rules_serve_what_they_cover(self):
        self.write(limit_ms=60000)
        url = self.serve("--policy", self.policy)
        long = self.completion(url, [7] * LONG, NEW)["choices"][0]["text"]
        self.completion(url, [7] * SHORT, NEW)
        self.completion(url, [7] * LONG, NEW + 1)  # its prompt alone is covered
        self.assertIn("assay_requests_running 0\n", self.ask(url, "/metrics")[1])
        self.assert_served(url, {("1", "prefill", "rule"): 2, ("1", "prefill", "fallback"): 0,
                                 ("2", "kv_decode", "rule"): 1, ("2", "kv_decode", "fallback"): 0})
        self.process.terminate()
        self.process.wait(60)
        plain = self.serve()
        self.assertEqual(self.completion(plain, [7] * LONG, NEW)["choices"][0]["text"], long)

    def test_a_trigger_sends_later_requests_to_the_fallback_and_says_so(self):
        self.write(limit_ms=0.000001)
        log = self.folder / "switches.csv"
        url = self.serve("--policy", self.policy, "--policy-log", log)
        texts = {self.completion(url, [7] * LONG, NEW)["choices"][0]["text"] for _ in range(5)}
        self.assertEqual(len(texts), 1, "both arms give the same tokens")
        self.assert_served(url, {("1", "prefill", "rule"): 3, ("1", "prefill", "fallback"): 2,
                                 ("2", "kv_decode", "rule"): 3, ("2", "kv_decode", "fallback"): 2})
        self.assertIn('assay_route_switched{rule="2",trigger="p99_ms"} 1', self.ask(url, "/metrics")[1])
        with open(log, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["rule"], row["from"], row["to"], row["trigger"], row["requests"]) for row in rows],
                         [(rule, "compiled", "eager", "p99_ms", "3") for rule in "12"])
        self.assertEqual(rows[1]["shape"], f"kv_decode, batch 1, {NEW} new tokens, prompts of {LONG}")
        self.process.terminate()
        said = self.process.communicate(timeout=60)[1]
        self.assertIn(f"policy   rule 1 (prefill, batch 1, prompts of {LONG}) gives way after 3 requests: compiled -> eager, by p99_ms", said)

    def test_a_crash_and_a_hang_of_the_engine_fall_back_and_lose_nothing(self):
        self.write(limit_ms=60000)
        url = self.serve("--policy", self.policy, "--call-timeout", "5")
        text = self.completion(url, [7] * LONG, NEW)["choices"][0]["text"]
        for number, starts in ((signal.SIGSEGV, 2), (signal.SIGSTOP, 3)):
            self.until_rest(url)
            (engine,) = self.engines()
            os.kill(engine, number)
            self.assertEqual(self.completion(url, [7] * LONG, NEW)["choices"][0]["text"], text)
            self.assertFalse(lives(engine))
            self.until_rest(url)
            self.assertEqual(self.counted(url, "starts_total"), {"compiled": starts, "eager": starts - 1})
        self.assertNotRegex(self.ask(url, "/metrics")[1], r"assay_route_switched\{[^}]*\} 1", "no row is lost")
        (last,) = self.engines()
        self.process.terminate()
        said = self.process.communicate(timeout=60)[1]
        self.assertIn("engine   expected an answer, found the end of its process (SIGSEGV); ", said)
        self.assertIn("engine   expected an answer, found none within 5 s; ", said)
        self.assertEqual(said.count("engine   goes on operator by operator after "), 2)
        self.assertEqual(said.count("engine   compiled again after "), 2)
        self.assertFalse(lives(last), "it ends with the server")

    def test_requests_are_served_while_what_is_compiled_starts(self):
        self.write(limit_ms=60000)
        url = self.serve("--policy", self.policy)
        wishes = [([7] * LONG, NEW), ([7] * SHORT, NEW), ([9] * SHORT, 3 * LONG)]
        texts = [self.completion(url, *wish)["choices"][0]["text"] for wish in wishes]
        starting = self.held_start(url, wishes[1], texts[1])
        before = self.served(url)
        self.assertEqual([self.completion(url, *wish)["choices"][0]["text"] for wish in wishes], texts)
        self.assertEqual(self.counted(url, "ready"), {"compiled": 0, "eager": 1})
        after = self.served(url)
        for rule in (("1", "prefill"), ("2", "kv_decode")):  # of the first wish
            self.assertEqual(after[*rule, "restart"], before[*rule, "restart"] + 1)
            self.assertEqual(after[*rule, "rule"], before[*rule, "rule"])
        os.kill(starting, signal.SIGCONT)
        self.until_rest(url)
        self.assertEqual(self.engines(), [starting], "the one that stood in has ended")
        self.completion(url, *wishes[0])
        self.assertEqual(self.served(url)["2", "kv_decode", "rule"], before["2", "kv_decode", "rule"] + 1)
        # A stream in whose midst its process ends.
        for _ in range(50):
            self.until_rest(url)
            pieces = self.stream(url, *wishes[2], at_first=lambda: os.kill(self.engines()[0], signal.SIGKILL))
            self.assertEqual("".join(pieces), texts[2])
            if "assay_engine_restored_tokens_total 0\n" not in self.ask(url, "/metrics")[1]:
                break
        self.assertNotIn("assay_engine_restored_tokens_total 0\n", self.ask(url, "/metrics")[1])
        self.assertIn("assay_engine_lost 0\n", self.ask(url, "/metrics")[1])

    def held_start(self, url, wish, text):
        """Ends the engine; stops the process with what is compiled before it is ready."""
        for _ in range(20):
            self.until_rest(url)
            (ended,) = self.engines()
            os.kill(ended, signal.SIGKILL)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = pool.submit(self.completion, url, *wish)
                while len(started := [engine for engine in self.engines() if engine != ended]) < 2:
                    time.sleep(0.001)
                starting = started[1]
                os.kill(starting, signal.SIGSTOP)
                self.assertEqual(answer.result()["choices"][0]["text"], text)
            # A token's call takes what is ready by then.
            self.assertEqual(self.completion(url, *wish)["choices"][0]["text"], text)
            if self.counted(url, "ready")["compiled"] == 0:
                return starting
            os.kill(starting, signal.SIGCONT)
        self.fail("expected it to be stopped in its start")

    def stream(self, url, prompt, tokens, at_first):
        body = {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True}
        pieces, last = [], b""
        with urllib.request.urlopen(url + "/v1/completions", json.dumps(body).encode(), timeout=60) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    pieces.append(json.loads(line[6:])["choices"][0]["text"])
                    if len(pieces) == 1:
                        at_first()
                last = line.strip() or last
        self.assertEqual(last, b"data: [DONE]")
        return pieces

    def until_rest(self, url):
        """Waits for the compiled process, and until no slot is anybody's: a request leaves its slot behind its answer's end."""
        while self.counted(url, "ready") != {"compiled": 1, "eager": 0} or self.counted(url, "slots") != {"compiled": 0, "eager": 0}:
            time.sleep(0.01)

    def counted(self, url, name):
        """A figure of the engine's processes."""
        return {process: int(value) for process, value in
                re.findall(rf'assay_engine_{name}{{process="(\w+)"}} (\d+)', self.ask(url, "/metrics")[1])}

    def engines(self):
        """The processes of the server's engine that live, in the order of their starts."""
        found = []
        for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # of a thread or a process that has ended
                for number in path.read_text().split():
                    status = pathlib.Path(f"/proc/{number}/status").read_text()
                    if status.startswith("Name:\tassay engine\n") and "State:\tZ" not in status:
                        found.append(int(number))
        return found

    def test_a_policy_for_something_else_is_refused(self):
        for before, after, words in (('axis: "framework_build", value: "', 'axis: "framework_build", value: "x', "policy: framework_build: expected "),
                                     ('arms.eager.dtype", value: "fp32', 'arms.eager.dtype", value: "bf16', 'policy: arm "eager": dtype: expected fp32'),
                                     ('model_sha256.tiny-llama", value: "', 'model_sha256.tiny-llama", value: "f', "policy: model_sha256.tiny-llama: expected ")):
            self.assertIn(before, self.axes)
            self.write(1, self.axes.replace(before, after))
            self.assert_refused(["serve", "tiny-llama", "--port", "0", "--policy", self.policy], words)
        self.write(1)
        self.assert_refused(["serve", "tiny-llama", "--port", "0", "--policy", self.policy, "--policy-log", self.folder / "no" / "x.csv"], "x.csv")
        self.assert_refused(["serve", "tiny-llama", "--port", "0", "--policy", self.folder / "b" / "study.yaml"], "study.yaml")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
