"""Tests the output of `assay run` in each format: the findings as `assay analyze` prints them, in JSON with the run itself.

usage: run_output_test.py ASSAY
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of
from resume_test import write_checkpoint

CELLS = 4  # two arms, two phases
STUDY = {"phases": ["prefill", "kv_decode"], "repetitions": 12, "processes": 3}
ROWS = CELLS * (12 + 3)  # a warm-up of each process


class RunOutput(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-output-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)

    def expect_analysis_of(self, bundle):
        """Checks the files that a run leaves with any output format, and gives its findings."""
        self.assertTrue((bundle / "report.html").exists())
        self.assertTrue((bundle / "report.md").exists())
        self.assertTrue(list((bundle / "plots").glob("*.svg")))
        self.succeed("verify", bundle)
        return json.loads((bundle / "analysis" / "findings.json").read_text())

    def test_json_has_the_run_and_all_its_findings(self):
        done = self.assay("run", self.write_study(**STUDY), "-o", "bundle", "--output-format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(list(said), ["schema_version", "bundle", "rows", "rows_by_status", "sitting", "answers", "findings"])
        self.assertEqual(said["bundle"], "bundle")
        self.assertEqual((said["rows"], said["rows_by_status"]), (ROWS, {"ok": ROWS}))
        self.assertEqual(said["sitting"]["number"], 1)
        self.assertEqual((said["sitting"]["first_row"], said["sitting"]["rows"]), (0, ROWS))
        self.assertIn("100 %", done.stderr, "progress")
        self.assertEqual(said["findings"], self.expect_analysis_of(self.folder / "bundle"))
        analyzed = json.loads(self.succeed("analyze", "bundle", "-o", "json"))
        self.assertEqual(analyzed.pop("answers"), said["answers"])
        self.assertEqual(said["findings"], analyzed)
        self.assertEqual(len(said["findings"]["latencies"]), CELLS)

    def test_csv_and_markdown_are_those_of_the_analysis(self):
        for format in ("csv", "md"):
            bundle = f"bundle-{format}"
            printed = self.succeed("run", self.write_study(**STUDY), "-o", bundle, "--output-format", format)
            self.expect_analysis_of(self.folder / bundle)
            self.assertEqual(printed, self.succeed("analyze", bundle, "-o", format))

    def test_a_second_sitting_is_named(self):
        study = self.write_study(**{**STUDY, "repetitions": 600})
        bundle = self.folder / "bundle"
        run = subprocess.Popen([self.program, "run", study, "-o", bundle, "--output-format", "json"], cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while run.poll() is None and not any(len(path.read_text().splitlines()) > 20 for path in bundle.glob("*/metrics.csv")):
            pass
        run.send_signal(signal.SIGINT)
        printed = run.communicate()[0]
        self.assertEqual((run.returncode, printed), (130, ""), "a part of a run has no findings yet")
        said = json.loads(self.succeed("run", study, "-o", bundle, "--resume", "--output-format", "json"))
        everything = len(rows_of(bundle))
        self.assertEqual((said["rows"], sum(said["rows_by_status"].values())), (everything, everything))
        self.assertEqual(said["sitting"]["number"], 2)
        self.assertGreater(said["sitting"]["first_row"], 0)
        self.assertEqual(said["sitting"]["first_row"] + said["sitting"]["rows"], everything)


if __name__ == "__main__":
    unittest.main()
