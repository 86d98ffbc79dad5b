"""`assay probe`: figures of commands without a study, their bands, and what becomes of those that fail.

usage: probe_test.py ASSAY
"""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest


class Probe(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-probe-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def probed(self, *arguments, status=0):
        done = self.assay("probe", "-o", "json", *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def counting(self, *figures):
        """A command whose n-th invocation prints the n-th of these texts."""
        script = "n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; sed -n $((n+1))p figures"
        (self.folder / "figures").write_text("\n".join(figures) + "\n")
        (self.folder / "n").unlink(missing_ok=True)
        return "--", "sh", "-c", script

    def test_the_mean_is_over_invocations_and_warm_ups_dont_count(self):
        command = self.counting("9 tok/s 9 tok/s", "1 tok/s 98 tok/s 102 tok/s", "1 tok/s 100 tok/s", "1 tok/s 102 tok/s")
        found = self.probed("--unit", "tok/s", "-r", "3", "--skip", "1", "--target", "100", *command)
        self.assertEqual([one["values"] for one in found["invocations"]], [[9], [98, 102], [100], [102]])
        self.assertEqual((found["n"], found["lost"]), (3, 0))
        self.assertAlmostEqual(found["mean"], (100 + 100 + 102) / 3)
        # sd of (100, 100, 102) is 1.1547; t(2) is 4.3027.
        self.assertAlmostEqual(found["interval"]["high"] - found["mean"], 4.3027 * 1.1547 / 3**0.5, places=3)
        self.assertEqual((found["band"], found["worst_band"]), ("strong_match", "match"))

    def test_bands(self):
        for target, band, status in ((104.9, "strong_match", 0), (101, "match", 0), (95, "weak", 0), (50, "none", 1)):
            found = self.probed("--unit", "tok/s", "-r", "2", "--target", target, "--", "echo", "104.9 tok/s", status=status)
            self.assertEqual(found["band"], band)
        wide = self.probed("--unit", "tok/s", "-r", "2", "--target", "50", "--bands", "0.1,0.2,2", "--", "echo", "105 tok/s")
        self.assertEqual(wide["band"], "weak")
        null = self.probed("--unit", "tok/s", "-r", "2", "--target", "50", "--", "sh", "-c", "exit 7", status=1)
        self.assertEqual((null["band"], null["mean"], null["lost"]), ("null", None, 2))
        shown = self.succeed("probe", "--unit", "tok/s", "-r", "2", "--target", "104.9", "--", "echo", "100 tok/s")
        self.assertIn("reproduction: match", shown)
        self.assertIn("strong_match within 2 % of the target, match 5 %, weak 15 %", shown)

    def test_losses_are_counted_and_told(self):
        command = self.counting("5 ms", "", "5 ms", "nan ms")
        found = self.probed("--pattern", r"(?<v>\S+) ms", "--warmup", "0", "-r", "4", *command)
        self.assertEqual([one["error_class"] for one in found["invocations"]], ["", "no_match", "", "bad_figure"])
        self.assertEqual((found["n"], found["lost"], found["mean"]), (2, 2, 5))
        error = "import sys; sys.exit('words') if len(sys.argv) > 1 else 1 / 0"
        found = self.probed("--unit", "ms", "-r", "1", "--warmup", "0", "--", sys.executable, "-c", error, status=1)
        self.assertEqual(found["invocations"][0]["error_class"], "ZeroDivisionError")
        self.assertIn("division by zero", found["invocations"][0]["message"])
        late = self.probed("--unit", "ms", "-r", "1", "--warmup", "0", "--timeout", "0.2", "--", "sleep", "1000", status=1)
        self.assertEqual(late["invocations"][0]["status"], "timeout")
        few = self.probed("--unit", "ms", "-r", "1", "--skip", "3", "--", "echo", "1 ms", status=1)
        self.assertEqual(few["invocations"][1]["error_class"], "too_few_samples")

    def test_formats_and_folder(self):
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "run").write_text("#!/bin/sh\necho 7 ms\n")
        (self.folder / "sub" / "run").chmod(0o755)
        rows = self.succeed("probe", "--unit", "ms", "-r", "2", "--workdir", "sub", "-o", "csv", "--", "./run")
        self.assertEqual([row["ms"] for row in csv.DictReader(io.StringIO(rows))], ["7.0"] * 3)
        self.assertIn("| 7", self.succeed("probe", "--unit", "ms", "-r", "1", "-o", "md", "--", "echo", "7 ms"))
        self.assertIn("7 ms", self.assay("probe", "--unit", "ms", "-r", "1", "-v", "--", "echo", "7 ms").stderr)

    def test_what_cant_be_probed_is_refused(self):
        self.assert_refused(["probe", "--", "true"], "--pattern")
        self.assert_refused(["probe", "--pattern", "x", "--", "true"], "one named group")
        self.assert_refused(["probe", "--pattern", "(?<v>x", "--", "true"], "a regular expression")
        self.assert_refused(["probe", "--unit", "ms", "--", "no-such-program"], "no-such-program")
        self.assert_refused(["probe", "--unit", "ms", "--target", "1", "--bands", "0.3,0.2,0.5", "--", "true"], "ascending")

    def test_ctrl_c_ends_the_command(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        running = subprocess.Popen([self.program, "probe", "--unit", "ms", "--", "sh", "-c", f"echo > {fifo}; exec sleep 1000"],
                                   cwd=self.folder, stderr=subprocess.PIPE, start_new_session=True)
        fifo.read_text()  # the command runs
        running.send_signal(signal.SIGINT)
        error = running.communicate(timeout=60)[1].decode()
        self.assertEqual(running.returncode, 130, error)
        self.assertIn("interrupted", error)


if __name__ == "__main__":
    unittest.main()
