"""Options out of their range, names that a terminal would obey, weights of NaN, compilers that hang, and machines without
room: each is refused, escaped, or an outcome with its cause.

usage: hostile_options_test.py ASSAY
"""

import json
import os
import pathlib
import resource
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest, quick_compiler, rows_of

COMPILED = [{"name": "eager", "backend": "native", "mode": "eager", "cache": "static", "threads": 1},
            {"name": "compiled", "backend": "native", "mode": "compiled", "cache": ["dynamic", "static"], "threads": 1}]
# A study refuses C0 in names, not C1: this is a control sequence all the same.
ESCAPE = "\u009b2Jnew | <script>alert(1)</script>"


class Hostile(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        test = cls()
        test.succeed("model", "make", "tiny-gpt2", "-o", "model")
        cls.compiler = quick_compiler(cls.folder)

    def assay_with(self, *arguments, limits=(), **variables):
        """With some limits of the process, and some variables; the kernel cache and the compiler are the test's."""
        def limit():
            for which, value in limits:
                resource.setrlimit(which, (value, value))
        return subprocess.run([str(self.program), *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=300, preexec_fn=limit,
                              env=os.environ | {"ASSAY_KERNEL_CACHE": str(self.folder / "kernels"),
                                                "ASSAY_CXX": self.compiler} | variables)

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    # Options

    def test_values_out_of_range_are_refused(self):
        self.write_study()
        for option, values in {
            "--margin": ("nan", "inf", "-1", "0", "2", "1e-9", "0.1x", ""),
            "--resamples": ("-1", "99", "9223372036854775807", "1e3", "nan"),
            "--seed": ("-1", "18446744073709551616", "1.5", "x"),
        }.items():
            for value in values:
                for command in ("analyze", "report"):
                    self.assert_refused([command, "bundle", option, value], option, "expected")
        for option in ("--read-gb-per-s", "--gpu-read-gb-per-s"):
            for value in ("nan", "-nan", "inf", "0", "-5", "1e7", "5GB"):
                self.assert_refused(["plan", "study.yaml", option, value], option, "expected a number from 0.001")
        for value in ("-1", "9", "1000001", "nan"):
            self.assert_refused(["compare", "bundle", "--self-test", "--splits", value], "--splits")
        for value in ("-1", "1.0"):
            self.assert_refused(["compare", "bundle", "--self-test", "--seed", value], "--seed")
            self.assert_refused(["model", "make", "tiny-gpt2", "-o", "new", "--seed", value], "--seed")
        for value in ("nan", "inf", "0", "-1", "101%"):
            self.assert_refused(["compare", "bundle", "bundle", "--margin", value], "--margin")
        self.assertFalse((self.folder / "new").exists())

    def test_generate_refuses_what_it_can_not_do(self):
        for option, value in (("-n", "9223372036854775807"), ("-n", "0"), ("-n", "-1"), ("--threads", "-1"),
                              ("--threads", "1025"), ("--cache", "bogus"), ("--mode", "bogus"), ("--dtype", "bogus")):
            self.assert_refused(["generate", "model", "x", option, value], "--" if option != "-n" else "--tokens")
        for option, value in (("--dynamic", "bogus"), ("--bucket", "-7"), ("--bucket", "9223372036854775807"),
                              ("--recompile-limit", "-4"), ("--recompile-limit", "0"), ("--split", "bogus")):
            for mode in ("eager", "compiled"):
                self.assert_refused(["generate", "model", "x", "--mode", mode, option, value], option)

    def test_options_of_compiled_mean_nothing_to_eager(self):
        for option in (["--dynamic", "auto"], ["--bucket", "8"], ["--recompile-limit", "8"], ["--split", "decode"],
                       ["--disable-pass", "fuse_norm"], ["--verify-passes"], ["--no-kernel-cache"]):
            self.assert_refused(["generate", "model", "x", *option], option[0], "expected --mode compiled", "found eager")

    # Names

    def test_nothing_of_a_name_is_obeyed(self):
        self.write_study(arms=[{"name": ESCAPE, "backend": "native", "mode": "eager", "cache": "static", "threads": 1}],
                         phases=["prefill"], repetitions=5, warmup=0, scenarios=[{"name": "s" + ESCAPE, "prompt_tokens": [7]}])
        shown = [self.assay("plan", "study.yaml"), self.assay("run", "study.yaml", "-o", "named"),
                 self.assay("analyze", "named"), self.assay("analyze", "named", "-o", "md"),
                 self.assay("run", "\x1b[2Jnowhere\n\n.yaml", "-o", "out"), self.assay("verify", "\x1b[2J\nnowhere"),
                 self.assay("\x1b[2J"), self.assay("generate", "model", "1 \x1b[2J", "--ids")]
        for done in shown:
            for introducer in ("\x1b", "\u009b"):
                self.assertNotIn(introducer, done.stdout + done.stderr, done.args)
        self.assertEqual([done.returncode for done in shown], [0, 0, 0, 0, 2, 2, 2, 2])
        for done in shown[4:]:
            self.assertRegex(done.stderr, r"\Aassay: [^\n]+\n\Z")
        self.succeed("report", "named")
        page = (self.folder / "named/report.html").read_text()
        self.assertIn("alert(1)", page)
        for part in ("<script>alert", "\x1b", "\u009b"):
            self.assertNotIn(part, page)
        for markdown in (shown[3].stdout, (self.folder / "named/report.md").read_text()):
            self.assertIn("alert(1)", markdown)
            self.assertNotIn("<script>", markdown)
            self.assertNotIn("\u009b", markdown)
            for line in markdown.splitlines():
                if line.startswith("|") and "alert" in line:
                    self.assertNotIn("new |", line, "the name's bar is no cell's end")

    def test_a_line_is_cut(self):
        copy = self.folder / "many-dims"
        shutil.copytree(self.folder / "model", copy)
        header = json.dumps({"wte.weight": {"dtype": "F32", "shape": [1] * 1_000_000, "data_offsets": [0, 4]}}).encode()
        (copy / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
        for arguments in (["model", "info", "many-dims"], ["generate", "many-dims", "x"]):
            self.assertLess(len(self.assert_refused(arguments, "model.safetensors")), 10_000)

    # Options that a model or a machine can't meet

    def nan_model(self):
        copy = self.folder / "nan"
        if not copy.exists():
            shutil.copytree(self.folder / "model", copy)
            data = (copy / "model.safetensors").read_bytes()
            begin = 8 + struct.unpack("<Q", data[:8])[0]
            (copy / "model.safetensors").write_bytes(data[:begin] + b"\xff" * (len(data) - begin))
        return "nan"

    def test_weights_of_nan_are_no_success(self):
        self.write_study(models=[{"path": self.nan_model()}], arms=COMPILED, phases=["prefill", "kv_decode"],
                         require={"parity": True, "deterministic": True})
        done = self.assay_with("run", "study.yaml", "-o", "of-nan")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = rows_of(self.folder / "of-nan")
        self.assertEqual({(row["status"], row["error_class"]) for row in rows}, {("false_success", "non_finite")})
        self.assertEqual(self.assay("analyze", "of-nan").returncode, 1, "parity and determinism of nothing")
        for path in (self.folder / "of-nan/cells").glob("*/parity.json"):
            self.assertEqual(json.loads(path.read_text())["error"]["class"], "non_finite")
        done = self.assay("generate", self.nan_model(), "1 2", "--ids", "-n", "3", "--threads", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("logits: expected finite values", done.stderr)

    def test_a_machine_that_can_run_nothing_is_named(self):
        self.write_study(order="interleaved")
        for limits, variables, cause in (((), {"TMPDIR": "/nosuch"}, "TMPDIR"),
                                         (((resource.RLIMIT_NOFILE, 20),), {}, "ulimit -n")):
            done = self.assay_with("run", "study.yaml", "-o", "nothing", limits=limits, **variables)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, r"\Aassay: [^\n]*expected[^\n]*found[^\n]*\n\Z")
            self.assertIn(cause, done.stderr)
            self.assertFalse((self.folder / "nothing").exists(), "a later run starts afresh")
        # Room for descriptors, but for no process.
        done = self.assay_with("run", "study.yaml", "-o", "nothing", limits=((resource.RLIMIT_FSIZE, 1 << 20),))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_interpreter_that_hangs_is_named_while_it_is_waited_for(self):
        answer = self.folder / "answer"
        os.mkfifo(answer)
        python = self.script("waits", f"read x < {answer}\nexit 1\n")
        self.write_study("waits.yaml", arms=[{"name": "slow", "backend": "torch", "mode": "eager", "cache": "static",
                                              "python": str(python)}],
                         models=[{"arch": "tiny-llama"}])
        plan = subprocess.Popen([self.program, "plan", "--probe", "waits.yaml"], cwd=self.folder, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with plan.stderr:
            line = plan.stderr.readline()  # the interpreter answers nothing before it is written
            answer.write_text("go\n")
            plan.stderr.read()
        self.assertEqual(plan.wait(), 0)
        self.assertRegex(line, r'assay: note: arm "slow": waiting for .*/waits')

    def test_text_is_printed_whatever_the_probe_lacks(self):
        self.succeed("model", "make", "gpt2-25m", "-o", "larger")  # 100 MB, more than most caches hold
        done = self.assay_with("generate", "larger", "1 2", "--ids", "-n", "4", "--threads", "1",
                               limits=((resource.RLIMIT_AS, 500 << 20),))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.split()), 4)
        self.assertRegex(done.stderr, r"decode .*: (the read bandwidth of 1 thread of this machine is unknown: bandwidth probe|"
                                      r"the \d\d.\d+ MB of a step fit the last-level cache)")

    # Programs that a study or the environment names

    def test_plan_starts_no_interpreter_unless_asked(self):
        marker = self.folder / "ran"
        python = self.script("python", f"echo x > {marker}\nexit 1\n")
        self.write_study(arms=[{"name": "torch", "backend": "torch", "mode": "eager", "cache": "dynamic",
                                "python": str(python)}], models=[{"arch": "tiny-llama"}])
        told = json.loads(self.succeed("plan", "study.yaml", "-o", "json"))["arms"]
        self.assertEqual([arm["here"] for arm in told], ["not_asked"])
        self.assertIn(str(python), told[0]["why"])
        self.assertIn(str(python), self.succeed("plan", "study.yaml"))
        self.assertFalse(marker.exists())
        asked = json.loads(self.succeed("plan", "study.yaml", "--probe", "-o", "json"))["arms"]
        self.assertEqual([arm["here"] for arm in asked], ["impossible"])
        self.assertTrue(marker.exists())

    def test_the_compiler_is_asked_once_a_run(self):
        calls = self.folder / "calls"
        compiler = self.script("counted", f'[ "$1" = --version ] && echo x >> {calls}\nexec {self.compiler} "$@"\n')
        self.write_study(arms=COMPILED, parity="after", phases=["kv_decode"], repetitions=6, order="interleaved")
        done = self.assay_with("run", "study.yaml", "-o", "counted-run", ASSAY_CXX=str(compiler))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(calls.read_text(), "x\n", "by the gate, and by no worker")

    def test_nothing_of_a_compilation_survives_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            fifo, temporary = self.folder / f"fifo{number}", self.folder / f"tmp{number}"
            os.mkfifo(fifo)
            temporary.mkdir()
            # The compiler's child ignores SIGTERM: the last signal ends it, once the folder is gone.
            compiler = self.script("slow", '[ "$1" = --version ] && echo slow 1 && exit\n'
                                           f"(trap '' TERM; echo $$; exec sleep 1000) > {fifo}\n")
            with subprocess.Popen([self.program, "generate", "model", "1 2", "--ids", "--mode", "compiled", "--threads", "1",
                                   "--no-kernel-cache"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=os.environ | {"ASSAY_CXX": str(compiler),
                                                                               "TMPDIR": str(temporary)}) as program:
                with open(fifo, encoding="ascii") as started:
                    leader = int(started.readline())
                    self.assertEqual(len(list(temporary.iterdir())), 1)
                    program.send_signal(number)
                    program.wait()
                    # The last writer of the pipe is the sleeping one: its end ends the pipe.
                    readable, _, _ = select.select([started], [], [], 60)
                    if not readable:
                        os.killpg(os.getpgid(leader), signal.SIGKILL)
                    self.assertTrue(readable, "the compiler's child lives on")
                    self.assertEqual(started.read(), "")
            self.assertEqual(list(temporary.iterdir()), [])


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
