"""`assay serve --policy`: from a measured policy to rules that serve, give way and say so.

usage: serve_policy_test.py ASSAY
"""

import csv
import os
import pathlib
import re
import signal
import sys
import unittest

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

    def test_rules_serve_what_they_cover(self):
        self.write(limit_ms=60000)
        url = self.serve("--policy", self.policy)
        long = self.completion(url, [7] * LONG, NEW)["choices"][0]["text"]
        self.completion(url, [7] * SHORT, NEW)
        self.completion(url, [7] * LONG, NEW + 1)  # its prompt alone is covered
        self.assertIn("assay_requests_running 0\n", self.ask(url, "/metrics")[1])
        self.assertEqual(self.served(url), {("1", "prefill", "rule"): 2, ("1", "prefill", "fallback"): 0,
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
        self.assertEqual(self.served(url), {("1", "prefill", "rule"): 3, ("1", "prefill", "fallback"): 2,
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
            engine = self.engine()
            os.kill(engine, number)
            self.assertEqual(self.completion(url, [7] * LONG, NEW)["choices"][0]["text"], text)
            self.assertIn(f"assay_engine_starts_total {starts}\n", self.ask(url, "/metrics")[1])
            self.assertFalse(lives(engine))
        self.assertNotRegex(self.ask(url, "/metrics")[1], r"assay_route_switched\{[^}]*\} 1", "no row is lost")
        last = self.engine()
        self.process.terminate()
        said = self.process.communicate(timeout=60)[1]
        self.assertIn("engine   expected an answer, found the end of its process (SIGSEGV)\n", said)
        self.assertIn("engine   expected an answer, found none within 5 s\n", said)
        self.assertFalse(lives(last), "it ends with the server")

    def engine(self):
        """The process of the server's engine."""
        lists = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        (only,) = " ".join(path.read_text() for path in lists).split()
        return int(only)

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
