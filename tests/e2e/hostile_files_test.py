"""Files and descriptors that nobody would choose: closed, full, cut, linked, endless.

Whatever they are, the program ends by itself, with exit 1, 2 or 3 and at most one line on stderr, and writes nothing
outside of what it was given.

usage: hostile_files_test.py ASSAY
"""

import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from program import SOAK, ProgramTest

DOCS = pathlib.Path(__file__).parents[2] / "docs"


class HostileFiles(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.folder.chmod(0o755)
        test = cls()
        test.succeed("model", "make", "tiny-gpt2", "-o", "model")
        test.write_study(phases=["prefill", "kv_decode"])
        for name in ("made", "other"):
            test.succeed("run", "study.yaml", "-o", name)
        # The bundle as a run leaves it before its analysis.
        for folder in ("analysis", "plots"):
            shutil.rmtree(cls.folder / "made" / folder)
        for name in ("report.md", "report.html"):
            (cls.folder / "made" / name).unlink()

    def setUp(self):
        self.bundle = self.folder / "bundle"
        shutil.rmtree(self.bundle, ignore_errors=True)
        shutil.copytree(self.folder / "made", self.bundle)
        self.precious = self.folder / "precious"
        self.precious.write_text("mine\n")

    def tearDown(self):
        self.assertEqual(self.precious.read_text(), "mine\n", "something was written outside the bundle")

    def shell(self, script, *arguments):
        """`script` in a shell in which "$assay" is the program and $1 ... are the arguments."""
        return subprocess.run(["bash", "-c", script, "bash", *map(str, arguments)], cwd=self.folder,
                              env={**os.environ, "assay": str(self.program), "ASSAY_TORCH_PYTHON": "/nowhere/python"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)

    def assert_one_line(self, done, *statuses):
        self.assertIn(done.returncode, statuses, done.stderr or done.stdout)
        self.assertRegex(done.stderr, r"\A(assay: [^\n]+\n)?\Z", "at most one line")

    # Descriptors

    def test_a_run_without_standard_descriptors_leaves_a_whole_bundle(self):
        for closed, status in (("<&- 2>&-", 0), (">&- 2>&-", 3), ("<&- >&- 2>&-", 3), ("<&-", 0)):
            with self.subTest(closed=closed):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                done = self.shell(f'exec "$assay" run study.yaml -o out {closed}')
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn("intact", self.succeed("verify", "out"))

    def test_output_that_cannot_be_written_is_an_error_of_every_command(self):
        printing = ["--help", "--version", "run --help", "stats welch --a 11,9,16 --b 7,6,16", "plan study.yaml",
                    "verify made", "analyze bundle", "report bundle", "compare other bundle", "gate made", "route made", "portability other bundle",
                    "doctor", "cache list",
                    "model info model", "generate model hello -n 2", "run study.yaml -o out"]
        for command in printing:
            for output in (">/dev/full", ">&-"):
                with self.subTest(command=command, output=output):
                    shutil.rmtree(self.folder / "out", ignore_errors=True)
                    done = self.shell(f'exec "$assay" {command} {output}')
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertRegex(done.stderr, r"(?m)^assay: standard output: expected .* found: \S")
                    errors = re.findall(r"(?m)^assay: (?!warning: |note: )", done.stderr)
                    self.assertEqual(len(errors), 1, done.stderr)

    def test_a_pipe_that_nobody_reads_any_more_ends_every_command_quietly(self):
        """SIGPIPE ends it, as it ends head's and grep's neighbours, with the work done."""
        for command in ("--help", "plan study.yaml", "analyze bundle -o csv", "report bundle", "run study.yaml -o piped"):
            with self.subTest(command=command):
                read, write = os.pipe()
                os.close(read)
                done = subprocess.run([self.program, *command.split()], cwd=self.folder, stdout=write,
                                      stderr=subprocess.PIPE, text=True, timeout=300)
                os.close(write)
                self.assertEqual(done.returncode, -signal.SIGPIPE, done.stderr)
                self.assertEqual(re.findall(r"(?m)^assay: (?!warning: |note: )", done.stderr), [])
        self.assertIn("intact", self.succeed("verify", "piped"))

    def test_a_limit_on_the_size_of_files_is_an_error_and_the_run_resumes(self):
        stopped = 0
        for limit in (500, 1000, 2000, 4000):
            with self.subTest(limit=limit):
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                done = subprocess.run(
                    [self.program, "run", "study.yaml", "-o", "out"], cwd=self.folder, capture_output=True, text=True,
                    timeout=300, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(done.stderr.splitlines()[-1], r"assay: out/\S+: expected to write there, found: File too")
                self.succeed("run", "study.yaml", "-o", "out", "--resume")
                self.assertIn("intact", self.succeed("verify", "out"))
                stopped += 1
        self.assertEqual(stopped, 4)

    # Links in a bundle

    def test_a_linked_folder_is_found_and_not_written_to(self):
        outside = self.folder / "outside"
        outside.mkdir()
        (outside / "findings.json").symlink_to(self.precious)
        for folder in ("analysis", "plots"):
            (self.bundle / folder).symlink_to(outside)
            self.assertEqual(self.assay("verify", "bundle").returncode, 1)
            for command in ("analyze", "report"):
                self.assert_one_line(self.assay(command, "bundle"), 2)
            self.assertEqual([path.name for path in outside.iterdir()], ["findings.json"])
            (self.bundle / folder).unlink()

    def test_a_link_at_a_name_that_is_written_is_not_followed(self):
        (self.bundle / "analysis").mkdir()
        for name, command in (("analysis/findings.json", "analyze"), ("report.md", "report"),
                              ("report.html", "report")):
            (self.bundle / name).symlink_to(self.precious)
            self.assertEqual(self.assay("verify", "bundle").returncode, 1)
            done = self.assay(command, "bundle")
            self.assert_one_line(done, 2)
            self.assertIn("symbolic link", done.stderr)
            (self.bundle / name).unlink()

    def test_a_link_at_the_name_of_a_temporary_file_is_not_followed(self):
        (self.bundle / "analysis").mkdir()
        # The program's process is the shell's.
        self.shell('ln -s ../../precious "bundle/analysis/findings.json.tmp$$"; exec "$assay" analyze bundle')
        self.assertEqual(self.precious.read_text(), "mine\n")

    def test_a_manifest_that_is_a_link_to_itself_is_a_finding(self):
        (self.bundle / "manifest.json").unlink()
        (self.bundle / "manifest.json").symlink_to("manifest.json")
        done = self.assay("verify", "bundle")
        self.assert_one_line(done, 1)
        self.assertIn("symbolic link", done.stdout)
        for command in (["analyze", "bundle"], ["run", "study.yaml", "-o", "bundle", "--resume"]):
            self.assert_one_line(self.assay(*command), 2)

    def test_a_folder_that_may_be_listed_and_not_entered(self):
        # Root obeys a folder's mode without these rights alone.
        held = 'setpriv --inh-caps=-all --bounding-set=-dac_override,-dac_read_search' if os.geteuid() == 0 else ""
        self.bundle.chmod(0o444)
        self.addCleanup(self.bundle.chmod, 0o755)
        for command in ("verify", "analyze"):
            done = self.shell(f'exec {held} "$assay" {command} bundle')
            self.assert_one_line(done, 1, 2)
            self.assertIn("Permission denied", done.stdout + done.stderr)

    # Files that are no regular files, or too large for their kind

    def hostile_inputs(self, path):
        """Puts each thing that can't be read to its end in the file's place; yields what it is."""
        path.unlink()
        os.mkfifo(path)
        yield "a pipe"
        path.unlink()
        path.symlink_to("/dev/zero")
        yield "a device"
        path.unlink()
        path.touch()
        os.truncate(path, 1 << 40)
        yield "bytes"

    def test_input_that_never_ends(self):
        model = self.folder / "endless"
        shutil.copytree(self.folder / "model", model)
        for name in ("config.json", "tokenizer.json"):
            for what in self.hostile_inputs(model / name):
                with self.subTest(name=name, what=what):
                    self.assert_refused(["generate", "endless", "hello"], name)
            shutil.copy(self.folder / "model" / name, self.unlinked(model / name))
        for what in self.hostile_inputs(model / "model.safetensors"):
            with self.subTest(name="model.safetensors", what=what):
                self.assert_refused(["model", "info", "endless"], "model.safetensors")
        (model / "model.safetensors").unlink()
        (model / "model.safetensors.index.json").touch()
        for what in self.hostile_inputs(model / "model.safetensors.index.json"):
            with self.subTest(name="index", what=what):
                self.assert_refused(["model", "info", "endless"], "model.safetensors.index.json")
        shutil.rmtree(model)
        study, table = self.folder / "endless.yaml", self.folder / "endless.csv"
        for path, commands in ((study, (["plan", study], ["run", study, "-o", "out"])),
                               (table, (["stats", "audit", table],))):
            path.touch()
            for what in self.hostile_inputs(path):
                for command in commands:
                    with self.subTest(command=command, what=what):
                        self.assert_refused(command, path.name)
            path.unlink()

    def test_a_bundle_that_never_ends(self):
        for name in ("manifest.json", "commits.jsonl", "study.yaml", "prefill/metrics.csv"):
            self.setUp()
            for what in self.hostile_inputs(self.bundle / name):
                with self.subTest(name=name, what=what):
                    self.assert_one_line(self.assay("verify", "bundle"), 1)
                    self.assert_one_line(self.assay("analyze", "bundle"), 2)

    def unlinked(self, path):
        path.unlink()
        return path

    # Bundles whose hashes fit and whose values don't

    def forge(self, change):
        """change(manifest, records) applied to a bundle, and every hash that follows from it."""
        manifest = json.loads((self.bundle / "manifest.json").read_text())
        records = [json.loads(line) for line in (self.bundle / "commits.jsonl").read_text().splitlines()]
        manifest.pop("sha256")
        manifest, records = change(manifest, records) or (manifest, records)
        chain = manifest.get("plan_sha256", "") if isinstance(manifest, dict) else ""
        lines = []
        for record in records:
            record.pop("chain", None)
            text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
            chain = hashlib.sha256(f"{chain}\n{text}".encode()).hexdigest()
            lines.append(json.dumps({**record, "chain": chain}, separators=(",", ":"), ensure_ascii=False) + "\n")
        (self.bundle / "commits.jsonl").write_text("".join(lines))
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        signed = {**manifest, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        (self.bundle / "manifest.json").write_text(json.dumps(signed, indent=2, ensure_ascii=False) + "\n")

    def test_crafted_bundles_end_in_an_answer(self):
        def huge_commits(manifest, records):
            records[-1]["rows"] = 2**62
            for record in records:
                for added in record["files"].values():
                    added["bytes"] = 2**62

        values = ("text", 7, -1, 2**62, [], {}, None, True, 1e300)
        step = 1 if SOAK else 4  # coprime to the number of values: another value for each key
        changes = [lambda manifest, records, key=key, value=value: manifest.update({key: value})
                   for key in ("complete", "files", "study", "identity", "completion", "started_at_ns", "schema_version",
                               "plan_sha256", "assay_version")
                   for value in values][::step]
        changes += [lambda manifest, records, key=key, value=value: records[0].update({key: value})
                    for key in ("unit", "rows", "files", "replaced", "note") for value in values][::step]
        changes += [huge_commits]
        for number, change in enumerate(changes):
            with self.subTest(number=number):
                for name in ("manifest.json", "commits.jsonl"):
                    shutil.copy(self.folder / "made" / name, self.bundle / name)
                self.forge(change)
                self.assert_one_line(self.assay("verify", "bundle"), 0, 1)
                self.assert_one_line(self.assay("analyze", "bundle", "--resamples", 100), 0, 1, 2)

    def test_the_forgery_of_this_test_is_one(self):
        self.forge(lambda manifest, records: None)
        self.assertIn("intact", self.succeed("verify", "bundle").replace("expected", ""), "hashes as the program makes them")

    # Memory

    def test_more_threads_than_there_is_room_for(self):
        limit = 1 << 30
        done = subprocess.run(
            [self.program, "generate", "model", "hello", "-n", "2", "--threads", "600"], cwd=self.folder,
            capture_output=True, text=True, timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assert_one_line(done, 3)
        self.assertRegex(done.stderr, r"expected .* found ")

    def test_a_bucket_without_bounds(self):
        done = self.assay("generate", "model", "hello", "-n", "2", "--mode", "compiled", "--bucket", 2**63 - 1)
        self.assert_one_line(done, 0, 2, 3)

    def test_weights_cut_while_a_worker_maps_them(self):
        shutil.rmtree(self.folder / "cut", ignore_errors=True)
        shutil.copytree(self.folder / "model", self.folder / "cut")
        page = (DOCS / "worker-protocol.md").read_text()
        requests = [json.loads(line) for line in re.findall(r"(?m)^> (\{.*\})$", page)]
        to_worker, from_worker = os.pipe(), os.pipe()

        def connect():
            for fd, number in ((to_worker[0], 100), (from_worker[1], 101)):
                os.dup2(fd, number)
            for high, low in ((100, 3), (101, 4)):
                os.dup2(high, low)
            os.closerange(5, 256)

        worker = subprocess.Popen([self.program, "worker", "native"], cwd=self.folder, preexec_fn=connect, close_fds=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.close(to_worker[0])
        os.close(from_worker[1])
        with os.fdopen(to_worker[1], "w") as out, os.fdopen(from_worker[0]) as replies:
            for request in requests:
                if request.get("model") == "MODEL":
                    request["model"] = "cut"
                print(json.dumps(request), file=out, flush=True)
                reply = replies.readline()
                if not reply:
                    break
                if json.loads(reply)["type"] == "loaded":
                    os.truncate(self.folder / "cut/model.safetensors", 4096)
            stderr = worker.communicate()[1]
        self.assertEqual(worker.returncode, 3, stderr)
        self.assertRegex(stderr, r"\Aassay: cut/model.safetensors: expected .* found it cut short\n\Z")


if __name__ == "__main__":
    HostileFiles.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
