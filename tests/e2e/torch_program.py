"""Helpers of the tests of whole studies with torch arms: runs in the environment of scripts/torch-env, and their records.

A test's first two arguments are ASSAY and SOURCE; `main` ends it with 77 where there is no torch environment.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, made_by, rows_of

ASSAY, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
ENVIRONMENT = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
for unset in ("ASSAY_TORCH_PYTHON_A", "ASSAY_TORCH_PYTHON_B", "ASSAY_TORCH_PYTHON_C", "CXX"):
    ENVIRONMENT.pop(unset, None)


class TorchProgram(ProgramTest):
    """`runs` has what each study's run ended with, by the name of its bundle; made once by `run_all`."""

    program = ASSAY
    runs: dict

    @classmethod
    def setUpClass(cls):
        cls.runs = cls.run_all()

    @classmethod
    def call(cls, *arguments, program=ASSAY, **variables):
        return subprocess.run([str(program), *map(str, arguments)], cwd=cls.folder, env=ENVIRONMENT | variables,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3500)

    @classmethod
    def run_study(cls, name, study, *flags, **variables):
        if isinstance(study, dict):
            path = cls.folder / f"{name}.yaml"
            path.write_text(json.dumps(study))
            study = path
        return cls.call("run", study, "-o", cls.folder / name, *flags, **variables)

    def succeed_with(self, *arguments, **variables):
        done = self.call(*arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def rows(self, name, **wanted):
        return rows_of(self.folder / name, **wanted)

    def evidence(self, name, arm, **wanted):
        """The evidence of every cell of the arm."""
        cells = {row["cell_id"] for row in self.rows(name, arm=arm, **wanted)}
        self.assertTrue(cells, f"{name} has no rows of {arm}")
        return [json.loads((self.folder / name / "cells" / cell / "evidence.json").read_text()) for cell in sorted(cells)]

    def counters(self, name, arm, **wanted):
        (evidence,) = self.evidence(name, arm, **wanted)
        return evidence["reported"]["counters"]

    def findings(self, name, status=0):
        done = self.call("analyze", self.folder / name, "-o", "json")
        self.assertEqual(done.returncode, status, done.stderr)
        found = json.loads(done.stdout)
        return found, {(finding["kind"], finding["arm"]) for finding in found["findings"]}

    def assert_one_output(self, name):
        """Every arm gives the same output every time."""
        hashes = {}
        for row in self.rows(name, status="ok"):
            key = tuple(row[k] for k in ("model", "phase", "scenario", "prompt_id", "batch", "new_tokens"))
            hashes.setdefault(key, set()).add(row["output_hash"])
        for key, found in hashes.items():
            self.assertEqual(len(found), 1, f"{name} {key}: {found}")


def main():
    ENVIRONMENT["ASSAY_TORCH_PYTHON"] = made_by("torch-env")[-1]
    with tempfile.TemporaryDirectory(prefix="assay-torch-test-") as scratch:
        TorchProgram.folder = Path(scratch)
        ENVIRONMENT["TORCHINDUCTOR_CACHE_DIR"] = f"{scratch}/inductor"
        unittest.main(argv=sys.argv[:1])
