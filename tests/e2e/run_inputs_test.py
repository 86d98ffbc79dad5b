"""Tests the inputs that `assay run` refuses, and how it stops.

Every bad input ends with exit 2 and one line on stderr that names the object, before anything is
measured or written; Ctrl-C ends with 130 and leaves a bundle that --resume finishes.

usage: run_inputs_test.py ASSAY
"""

import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from resume_test import STUDY, children, rows, write_checkpoint

ASSAY = sys.argv.pop(1)


class RunInputs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-run-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)

    def study(self, *replacements: tuple[str, str]) -> Path:
        text = STUDY.replace("MODEL", str(self.folder / "model"))
        for old, new in replacements:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / "study.yaml"
        path.write_text(text)
        return path

    def run_assay(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([ASSAY, "run", *map(str, arguments)], capture_output=True, text=True)

    def expect_refused(self, *arguments: object, says: str) -> None:
        done = self.run_assay(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_bad_studies(self):
        model = str(self.folder / "model")
        cases = [
            (("repetitions: 8", "repetitions: 0"), "repetitions"),
            (("repetitions:", "repetitons:"), 'did you mean "repetitions"'),
            (("backend: native", "backend: nativ"), "backend"),
            (("mode: eager", "mode: compile"), "eager, compiled"),
            (("cache: [dynamic, static]", "cache: paged"), "cache"),
            (("dtype: fp32", "dtype: int8"), "dtype"),
            (("prompt_tokens: [5, 7]", "prompt_tokens: [30]"), "32 positions, found 34"),
            ((model, model + "-missing"), "model-missing"),
        ]
        bundle = self.folder / "bundle"
        for replacement, says in cases:
            with self.subTest(says=says):
                self.expect_refused(self.study(replacement), "-o", bundle, says=says)
                self.assertFalse(bundle.exists())

    def test_bad_models(self):
        bundle = self.folder / "bundle"
        weights = self.folder / "model" / "model.safetensors"
        whole = weights.read_bytes()
        weights.write_bytes(whole[:5000])
        self.expect_refused(self.study(), "-o", bundle, says="model.safetensors")
        weights.write_bytes(whole)
        config = self.folder / "model" / "config.json"
        config.write_text(config.read_text().replace("gpt2", "mamba").replace("GPT2LM", "Mamba"))
        self.expect_refused(self.study(), "-o", bundle, says="config.json")
        self.assertFalse(bundle.exists())

    def test_bad_folders(self):
        study = self.study()
        self.expect_refused(self.folder / "no.yaml", "-o", self.folder / "b", says="no.yaml")
        self.expect_refused(study, "-o", "/proc/nowhere", says="/proc/nowhere")
        self.expect_refused(study, "-o", study, says="study.yaml")
        self.assertEqual(self.run_assay(study, "-o", self.folder / "b").returncode, 0)
        self.expect_refused(study, "-o", self.folder / "b", says="exists already")
        self.expect_refused(study, "-o", self.folder / "b", "--resume", says="complete")

    def test_another_plan_is_not_resumed(self):
        bundle = self.interrupted(signal.SIGTERM)
        other = self.study(("repetitions: 8", "repetitions: 9"))
        self.expect_refused(other, "-o", bundle, "--resume", says="the study has changed")

    def test_interrupts(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                bundle = self.interrupted(number)
                done = self.run_assay(self.folder / "study.yaml", "-o", bundle, "--resume")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = rows(bundle)
                self.assertEqual(len(found), 4 * (8 + 2))  # each of the two processes warms up once
                self.assertEqual(len(set(found)), len(found))

    def interrupted(self, number: int) -> Path:
        """A bundle whose run was interrupted while its first worker lived."""
        bundle = self.folder / f"interrupted-{number}"
        run = subprocess.Popen([ASSAY, "run", str(self.study()), "-o", str(bundle)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while run.poll() is None and not children(run.pid):
            pass
        workers = children(run.pid)
        run.send_signal(number)
        stderr = run.communicate()[1]
        self.assertEqual(run.returncode, 130, stderr)
        self.assertIn(f"-o {bundle} --resume", stderr.splitlines()[-1])
        for worker in workers:
            self.assertFalse(Path(f"/proc/{worker}").exists(), "a worker outlived its run")
        return bundle


if __name__ == "__main__":
    unittest.main()
