"""Questions that people bring, each answered by one command whose first five lines hold the answer.

usage: questions_test.py ASSAY
"""

import json
import pathlib
import re
import sys
import tempfile
import unittest

from import_compare_test import llama_bench
from program import ProgramTest
from resume_test import write_checkpoint


class Questions(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="assay-questions-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        write_checkpoint(cls.folder / "model", 1)
        arms = [{"name": mode, "backend": "native", "mode": mode, "cache": "static", "threads": 1} for mode in ("eager", "compiled")]
        test = cls("answers")
        study = test.write_study(arms=arms, phases=["prefill", "kv_decode"], repetitions=30, processes=5, token_lengths=[8],
                                 scenarios=[{"name": f"p{tokens}", "prompt_tokens": [tokens]} for tokens in (5, 9, 17)])
        for bundle in ("base", "candidate"):
            test.succeed("run", study, "-o", bundle)

    def answers(self, *command, status=(0,)):
        """The command's first five lines, as one."""
        done = self.assay(*command)
        self.assertIn(done.returncode, status, done.stderr)
        return " ".join(" ".join(done.stdout.splitlines()[:5]).split())

    VERDICT = r"compiled is (faster than|slower than|as fast as|undecided against) eager.*?\(.+? \[.+?\]"

    def test_is_compiled_faster_than_eager_and_how_sure(self):
        for command in (["bench", "model", "-p", "9", "-n", "8", "-t", "1"], ["analyze", "base"]):
            self.assertRegex(self.answers(*command), "Prefill: " + self.VERDICT)

    def test_how_many_tokens_a_second(self):
        self.assertRegex(self.answers("bench", "model", "-p", "9", "-n", "0", "-t", "1"), r"eager takes [\d.]+ ms \[.+?\], \d+ tokens/s")

    def test_did_my_commit_make_it_slower(self):
        said = self.answers("compare", "base", "candidate")
        self.assertRegex(said, r"^passes: (No cell is missing.*(shown to be slower|these are slower)|nothing is demanded, but slower: )")

    def test_is_it_slower_than_what_i_tolerate(self):
        # Two runs of one program, of which a busy machine may slow one down by more than that.
        self.assertRegex(self.answers("compare", "base", "candidate", "--margin", "95%", "--fail-on-regression", status=(0, 1)),
                         r"^(passes|FAILS): .*slower.* by more than 95 %")

    def test_why_is_p99_high(self):
        said = self.answers("analyze", "base", "--slow-calls")
        self.assertRegex(said, r"p99 takes|the slowest call takes|No call is slow")
        self.assertRegex(said, r"(of \d+ calls (is|are) slow \(above [\d.]+ ms\): \d+ )|none lies beyond")

    def test_how_does_time_grow_with_the_prompt_and_the_depth(self):
        self.assertRegex(self.answers("bench", "model", "-p", "4,8,16", "-n", "0", "-t", "1"),
                         r"Prefill by prompt tokens, 4, 8, 16 \(4 times\): eager [\d., ]+ ms \([\d.]+ times\)")
        self.assertRegex(self.answers("bench", "model", "-p", "0", "-n", "4", "-d", "2,8", "-t", "1"),
                         r"Decode by prompt tokens, 2, 8 \(4 times\): eager [\d., ]+ ms \([\d.]+ times\)")
        self.assertRegex(self.answers("bench", "model", "-p", "0", "-n", "4", "-b", "1,4", "-t", "1"),
                         r"Decode by sequences in a batch, 1, 4 \(4 times\): eager [\d., ]+ ms \([\d.]+ times\)")

    def test_which_mode_do_i_ship(self):
        self.assertRegex(self.answers("route", "base"), r"\d+ rules, \d+ of them abstains?; .* is safe on every stratum")

    def test_how_fast_is_this_command(self):
        self.assertRegex(self.answers("probe", "-r", "3", "--", "sleep", "0.02"),
                         r"^mean of 3 invocations: [\d.]+ s, 95 % interval \[[\d.]+, [\d.]+\]")

    def test_is_my_llama_bench_file_of_yesterday_better_than_todays(self):
        for day, slower in (("yesterday", 1.0), ("today", 1.25)):
            (self.folder / f"{day}.json").write_text(json.dumps(llama_bench(slower)))
        said = self.answers("compare", "yesterday.json", "today.json")
        self.assertRegex(said, r"prefill slower, 1\.25 \[[\d.]+, [\d.]+\] of the base's time; kv_decode slower, 1\.25 \[")
        self.assertIn("what changed on the machine between is in this ratio", said)

    def test_did_anything_void_the_result(self):
        self.assertRegex(self.answers("gate", "base", status=(0, 1)), r"^(pass|not decided|FAIL): .*gates?")


if __name__ == "__main__":
    unittest.main()
