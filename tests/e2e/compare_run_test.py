"""`assay compare --run`: two programs side by side in one bundle, what it says of them, and what it refuses.

usage: compare_run_test.py ASSAY SLOWER      SLOWER: the program with a decode that takes 1.8 times as long
"""

import json
import pathlib
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of
from resume_test import write_checkpoint

PROCESSES, REPETITIONS = 6, 48


class CompareRun(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    slower = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-compare-run-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)
        arm = {"name": "eager", "backend": "native", "mode": "eager", "cache": "static", "threads": 1}
        self.study = self.write_study(arms=[arm], phases=["prefill", "kv_decode"], token_lengths=[24],
                                      repetitions=REPETITIONS, processes=PROCESSES)

    def run_both(self, cand, *arguments):
        return self.assay("compare", "--run", self.program, cand, self.study, "--bundle", "bundle", *arguments)

    def test_a_slower_decode_is_found_and_the_prefill_is_not_blamed(self):
        # The two programs' code lies elsewhere too, which makes up to a tenth of a prefill of 50 us.
        margin = ["--margin", "25%", "--fail-on-regression", "-o", "json"]
        done = self.run_both(self.slower, *margin)
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(done.stdout)
        cells = {cell["phase"]: cell for cell in found["cells"]}
        self.assertTrue(cells["kv_decode"]["regression"], cells)
        self.assertGreater(cells["kv_decode"]["typical_call"]["ratio"], 1.4, "1.8 on a machine that does nothing else")
        self.assertFalse(cells["prefill"]["regression"], cells)
        self.assertEqual(cells["kv_decode"]["judged_by"], "pairs of processes")
        self.assertTrue(found["in_one_run"])

        bundle = self.folder / "bundle"
        self.succeed("verify", bundle)
        again = self.assay("compare", bundle, *margin)
        self.assertEqual((again.returncode, again.stdout), (1, done.stdout), "the bundle tells the same")
        self.assertEqual(self.assay("compare", bundle, "--margin", "99%", "--fail-on-regression").returncode, 0)
        shown = self.succeed("compare", bundle)
        self.assertIn(f"candidate: {self.slower}", shown)
        self.assertIn("warning: slower: eager on kv_decode", shown)
        # Where something else computed meanwhile, typical calls alone may say so: the mean has any sign then.
        self.assertRegex(shown, r"(?m)^kv_decode .* \S+ % +\[.+\] % +\+\d+\.\d+ % +SLOW", "means and typical calls")
        self.assertRegex(self.succeed("compare", bundle, "--full"), r"\S+ % +\[.+\] % +\+\d+\.\d+ % +\[.+\] % .* SLOW",
                         "each with its interval")

    def test_a_side_that_loses_every_row_fails_without_being_asked(self):
        # It answers once, to the parity check, and dies whenever it is to measure.
        dying = self.folder / "dying"
        dying.write_text(f"#!/bin/sh\necho >> {self.folder}/starts\n[ $(wc -l < {self.folder}/starts) -gt 1 ] && kill -9 $$\n"
                         f"exec {self.program} \"$@\"\n")
        dying.chmod(0o755)
        done = self.run_both(dying)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FAILS: lost: every row of the candidate was lost", done.stdout)

    def test_the_bundle_says_which_program_served_which_side(self):
        self.assertIn(self.run_both(self.slower).returncode, (0, 1))
        bundle = self.folder / "bundle"
        manifest = json.loads((bundle / "manifest.json").read_text())
        self.assertEqual(manifest["study"]["sides"], {"base": str(self.program), "cand": str(self.slower)})
        arms = json.loads((bundle / "environment.json").read_text())["arms"]
        programs = [arms[f"eager@{side}"]["program"] for side in ("base", "cand")]
        self.assertEqual([program["path"] for program in programs], [str(self.program), str(self.slower)])
        self.assertNotEqual(*(program["sha256"] for program in programs))
        builds = [manifest["identity"]["arms"][f"eager@{side}"]["framework_build"] for side in ("base", "cand")]
        self.assertEqual(builds, [f"program {program['sha256'][:12]}" for program in programs])

        rows = sorted(rows_of(bundle, cold="false"), key=lambda row: int(row["order_index"]))
        self.assertEqual(len(rows), 2 * 2 * REPETITIONS)
        first = {"eager@base": 0, "eager@cand": 0}
        for one, other in zip(rows[::2], rows[1::2]):
            self.assertEqual({one["arm"], other["arm"]}, set(first), "neighbours are a pair")
            for column in ("phase", "repetition", "block", "process", "prompt_id"):
                self.assertEqual(one[column], other[column])
            first[one["arm"]] += 1
        self.assertEqual(*first.values(), "either side goes first as often")

    def test_what_cant_run_or_be_paired_is_refused_before_anything_is_measured(self):
        self.assert_refused(["compare", "--run", self.program, self.study], "expected two programs and a study")
        missing = self.run_both(self.folder / "nobody")
        self.assertEqual(missing.returncode, 3, missing.stderr)
        self.assertIn("arm \"eager@cand\"", missing.stderr)
        self.assertIn("nobody", missing.stderr)
        own = {"name": "own", "backend": "native", "mode": "eager", "cache": "static", "program": str(self.program)}
        study = self.write_study("own.yaml", arms=[own])
        self.assert_refused(["compare", "--run", self.program, self.slower, study], "expected no key", "program")
        self.assert_refused(["compare", "--run", self.program, self.slower, self.study, "--history", "."], "--history")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["model", "own.yaml", "study.yaml"])

    def test_an_arm_may_name_its_program_without_sides(self):
        arm = {"name": "other", "backend": "native", "mode": "eager", "cache": "static", "threads": 1,
               "program": str(self.slower)}
        study = self.write_study("named.yaml", arms=[arm])
        self.succeed("run", study, "-o", "named")
        environment = json.loads((self.folder / "named/environment.json").read_text())
        self.assertEqual(environment["arms"]["other"]["program"]["path"], str(self.slower))


if __name__ == "__main__":
    unittest.main()
