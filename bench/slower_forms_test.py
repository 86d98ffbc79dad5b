"""The verdicts of slower_forms on rows made up here, and its exit status with a program that prints them."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import slower_forms
from slower_forms import Form, forms_of, verdict


def row(arm, ratio=None, low=None, high=None, lost=0, **test):
    return {"arm": arm, "n_prompt": 128, "n_gen": 0, "batch": 1, "avg_ns": 2e6, "ratio": ratio, "ratio_low": low, "ratio_high": high,
            "lost": lost, **test}


def form(ratio, low, high, lost=0):
    return Form("m", "fp32", "pp", 128, 1, 1, ratio or 0, ratio, low, high, lost)


class SlowerForms(unittest.TestCase):
    def test_a_form_is_judged_by_its_interval(self):
        self.assertEqual(verdict(form(0.9, 0.8, 1.4)), "PASS")
        self.assertEqual(verdict(form(1.25, 1.2, 1.3)), "PASS")
        self.assertEqual(verdict(form(1.3, 1.26, 1.4)), "SLOWER")
        self.assertEqual(verdict(form(1.3, 1.1, 1.5)), "OPEN")
        self.assertEqual(verdict(form(1.3, None, None)), "OPEN")
        self.assertEqual(verdict(form(None, None, None)), "LOST")
        self.assertEqual(verdict(form(0.9, 0.8, 1.0, lost=1)), "LOST")

    def test_a_form_is_a_test_with_both_arms(self):
        rows = [row("eager"), row("compiled", 0.5, 0.4, 0.6), row("eager", n_prompt=0, n_gen=16, batch=4, lost=2),
                row("compiled", n_prompt=0, n_gen=16, batch=4)]
        prompt, decode = forms_of("m", "bf16", rows)
        self.assertEqual((prompt.name(), prompt.ratio, prompt.low, prompt.high, prompt.eager_ms), ("pp128", 0.5, 0.4, 0.6, 2.0))
        self.assertEqual((decode.name(), decode.lost, verdict(decode)), ("tg16 b4", 2, "LOST"))

    def run_on(self, answers):
        """Its status and text where the program prints these, one after the other."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            for number, rows in enumerate(answers):
                (place / f"{number}.json").write_text(json.dumps(rows))
            program = place / "assay"
            program.write_text(f"#!/bin/sh\ncd {folder}\nfor f in ?.json; do cat $f; rm $f; break; done\n")
            program.chmod(0o755)
            arguments, sys.argv = sys.argv, ["slower_forms", "--build", folder, "--models", "m", "--types", "fp32"]
            text = io.StringIO()
            try:
                with contextlib.redirect_stdout(text):
                    status = slower_forms.main()
            finally:
                sys.argv = arguments
            return status, text.getvalue(), len(list(place.glob("?.json")))

    def test_the_exit_status_is_1_above_the_bar(self):
        status, text, _ = self.run_on([[row("eager"), row("compiled", 0.9, 0.8, 1.0)]])
        self.assertEqual((status, text.splitlines()[-1]), (0, "PASS"))
        status, text, _ = self.run_on([[row("eager"), row("compiled", 3.6, 3.4, 3.8)]])
        self.assertEqual((status, text.splitlines()[-1]), (1, "BELOW: 1 forms"))
        self.assertRegex(text, r"m +fp32 +pp128 .* 3\.600 \[3\.400, 3\.800\] +1\.25  SLOWER")

    def test_an_open_form_is_measured_again(self):
        unsure = [row("eager"), row("compiled", 1.4, 0.9, 1.9)]
        status, _, left = self.run_on([unsure, [row("eager"), row("compiled", 1.0, 0.9, 1.1)], unsure])
        self.assertEqual((status, left), (0, 1))
        status, text, left = self.run_on([unsure, unsure, unsure, unsure])
        self.assertEqual((status, left), (1, 1), text)


if __name__ == "__main__":
    unittest.main()
