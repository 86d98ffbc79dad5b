"""The ready studies of the record's phenomena, scaled down to a checkpoint of one layer, name them by themselves.

Which findings appear on which arm is checked, never how long anything takes. A recompile takes hundreds of milliseconds, a
tiny model's step less than one; a machine may stall for as long, so the rows say which findings about tails to expect.

usage: paradox_test.py ASSAY STUDIES [full]      full: the studies as they are, on the models they name

Most of the time goes into compiling graphs, so the scaled studies have four lengths, and a recompile limit of three graphs
where it is to be hit. paradox-variable is paradox-dynamic's `compiled-false` beside eager, and runs with `full` alone.
"""

import json
import os
import re
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from program import ProgramTest, only_where, quick_compiler, recompile_tail
from resume_test import write_checkpoint

ASSAY, STUDIES = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FULL = sys.argv[3:] == ["full"]
del sys.argv[1:]
ABOUT_COMPILATION = {"recompile_tail", "tail_collapse", "no_recompile_tail", "recompile_limit", "fallback",
                     "label_only", "unproven_compiler", "stable_compile"}


class Paradoxes(ProgramTest):
    program = ASSAY

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-paradox-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        if not FULL:
            self.enterContext(unittest.mock.patch.dict(os.environ, ASSAY_CXX=quick_compiler(self.folder)))

    def scaled(self, name):
        """The study with fewer lengths and repetitions of a tiny model, unless it is to be run in full."""
        text = (STUDIES / f"{name}.yaml").read_text()
        model = re.search(r"path: (models/([\w.-]+))", text)
        if FULL:
            self.succeed("model", "make", model[2], "-o", self.folder / model[1])
        else:
            write_checkpoint(self.folder / model[1], 1)
            for key, value in (("repetitions", "24"), ("warmup", "1")):
                text, replaced = re.subn(rf"^{key}: \d+", f"{key}: {value}", text, flags=re.M)
                self.assertEqual(replaced, 1, key)
            text = re.sub(r"^token_lengths: .*", "token_lengths: [16]", text, flags=re.M)
            text = text.replace("scenarios: [single_short]", "scenarios: [{name: short, prompt_tokens: 8}]")
            text = text.replace("dynamic: false,\n     kernel_cache", "dynamic: false, recompile_limit: 3,\n     kernel_cache")
            text = re.sub(r"(prompt_tokens: \[(?:\d+, ){3}\d+)[^\]]*", r"\1", text)
        path = self.folder / "study.yaml"
        path.write_text(text)
        return path

    def findings_of(self, name):
        """Kinds about compilation by arm, and everything that the analysis found."""
        self.succeed("run", self.scaled(name), "-o", self.folder / "bundle")
        found = json.loads(self.succeed("analyze", self.folder / "bundle", "-o", "json"))
        self.succeed("verify", self.folder / "bundle")
        kinds = {arm: set() for arm in found["study"]["arms"]}
        for finding in found["findings"]:
            if finding["kind"] in ABOUT_COMPILATION:
                kinds[finding["arm"]].add(finding["kind"])
        return kinds, found

    def tail(self, found, arm):
        (tail,) = [tail for tail in found["tails"] if tail["arm"] == arm]
        return tail

    def collapse(self, found, arm, recompiling):
        """Findings due on the tail of an arm without recompiles beside one that has them."""
        height = {one: self.tail(found, one)["high_ms"] / self.tail(found, one)["p50_ms"] for one in (arm, recompiling)}
        if not recompile_tail(self.tail(found, recompiling)):
            return {"no_recompile_tail"} if self.tail(found, arm)["execution"] == "compiled" else set()
        return {"tail_collapse"} if height[arm] <= height[recompiling] / 2 else set()

    @only_where(FULL)  # paradox-dynamic has the same arm
    def test_variable_lengths_recompile_in_every_slow_sample(self):
        kinds, found = self.findings_of("paradox-variable")
        self.check_recompiling(kinds, found, "compiled")

    def check_recompiling(self, kinds, found, arm):
        tail = self.tail(found, arm)
        self.assertEqual(kinds["eager"], self.collapse(found, "eager", arm))
        self.assertEqual(kinds[arm], recompile_tail(tail))
        self.assertGreaterEqual(tail["slow_recompiled"], 3 if FULL else 2, "lengths that neither preparation nor a warm-up met")
        self.assertEqual(tail["slow_recompiled"], tail["recompiled"], "every recompile is slow")
        self.assertEqual(tail["ran_eager"], 0)
        for text in (finding["text"] for finding in found["findings"] if finding["kind"] == "recompile_tail"):
            self.assertRegex(text, r"worst: .* at \d+ tokens \(guard q_len: expected .*, found \d+\)")

    def test_padding_collapses_the_tail(self):
        kinds, found = self.findings_of("paradox-padded")
        self.assertEqual(kinds, {"eager": set(), "compiled": {"stable_compile", "no_recompile_tail"}})
        self.assertEqual(self.tail(found, "compiled")["recompiled"], 0)

    def test_symbolic_lengths_collapse_the_tail(self):
        kinds, found = self.findings_of("paradox-dynamic")
        self.check_recompiling(kinds, found, "compiled-false")
        for arm in ("compiled-true", "compiled-auto"):
            self.assertEqual(kinds[arm], {"stable_compile"} | self.collapse(found, arm, "compiled-false"), arm)
            self.assertIsNotNone(self.tail(found, arm)["p50_ratio_interval"])

    def test_decode_over_a_growing_cache_hits_the_limit_and_over_a_static_one_stays(self):
        kinds, found = self.findings_of("paradox-decode")
        self.assertEqual(kinds["compiled-dynamic"], {"recompile_limit", "fallback"})
        self.assertEqual(kinds["compiled-static"], {"stable_compile"})
        self.assertEqual(self.tail(found, "compiled-dynamic")["execution"], "fell back")
        (decision,) = found["decisions"]
        self.assertIn("compiled-dynamic", [left["arm"] for left in decision["left_out"]])
        self.assertNotEqual(decision["arm"], "compiled-dynamic")


if __name__ == "__main__":
    unittest.main()
