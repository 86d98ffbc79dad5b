"""A run is bound to what it began with: weights, the program, a command's script, the torch worker's files.

The command arm itself replaces a file during its third invocation, so that nothing here waits or races.

usage: binding_test.py ASSAY FAKE_WORKER
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of
from resume_test import write_checkpoint

ASSAY, FAKE_WORKER = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
del sys.argv[1:]

TOOL = """
import pathlib, sys
count = pathlib.Path("count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
if number == int(sys.argv[1]):
    exec(pathlib.Path("act.py").read_text())
print("took 5 ms")
"""
# The interpreter of the torch arm here: the probe's answer, and then the worker that the harness's own tests use.
INTERPRETER = """#!/bin/sh
case "$*" in
*probe.py) echo '{{"python": "3.12.0", "torch": "2.7.0", "transformers": "4.52.0", "cxx": "g++"}}' ;;
*) exec {fake_worker} ;;
esac
"""
# Above the tool stands its keeper, above that the worker, and above that the process that runs the study.
WORKER = """
import os, signal
def parent(process):
    return int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
worker = parent(os.getppid())
"""
INTERRUPT = WORKER + """
os.kill(parent(worker), signal.SIGINT)
signal.pause()
"""


def tree(folder):
    """Every file's bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Binding(ProgramTest):
    program = ASSAY

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-binding-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()
        write_checkpoint(self.folder / "model", 1)
        write_checkpoint(self.folder / "other", 2)
        (self.folder / "tool.py").write_text(TOOL)
        self.weights = self.folder / "model" / "model.safetensors"

    def study(self, act, at=3, arms=None):
        (self.folder / "act.py").write_text(act)
        native = {"name": "native", "backend": "native", "mode": "eager", "cache": "dynamic", "threads": 1}
        tool = {"name": "tool", "backend": "command", "command": [sys.executable, "tool.py", str(at)],
                "patterns": [r"took (?<latency_ms>\d+) ms"]}
        return self.write_study(arms=[*([native] if arms is None else arms), tool], baseline="tool", phases=["prefill"], processes=6,
                                repetitions=6, warmup=0, order="interleaved", parity="after")

    def run_changed(self, act, changed, **keys):
        """A run that is refused: its one line, after the checks that hold for every such run."""
        done = self.assay("run", self.study(act, **keys), "-o", "bundle")
        self.assertEqual(done.returncode, 3, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertRegex(last, r"^assay: .* changed during the run: expected .*, found ")
        self.assertIn(str(changed), last)
        self.assertEqual(done.stdout, "")
        manifest = json.loads((self.folder / "bundle" / "manifest.json").read_text())
        self.assertFalse(manifest["complete"])
        (refusal,) = manifest["refusals"]
        self.assertEqual(f"assay: {refusal['message']}", last)
        self.assertEqual(refusal["path"], str(changed))
        self.assertNotEqual(refusal["before"], refusal["now"])
        verified = self.assay("verify", "bundle")
        self.assertEqual(verified.returncode, 1)
        self.assertIn("changed during the run", " ".join((verified.stdout + verified.stderr).split()))
        # Rows that were committed before stay, and nobody blames an arm for what happened.
        findings = json.loads(self.assay("analyze", "bundle", "-o", "json").stdout)
        self.assertGreater(findings["study"]["rows"], 0)
        named = {finding["kind"]: finding for finding in findings["findings"]}
        self.assertNotIn("output_varies", named)
        self.assertIn("changed during the run", json.dumps(named["incomplete"]))
        return refusal

    def test_weights_changed_in_place(self):
        before = sha256(self.weights)
        refusal = self.run_changed("file = open('model/model.safetensors', 'r+b'); file.seek(-1, 2); file.write(b'?'); file.close()",
                                   self.weights)
        self.assertEqual((refusal["of"], refusal["before"]["sha256"]), ('model "model"', before))
        self.assertEqual(refusal["now"]["sha256"], sha256(self.weights))
        self.assertIn(before, refusal["message"])
        self.assertIn(sha256(self.weights), refusal["message"])

    def test_weights_changed_by_a_rename(self):
        refusal = self.run_changed("pathlib.Path('other/model.safetensors').replace('model/model.safetensors')", self.weights)
        self.assertNotEqual(refusal["before"]["inode"], refusal["now"]["inode"])

    def test_weights_changed_and_changed_back(self):
        act = "path = pathlib.Path('model/model.safetensors'); old = path.read_bytes(); path.write_bytes(old[:-1]); path.write_bytes(old)"
        refusal = self.run_changed(act, self.weights)
        self.assertEqual(refusal["before"]["sha256"], refusal["now"]["sha256"])

    def test_a_file_of_the_model_that_goes_or_comes(self):
        self.assertIsNone(self.run_changed("pathlib.Path('model/config.json').unlink()", self.folder / "model/config.json")["now"])
        shutil.rmtree(self.folder / "bundle")
        (self.folder / "count").unlink()
        write_checkpoint(self.folder / "again", 1)
        (self.folder / "again/config.json").replace(self.folder / "model/config.json")
        added = self.folder / "model/tokenizer.json"
        self.assertIsNone(self.run_changed("pathlib.Path('model/tokenizer.json').write_text('{}')", added)["before"])

    def test_a_commands_script(self):
        script = self.folder / "tool.py"
        refusal = self.run_changed("pathlib.Path('tool.py').write_text('print(\"took 1 ms\")')", script)
        self.assertEqual(refusal["of"], 'arm "tool"')
        self.assertEqual(refusal["before"]["sha256"], hashlib.sha256(TOOL.encode()).hexdigest())

    def test_a_file_of_the_torch_worker(self):
        workers = self.folder / "workers" / "torch"
        (workers / "assay_torch").mkdir(parents=True)
        for name in ("worker.py", "probe.py", "assay_torch/serve.py"):
            (workers / name).write_text("# as it was\n")
        python = self.folder / "python"
        python.write_text(INTERPRETER.format(fake_worker=FAKE_WORKER))
        python.chmod(0o755)
        torch = {"name": "torch", "backend": "torch", "mode": "eager", "cache": "dynamic", "device": "cpu",
                 "python": str(python)}
        os.environ["ASSAY_WORKERS"] = str(workers.parent)
        self.addCleanup(os.environ.pop, "ASSAY_WORKERS")
        refusal = self.run_changed("pathlib.Path('workers/torch/assay_torch/serve.py').write_text('# another')",
                                   workers / "assay_torch/serve.py", arms=[torch])
        self.assertEqual(refusal["of"], "torch worker")

    def test_workers_are_the_program_that_runs(self):
        """Another file at its path, as `make` leaves one: the run goes on with the program that began it."""
        copy = self.folder / "assay"
        shutil.copy(ASSAY, copy)
        (self.folder / "wrong").write_text("#!/bin/sh\nexit 1\n")
        (self.folder / "wrong").chmod(0o755)
        act = WORKER + ("pathlib.Path('comm').write_text(pathlib.Path(f'/proc/{worker}/comm').read_text());"
                        "pathlib.Path('wrong').replace('assay')")
        before = sha256(copy)
        done = subprocess.run([copy, "run", self.study(act), "-o", "bundle"], cwd=self.folder, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(sha256(copy), before)
        self.assertEqual({row["status"] for row in rows_of(self.folder / "bundle")}, {"ok"})
        self.assertEqual({row["process"] for row in rows_of(self.folder / "bundle")}, set("012345"))
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["program_sha256"], before)
        self.assertEqual((self.folder / "comm").read_text(), "assay\n", "as ps shows a worker")
        self.succeed("verify", "bundle")

    def test_what_changes_no_content_is_no_change(self):
        """A backup by links, other permissions."""
        act = "import os; os.link('model/config.json', 'backup'); os.link('tool.py', 'tool'); os.chmod('model/model.safetensors', 0o600)"
        self.succeed("run", self.study(act), "-o", "bundle")
        self.succeed("verify", "bundle")
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        inputs = {(file["of"], file["name"]): file["sha256"] for file in environment["inputs"]}
        self.assertEqual(inputs['model "model"', "model.safetensors"], sha256(self.weights))
        self.assertEqual(inputs['arm "tool"', "tool.py"], sha256(self.folder / "tool.py"))

    def test_what_is_put_back_is_resumed(self):
        shutil.copytree(self.folder / "model", self.folder / "kept")
        self.run_changed("pathlib.Path('other/model.safetensors').replace('model/model.safetensors')", self.weights)
        study = self.folder / "study.yaml"
        kept = ("manifest.json", "commits.jsonl")
        before = [(self.folder / "bundle" / name).read_bytes() for name in kept]
        done = self.assay("run", study, "-o", "bundle", "--resume")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r'\Aassay: model "model": model.safetensors: expected the file with which the run began, .+, found .+')
        self.assertEqual([(self.folder / "bundle" / name).read_bytes() for name in kept], before, "no committed row is lost")
        shutil.copy(self.folder / "kept/model.safetensors", self.weights)
        self.succeed("run", study, "-o", "bundle", "--resume")
        self.succeed("verify", "bundle")
        self.assertEqual(len(rows_of(self.folder / "bundle")), 2 * 6)

    def test_a_resume_before_the_first_row_looks_too(self):
        changes = {
            "weights": (lambda: (self.folder / "other/model.safetensors").replace(self.weights), 'model "model"'),
            "script": (lambda: (self.folder / "tool.py").write_text("print('took 1 ms')"), "identity"),
        }
        for name, (change, says) in changes.items():
            with self.subTest(name):
                (self.folder / "count").unlink(missing_ok=True)
                study = self.study(INTERRUPT, at=1, arms=[])
                interrupted = self.assay("run", study, "-o", name)
                self.assertEqual(interrupted.returncode, 130, interrupted.stderr)
                self.assertIn("interrupted with 0 rows committed", interrupted.stderr)
                if name == "weights":
                    shutil.copy(self.weights, self.folder / "kept")
                change()
                before = tree(self.folder / name)
                done = self.assay("run", study, "-o", name, "--resume")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr.splitlines()[-1], r"\Aassay: .+: expected .+, found .+\Z")
                self.assertIn(says, done.stderr)
                self.assertEqual(tree(self.folder / name), before)
                if name == "weights":
                    shutil.copy(self.folder / "kept", self.weights)


if __name__ == "__main__":
    unittest.main()
