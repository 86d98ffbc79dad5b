"""Arms with weights of their own (`quantization`): parity within the same weights, quality beside speed, and refusals.

usage: quantization_test.py ASSAY
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from program import STUDY, ProgramTest, quick_compiler, rows_of


class Quantization(ProgramTest):
    program = pathlib.Path(sys.argv[1]).resolve()

    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.folder = pathlib.Path(made.name)
        for arguments in (["make", "tiny-llama", "-o", "model"], ["make", "tiny-gpt2", "-o", "other"],
                          ["quantize", "model", "-t", "q8_0", "-o", "q8.gguf"], ["quantize", "model", "-t", "q4_0", "-o", "q4.gguf"]):
            subprocess.run([cls.program, "model", *arguments], cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)

    def study(self, name, arms, **changes):
        (self.folder / f"{name}.yaml").write_text(json.dumps(STUDY | {"name": name, "phases": ["kv_decode"], "arms": [
            {"name": arm, "backend": "native", "cache": "static", "threads": 1} | keys for arm, keys in arms.items()]} | changes))
        return f"{name}.yaml"

    def test_speed_and_quality_stand_side_by_side(self):
        self.enterContext(unittest.mock.patch.dict("os.environ", ASSAY_CXX=quick_compiler(self.folder),
                                                   ASSAY_KERNEL_CACHE=str(self.folder / "kernels")))
        study = self.study("both", {"full": {"mode": "eager"}, "q8": {"mode": ["eager", "compiled"], "quantization": "q8.gguf"},
                                    "q4": {"mode": "eager", "quantization": "q4.gguf"}},
                           quality={"windows": 4, "window": 32}, repetitions=10, processes=5)
        screen = self.succeed("run", study, "-o", "both")
        parity, quality = {}, {}
        for cell in (self.folder / "both" / "cells").iterdir():
            arm = json.loads((cell / "evidence.json").read_text())
            name = next(row["arm"] for row in rows_of(self.folder / "both", cell_id=cell.name))
            parity[name] = json.loads((cell / "parity.json").read_text())
            quality[name] = arm.get("quality")
            weights = arm["reported"].get("weights")
            self.assertEqual(weights and weights["formats"], {"fu": None, "q8": "q8_0", "q4": "q4_0+q8_0"}[name[:2]])
            if weights:
                self.assertTrue({"q8": 8, "q4": 4.4}[name[:2]] < weights["bits_a_weight"] < {"q8": 12, "q4": 8}[name[:2]], weights)
        self.assertEqual({arm: (one["baseline_arm"], one["passed"]) for arm, one in parity.items()},
                         {"full": ("full", True), "q8-eager": ("q8-eager", True), "q8-compiled": ("q8-eager", True), "q4": ("q4", True)})
        self.assertIsNone(quality["full"])
        self.assertEqual(quality["q8-eager"], quality["q8-compiled"])
        self.assertEqual((quality["q4"]["windows"], quality["q4"]["positions"]), (4, 4 * 15))
        self.assertGreater(quality["q4"]["kl_mean"]["value"], 3 * quality["q8-eager"]["kl_mean"]["value"])
        self.assertGreater(quality["q8-eager"]["kl_mean"]["value"], 0)
        # The same command by hand gives the same figures.
        by_hand = json.loads(self.succeed("model", "quality", "q4.gguf", "--reference", "model", "--windows", 4, "--window", 32,
                                          "--threads", 1, "--seed", 42, "--reference-dtype", "fp32", "-o", "json"))
        self.assertEqual(by_hand, quality["q4"])
        # Every verdict beside the baseline states both.
        self.assertRegex(screen, r"(?m)^.*q4 \(KL [0-9.e-]+\)")
        report = (self.folder / "both" / "report.md").read_text()
        self.assertIn("Quality of weights that aren't the model's own", report)
        found = json.loads(self.succeed("analyze", "both", "-o", "json"))
        self.assertEqual([one["arm"] for one in found["qualities"]], ["q8-eager", "q8-compiled", "q4"])
        unlike = [one for one in found["findings"] if one["kind"] == "unlike_precision"]
        self.assertEqual({one["arm"] for one in unlike}, {"q8-eager", "q8-compiled", "q4"})
        for one in unlike:
            self.assertIn("nats a token", one["text"])
        self.assertEqual({one["arm"] for one in found["contrasts"]}, {"q8-eager", "q8-compiled", "q4"}, "all are contrasted")
        self.succeed("verify", "both")

    def test_quality_is_not_measured_where_nobody_wants_it(self):
        study = self.study("fast", {"full": {"mode": "eager"}, "q8": {"mode": "eager", "quantization": "q8.gguf"}}, quality=False)
        self.succeed("run", study, "-o", "fast")
        found = json.loads(self.succeed("analyze", "fast", "-o", "json"))
        self.assertNotIn("qualities", found)

    def test_another_quantisation_is_another_identity(self):
        for name, weights in (("as8", "q8.gguf"), ("as4", "q4.gguf")):
            study = self.study(name, {"one": {"mode": "eager", "quantization": weights}}, quality=False)
            self.succeed("run", study, "-o", name)
        self.assert_refused(["compare", "as8", "as4"], "quantization of one: expected \"Q8_0\", found \"Q4_0\"")
        self.assertRegex(self.succeed("compare", "as8", "as4", "--vary", "quantization"), "quantization")

    def test_it_refuses_in_one_line(self):
        for name, keys, message in (("absent", {"quantization": "none.gguf"}, "none.gguf"),
                                    ("another", {"quantization": "other"}, "expected a llama as the model is, found a gpt2"),
                                    ("two", {"quantization": ["q8.gguf", "q4.gguf"]}, "quantization")):
            study = self.study(name, {"one": {"mode": "eager"} | keys})
            self.assert_refused(["plan" if name == "two" else "run", study, *([] if name == "two" else ["-o", name])], message)
        self.assert_refused(["plan", self.study("none", {"one": {"mode": "eager"}}, quality={"windows": 4})], "quantization")
        self.assert_refused(["plan", self.study("word", {"one": {"mode": "eager", "quantization": "q8.gguf"}}, quality="much")], "quality")
        self.assert_refused(["plan", self.study("zero", {"one": {"mode": "eager", "quantization": "q8.gguf"}}, quality={"windows": 0})],
                            "windows")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
