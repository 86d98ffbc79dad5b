"""The ready studies of the record's phenomena, scaled down to a tiny checkpoint, name them by themselves.

Which findings appear on which arm is checked, never how long anything takes. A recompile takes hundreds of milliseconds, a
tiny model's step less than one; a machine may stall for as long, so the rows say which findings about tails to expect.

usage: paradox_test.py ASSAY STUDIES [full]      full: the studies as they are, on the models they name
"""

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, recompile_tail

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

    def scaled(self, name):
        """The study with fewer repetitions of a tiny model, unless it is to be run in full."""
        text = (STUDIES / f"{name}.yaml").read_text()
        model = re.search(r"path: (models/([\w.-]+))", text)
        architecture = model[2] if FULL else "tiny-gpt2"
        self.succeed("model", "make", architecture, "-o", self.folder / model[1])
        if not FULL:
            text, repeated = re.subn(r"^repetitions: \d+", "repetitions: 24", text, flags=re.M)
            self.assertEqual(repeated, 1)
            text = re.sub(r"^token_lengths: .*", "token_lengths: [16]", text, flags=re.M)
            text = re.sub(r"(prompt_tokens: \[(?:\d+, ){6}\d+)[^\]]*", r"\1", text)
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

    def test_variable_lengths_recompile_in_every_slow_sample(self):
        kinds, found = self.findings_of("paradox-variable")
        tail = self.tail(found, "compiled")
        self.assertEqual(kinds, {"eager": self.collapse(found, "eager", "compiled"), "compiled": recompile_tail(tail)})
        self.assertGreaterEqual(tail["slow_recompiled"], 3, "lengths that neither preparation nor a warm-up met")
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
        self.assertEqual(kinds["compiled-false"], recompile_tail(self.tail(found, "compiled-false")))
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
