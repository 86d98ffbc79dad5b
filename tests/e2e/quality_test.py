"""`assay model quality`: a model beside itself, in another type, and another model; and how it refuses.

usage: quality_test.py ASSAY
"""

import csv
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest


class Quality(ProgramTest):
    program = pathlib.Path(sys.argv[1]).resolve()

    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.folder = pathlib.Path(made.name)
        for name, architecture, seed in (("a", "tiny-llama", 0), ("b", "tiny-llama", 1)):
            subprocess.run([cls.program, "model", "make", architecture, "-o", name, "--seed", str(seed)], cwd=cls.folder, check=True,
                           stdout=subprocess.DEVNULL)
        (cls.folder / "text.txt").write_text("The phase of the moon decides when the tide turns. " * 60)

    def quality(self, *arguments):
        return json.loads(self.succeed("model", "quality", *arguments, "-o", "json"))

    def test_a_model_is_itself(self):
        for text in ([], ["--text", "text.txt"]):
            found = self.quality("a", "--reference", "a", "--window", 32, "--windows", 4, *text)
            self.assertEqual((found["windows"], found["positions"]), (4, 4 * 15))
            self.assertEqual(found["kl_mean"]["value"], 0)
            self.assertEqual(found["same_choice"]["value"], 1)
            self.assertLess(found["same_choice"]["interval"][0], 1, "60 positions don't show that all agree")
            self.assertEqual(found["nll"], found["reference_nll"])

    def test_a_coarser_type_is_nearer_than_another_model(self):
        same = ["--reference", "a", "--window", 32, "--windows", 6, "--reference-dtype", "fp32"]
        coarse = self.quality("a", *same, "--dtype", "bf16")
        other = self.quality("b", *same, "--dtype", "fp32")
        self.assertGreater(coarse["kl_mean"]["value"], 0)
        self.assertGreater(other["kl_mean"]["value"], 10 * coarse["kl_mean"]["value"])
        for found in (coarse, other):
            for name in ("kl_mean", "kl_p99", "same_choice", "nll_change"):
                low, high = found[name]["interval"]
                self.assertTrue(low <= found[name]["value"] <= high, (name, found[name]))
            self.assertGreaterEqual(found["kl_p99"]["value"], found["kl_mean"]["value"])
            self.assertAlmostEqual(found["nll"]["value"] - found["reference_nll"]["value"], found["nll_change"]["value"])
        # Text that the reference drew is its own: another model finds it less likely.
        self.assertGreater(other["nll_change"]["value"], 0)
        self.assertEqual(coarse, self.quality("a", *same, "--dtype", "bf16"))

    def test_the_table_has_the_same_figures(self):
        asked = ["model", "quality", "b", "--reference", "a", "--window", 32, "--windows", 4]
        found = json.loads(self.succeed(*asked, "-o", "json"))
        shown = {row["figure"]: row["value"] for row in csv.DictReader(self.succeed(*asked, "-o", "csv").splitlines())}
        self.assertAlmostEqual(float(shown["kl_mean"]), found["kl_mean"]["value"], delta=1e-3 * found["kl_mean"]["value"])
        ratio = math.exp(found["nll_change"]["value"])
        self.assertAlmostEqual(float(shown["perplexity_ratio"]), ratio, delta=1e-3 * ratio)

    def test_logits_of_nan_are_no_figure(self):
        shutil.copytree(self.folder / "a", self.folder / "nan")
        path = self.folder / "nan" / "model.safetensors"
        weights = bytearray(path.read_bytes())
        weights[-4096:] = b"\xff" * 4096
        path.write_bytes(weights)
        for arguments in (["nan", "--reference", "a"], ["a", "--reference", "nan", "--text", "text.txt"]):
            done = self.assay("model", "quality", *arguments, "--window", 32, "--windows", 4)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("expected finite logits", done.stderr.splitlines()[-1])

    def test_it_refuses_in_one_line(self):
        for arguments, message in ((["a", "--reference", "a", "--text", "none.txt"], "none.txt"),
                                   (["a", "--reference", "a", "--text", "text.txt", "--window", 100000], "tokens for a window"),
                                   (["a", "--reference", "a", "--window", 100000], "positions"),
                                   (["a", "--reference", "nowhere"], "nowhere"),
                                   (["a", "--reference", "a", "--dtype", "int3"], "--dtype: expected fp32, fp16, bf16 or fp8, found"),
                                   (["a", "--reference", "a", "--dtype", "fp8"], "--dtype: expected --device cuda beside fp8, found cpu")):
            self.assert_refused(["model", "quality", *arguments], message)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
