"""The workflow of docs/comparing.md, "In a build", run with real files: its steps, their exit status and what they print.

usage: ci_test.py ASSAY SOURCE_ROOT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from program import ProgramTest
from resume_test import write_checkpoint


class Build(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    docs = pathlib.Path(sys.argv.pop(1)).resolve() / "docs" / "comparing.md"

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-ci-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)
        (self.folder / "studies").mkdir()
        self.study("ci", processes=5)

    def study(self, name, **keys):
        arm = {"name": "eager", "backend": "native", "mode": "eager", "cache": "static", "threads": 1}
        written = self.write_study(arms=[arm], phases=["prefill"], repetitions=10, **keys)
        (self.folder / written).rename(self.folder / "studies" / f"{name}.yaml")

    def steps(self):
        """The commands behind `run:` of the document's workflow."""
        workflow = re.search(r"```yaml\n(.*?)```", self.docs.read_text().split("## In a build")[1], re.S)[1]
        return re.findall(r"- run: (.+)", workflow)

    def run_step(self, command):
        (self.folder / "bin").mkdir(exist_ok=True)
        link = self.folder / "bin" / "assay"
        if not link.exists():
            link.symlink_to(self.program)
        environment = dict(os.environ, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}",
                           GITHUB_STEP_SUMMARY=str(self.folder / "summary.md"))
        return subprocess.run(command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600)

    def test_its_steps_run_as_they_stand(self):
        measure, annotate, junit = self.steps()
        self.assertEqual(self.run_step(measure.replace("candidate", "base")).returncode, 0)
        self.assertEqual(self.run_step(measure).returncode, 0)
        # Two runs of so small a model on a busy machine may differ, and their rows may show too little: the step says which.
        said = self.run_step(annotate)
        self.assertIn(said.returncode, (0, 1), said.stderr)
        lines = said.stdout.splitlines()
        self.assertTrue(all(re.match(r"::(error|notice) title=assay compare::", line) for line in lines), said.stdout)
        self.assertEqual("::notice" in lines[-1], said.returncode == 0, said.stdout)
        self.assertIn("## Verdict", (self.folder / "summary.md").read_text())
        self.assertIn(self.run_step(junit).returncode, (0, 1))
        suites = xml.etree.ElementTree.parse(self.folder / "speed.xml").getroot()
        self.assertEqual([suite.get("name") for suite in suites], ["prefill", "verdict"])
        self.assertEqual(suites[0][0].get("name"), "eager on prefill, model, 7 tokens")

    def test_a_build_that_judged_nothing_does_not_pass(self):
        self.study("ci", processes=1)
        measure, annotate, junit = self.steps()
        for bundle in ("base", "candidate"):
            self.assertEqual(self.run_step(measure.replace("candidate", bundle)).returncode, 0)
        said = self.run_step("assay compare base candidate --fail-on-regression -o github")
        self.assertEqual((said.returncode, said.stdout.count("::error title=assay compare::NOTHING JUDGED: ")), (1, 1), said.stdout)
        self.assertEqual(self.run_step("assay compare base candidate").returncode, 0, "nothing was demanded")
        self.assertEqual(self.run_step(annotate).returncode, 1)


if __name__ == "__main__":
    unittest.main()
