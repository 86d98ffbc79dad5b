"""The torch worker itself, killed once while it handles each kind of message: the run goes on, nothing hangs, and what
was measured before stays.

usage: torch_loss_test.py ASSAY SOURCE [full]      exit 77 where there is no torch environment

Without `full` two kinds of message, one within the timing and one behind it, and the empty model in the model's place:
a process of it takes half the time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, made_by, rows_of

ASSAY, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
FULL = sys.argv[3:] == ["full"]
del sys.argv[1:]
FOLDER = Path()  # scratch, made below
ENVIRONMENT = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
KINDS = ["measure", "parity", *(["load", "prepare", "profile", "evidence", "shutdown"] if FULL else [])]
STUDY = {
    "name": "torch-loss", "models": [{"arch": "tiny-gpt2", "dtype": "fp32"}],
    "arms": [{"name": kind, "backend": "torch", "mode": "eager", "cache": "dynamic", "device": "cpu",
              "threads": 1 + place} for place, kind in enumerate(KINDS)],
    "baseline": "measure", "phases": ["prefill", "kv_decode"], "scenarios": [{"name": "one", "prompt_tokens": [8]}],
    "token_lengths": [4], "repetitions": 3, "processes": 1, "warmup": 1, "order": "sequential", "parity": "after",
    "timeout_s": 300,  # were a death not seen, rows would be `timeout`
}
LOST = {  # (phase, repetition) of the rows that go with the process
    "load": [("prefill", n) for n in (-1, 0, 1, 2)],
    "prepare": [("prefill", n) for n in (-1, 0, 1, 2)],
    "measure": [("kv_decode", n) for n in (1, 2)],  # at its seventh row; the four of prefill are committed
}


def run_study():
    worker = FOLDER / "workers" / "torch"
    shutil.copytree(SOURCE / "workers" / "torch", worker, ignore=shutil.ignore_patterns("tests"))
    shutil.copy(SOURCE / "tests" / "e2e" / "torch_loss_worker.py", worker / "worker.py")
    (FOLDER / "marks").mkdir()
    (FOLDER / "study.yaml").write_text(json.dumps(STUDY))
    environment = ENVIRONMENT | {
        "ASSAY_WORKERS": str(FOLDER / "workers"),
        "ASSAY_LOSS_NOOP": "" if FULL else "yes", "ASSAY_LOSS_KINDS": " ".join(KINDS),
        "ASSAY_LOSS_MARKS": str(FOLDER / "marks")}
    return subprocess.run([ASSAY, "run", "study.yaml", "-o", "bundle", "--profile"], cwd=FOLDER, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200)


class TorchLoss(ProgramTest):
    program = ASSAY

    @classmethod
    def setUpClass(cls):
        cls.folder = FOLDER
        cls.done = run_study()

    def rows(self, arm):
        return rows_of(FOLDER / "bundle", arm=arm)

    def records(self, arm, name):
        """The arm's records of that name, by phase."""
        return {row["phase"]: json.loads((FOLDER / "bundle" / "cells" / row["cell_id"] / name).read_text())
                for row in self.rows(arm)}

    def test_the_run_comes_to_its_end(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.succeed("verify", FOLDER / "bundle")
        self.assertEqual(sorted(os.listdir(FOLDER / "marks")), sorted(KINDS), "each was killed")

    def test_only_the_unit_under_way_is_lost(self):
        for kind in KINDS:
            rows = self.rows(kind)
            self.assertEqual(len(rows), 2 * 4, kind)
            lost = [row for row in rows if row["status"] != "ok"]
            self.assertEqual([(row["phase"], int(row["repetition"])) for row in lost], LOST.get(kind, []), kind)
            for row in lost:
                # "oom" where the kernel counts an out-of-memory kill meanwhile
                self.assertIn(row["status"], ("crash", "oom"))
                self.assertEqual(row["error_class"], "SIGKILL")
            for phase, evidence in self.records(kind, "evidence.json").items():
                classes = [failure["class"] for failure in evidence["failures"]]
                self.assertEqual(classes, ["SIGKILL"] if phase in dict(LOST.get(kind, [])) else [], (kind, phase))

    def test_what_is_asked_after_timing_says_who_was_killed(self):
        for kind in KINDS:
            for phase, parity in self.records(kind, "parity.json").items():
                self.assertIs(parity["passed"], kind != "parity", (kind, phase))
                self.assertEqual(parity["error"] and parity["error"]["class"], "SIGKILL" if kind == "parity" else None)
            for phase, evidence in self.records(kind, "evidence.json").items():
                if evidence["profile"].get("skipped"):
                    self.assertIn((kind, phase), [("load", "prefill"), ("prepare", "prefill")], evidence["profile"])
                    continue
                died = (kind, phase) == ("profile", "prefill")  # the first that it was asked for
                self.assertEqual(evidence["profile"].get("error", {}).get("class"), "SIGKILL" if died else None)


if __name__ == "__main__":
    ENVIRONMENT["ASSAY_TORCH_PYTHON"] = made_by("torch-env")[-1]
    with tempfile.TemporaryDirectory(prefix="assay-torch-loss-") as scratch:
        FOLDER = Path(scratch)
        unittest.main()
