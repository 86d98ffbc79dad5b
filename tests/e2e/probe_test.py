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

from program import ProgramTest, rows_of


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
        self.assertEqual(wide["bands"], {"strong_match": 0.1, "match": 0.2, "weak": 2}, "the thresholds that were declared")
        shown = self.succeed("probe", "--unit", "tok/s", "-r", "2", "--target", "50", "--bands", "0.1,0.2,2", "--", "echo",
                             "105 tok/s")
        self.assertIn("strong_match within 10 % of the target, match 20 %, weak 200 %, else none", shown)
        null = self.probed("--unit", "tok/s", "-r", "2", "--target", "50", "--", "sh", "-c", "exit 7", status=1)
        self.assertEqual((null["band"], null["mean"], null["lost"]), ("null", None, 2))
        shown = self.succeed("probe", "--unit", "tok/s", "-r", "2", "--target", "104.9", "--", "echo", "100 tok/s")
        self.assertIn("reproduction: match", shown)
        self.assertIn("strong_match within 2 % of the target, match 5 %, weak 15 %", shown)

    def test_each_band_and_the_figure_beside_it(self):
        for figures, band in ((("102", "102.1"), ("strong_match", "match")), (("105", "105.1"), ("match", "weak")),
                              (("115", "115.1"), ("weak", "none")), (("85", "84.9"), ("weak", "none"))):
            for figure, expected in zip(figures, band):
                found = self.probed("--unit", "tok/s", "-r", "1", "--warmup", "0", "--target", "100", "--", "echo",
                                    f"{figure} tok/s", status=int(expected == "none"))
                self.assertEqual(found["band"], expected, figure)
        # null: nothing survived; one survivor of two is enough for a band.
        for figures, band in ((("", ""), "null"), (("", "100 tok/s"), "strong_match")):
            found = self.probed("--unit", "tok/s", "-r", "2", "--warmup", "0", "--target", "100", *self.counting(*figures),
                                status=int(band == "null"))
            self.assertEqual(found["band"], band)

    def test_a_number_is_taken_whole_or_not_at_all(self):
        for text, value in (("104.9 tok/s", 104.9), ("x=3,104.9tok/s", None), ("x=3, 104.9tok/s", 104.9), ("1e3 tok/s", 1000),
                            ("1,234.5 tok/s", None), ("104,9 tok/s", None), ("-5 tok/s", None), ("rate-5 tok/s", 5),
                            ("1.2.3 tok/s", None), ("5 tok/second", None), ("[5 tok/s]", 5), ("+5 tok/s", 5)):
            found = self.probed("--unit", "tok/s", "-r", "1", "--warmup", "0", "--", "echo", text, status=int(value is None))
            self.assertEqual(found["mean"], value, text)

    def test_figures_whose_mean_is_no_number_are_lost(self):
        for text in ("1e308 ms", "1e308 ms 1e308 ms", "inf ms", "1e999 ms"):
            arguments = ("--pattern", r"(?<v>\S+) ms", "-r", "2", "--warmup", "0", "--target", "5", "--", "echo", text)
            found = self.probed(*arguments, status=1)
            self.assertEqual((found["band"], found["n"], found["lost"]), ("null", 0, 2))
            self.assertEqual(found["invocations"][0]["error_class"], "bad_figure")
            self.assertIn("lost: 2 of 2; the first: expected a positive number", self.assay("probe", *arguments).stdout)

    def test_equal_figures_have_no_interval(self):
        found = self.probed("--unit", "ms", "-r", "3", "--target", "5", "--", "echo", "5 ms")
        self.assertEqual((found["n"], found["mean"], found["interval"], found["ratio_interval"]), (3, 5, None, None))
        self.assertIn("it needs two invocations that differ", self.succeed("probe", "--unit", "ms", "-r", "3", "--", "echo", "5 ms"))

    def test_an_interval_of_positive_figures_ends_at_zero(self):
        found = self.probed("--unit", "tok/s", "-r", "2", "--warmup", "0", "--target", "10", *self.counting("1 tok/s", "19 tok/s"))
        self.assertEqual(found["interval"]["low"], 0)
        self.assertEqual(found["ratio_interval"]["low"], 0)
        self.assertGreater(found["interval"]["high"], 100)

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
        hungry = self.probed("--unit", "ms", "-r", "1", "--warmup", "0", "--", sys.executable, "-c", "raise MemoryError", status=1)
        self.assertEqual(hungry["invocations"][0]["status"], "oom")
        few = self.probed("--unit", "ms", "-r", "1", "--skip", "3", "--", "echo", "1 ms", status=1)
        self.assertEqual(few["invocations"][1]["error_class"], "too_few_samples")

    def test_a_match_whose_group_took_nothing_is_no_figure(self):
        found = self.probed("--pattern", r"a(?<v>\d)?", "-r", "1", "--", "echo", "a1 a", status=1)
        self.assertEqual(found["invocations"][1]["error_class"], "bad_figure")

    def test_what_is_saved_is_the_bundle_of_a_command_arm(self):
        command = self.counting("9 tok/s 9 tok/s", "1 tok/s 98 tok/s", "1 tok/s 100 tok/s", "1 tok/s 102 tok/s")
        found = self.probed("--unit", "tok/s", "-r", "3", "--skip", "1", "--target", "100", "--save", "b", "--model", "gpt",
                            "--prompt-tokens", "7", "--new-tokens", "50", *command)
        self.assertEqual(found["bundle"], "b")
        self.assertEqual((found["n"], found["lost"], found["band"]), (3, 0, "strong_match"))
        self.assertEqual(found["invocations"][0]["values"], [9], "the warm-up ran, and isn't in the bundle")
        for one, value in zip(found["invocations"][1:], (98, 100, 102), strict=True):
            self.assertAlmostEqual(one["values"][0], value, places=5)
        bundle = self.folder / "b"
        self.succeed("verify", "b")
        rows = rows_of(bundle)
        self.assertEqual([row["process"] for row in rows if row["cold"] == "false"], ["0", "1", "2"])
        self.assertEqual({(row["backend"], row["model"], row["prompt_tokens"], row["new_tokens"]) for row in rows},
                         {("command", "gpt", "7", "50")})
        self.assertAlmostEqual(float(rows[-1]["latency_ms"]), 50 / 102 * 1000, places=3)
        self.assertTrue((bundle / "report.html").exists() and (bundle / "analysis" / "findings.json").exists())
        self.succeed("analyze", "b")
        gates = json.loads(self.assay("gate", "b", "-o", "json").stdout)
        self.assertTrue(gates["gates"])
        # The study in the bundle is the study of such an arm: it runs by itself.
        self.assay("run", bundle / "study.yaml", "-o", "again")
        self.assertEqual(len(rows_of(self.folder / "again")), len(rows))

    def test_a_saved_figure_is_read_back_as_it_was_printed(self):
        for i, (unit, options) in enumerate((("ns", ()), ("us", ()), ("ms", ()), ("s", ()), ("tok/s", ("--new-tokens", "50")),
                                             ("ms/token", ("--new-tokens", "50")),
                                             ("tok/s", ("--phase", "prefill", "--prompt-tokens", "80")))):
            found = self.probed("--unit", unit, "-r", "2", "--save", f"b{i}", *options, "--", "echo", f"25 {unit}")
            self.assertEqual(found["invocations"][0]["values"], [25], "the warm-up's, as printed")
            for one in found["invocations"][1:]:
                self.assertAlmostEqual(one["values"][0], 25, places=5, msg=unit)
        row = rows_of(self.folder / "b5")[0]
        self.assertEqual(float(row["latency_ms"]), 25 * 50, "50 tokens of 25 ms")

    def test_a_saved_invocation_that_loses_a_sample_is_lost(self):
        # The second time is longer than a year, which no row may say.
        found = self.probed("--unit", "ms", "-r", "2", "--warmup", "0", "--samples", "2", "--save", "b", "--", "echo",
                            "5 ms 1e15 ms", status=1)
        self.assertEqual({row["status"] for row in rows_of(self.folder / "b")}, {"ok", "false_success"})
        for one in found["invocations"]:
            self.assertEqual((one["values"], one["status"], one["error_class"]), ([], "false_success", "impossible_latency"))
        self.assertEqual((found["n"], found["lost"]), (0, 2))

    def test_a_models_name_may_hold_dots(self):
        for folder, name in (("b1", "gpt..2"), ("b2", ".."), ("b3", "{model}")):
            self.succeed("probe", "--unit", "ms", "-r", "1", "--save", folder, "--model", name, "--", "echo", "5 ms")
            self.succeed("verify", folder)
            self.assertEqual({row["model"] for row in rows_of(self.folder / folder)}, {name})

    def test_losses_are_rows_of_the_saved_bundle(self):
        ends = {"fails": (["sh", "-c", "echo 5 ms; exit 4"], "crash", "exit 4"),
                "hangs": (["sleep", "1000"], "timeout", "timeout"),
                "mute": (["true"], "false_success", "no_match")}
        for name, (command, status, error_class) in ends.items():
            seconds = "0.5" if name == "hangs" else "60"
            found = self.probed("--unit", "ms", "-r", "2", "--warmup", "0", "--timeout", seconds, "--save", name, "--", *command,
                                status=1)
            self.assertEqual((found["n"], found["lost"], found["mean"]), (0, 2, None), name)
            self.assertEqual({one["error_class"] for one in found["invocations"]}, {error_class})
            if name == "fails":
                self.assertEqual({one["message"] for one in found["invocations"]}, {"the command ended with exit 4: 5 ms"})
            self.assertEqual([(row["status"], row["error_class"]) for row in rows_of(self.folder / name)],
                             [(status, error_class)] * 2)
            self.succeed("verify", name)
            self.succeed("analyze", name)

    def test_what_cant_be_saved_is_refused_before_the_command_runs(self):
        (self.folder / "full").mkdir()
        (self.folder / "full" / "kept").write_text("mine")
        (self.folder / "file").write_text("mine")
        touch = ["--", "touch", "ran"]
        self.assert_refused(["probe", "--unit", "ms", "--save", "full", *touch], "full", "a new or empty folder")
        self.assert_refused(["probe", "--unit", "ms", "--save", "file", *touch], "file", "a new folder")
        self.assert_refused(["probe", "--unit", "ms", "--save", "", *touch], "--save")
        self.assert_refused(["probe", "--unit", "GB/s", "--save", "b", *touch], "GB/s", "tok/s")
        self.assert_refused(["probe", "--pattern", r"(?<v>\d)\k<v>", "--unit", "ms", "--save", "b", *touch], "(?<latency_ms>")
        self.assert_refused(["probe", "--unit", "ms", "--skip", "2", "--samples", "2", "--save", "b", *touch], "--samples")
        self.assert_refused(["probe", "--unit", "ms", "--timeout", "100000", "--save", "b", *touch], "timeout_s")
        self.assertFalse((self.folder / "ran").exists())
        self.assertFalse((self.folder / "b").exists())
        self.assertEqual((self.folder / "full" / "kept").read_text(), "mine")
        absent = self.assay("probe", "--unit", "ms", "--warmup", "0", "--save", "b", "--", "no-such-program")
        self.assertEqual(absent.returncode, 3, absent.stderr)
        self.assertIn("no-such-program", absent.stderr)

    def test_ctrl_c_leaves_a_bundle_that_resume_continues(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        script = f"test -e go || {{ echo > {fifo}; exec sleep 1000; }}; echo 5 ms"
        running = subprocess.Popen([self.program, "probe", "--unit", "ms", "-r", "2", "--warmup", "0", "--save", "b", "--", "sh",
                                    "-c", script], cwd=self.folder, stderr=subprocess.PIPE, start_new_session=True)
        fifo.read_text()  # the command runs
        running.send_signal(signal.SIGINT)
        error = running.communicate(timeout=60)[1].decode()
        self.assertEqual(running.returncode, 130, error)
        self.assertIn("assay run b/study.yaml -o b --resume", error)
        (self.folder / "go").touch()
        self.succeed("run", "b/study.yaml", "-o", "b", "--resume")
        self.succeed("verify", "b")
        self.assertEqual([row["latency_ms"] for row in rows_of(self.folder / "b")], ["5", "5"])

    def test_formats_and_folder(self):
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "run").write_text("#!/bin/sh\necho 7 ms\n")
        (self.folder / "sub" / "run").chmod(0o755)
        rows = self.succeed("probe", "--unit", "ms", "-r", "2", "--workdir", "sub", "-o", "csv", "--", "./run")
        self.assertEqual([row["ms"] for row in csv.DictReader(io.StringIO(rows))], ["7.0"] * 3)
        self.assertIn("| 7", self.succeed("probe", "--unit", "ms", "-r", "1", "-o", "md", "--", "echo", "7 ms"))
        self.assertIn("7 ms", self.assay("probe", "--unit", "ms", "-r", "1", "-v", "--", "echo", "7 ms").stderr)

    def test_without_a_figure_its_time_is_measured(self):
        found = self.probed("-r", "3", "--", "sleep", "0.05")
        self.assertEqual((found["unit"], found["pattern"], found["n"]), ("s", None, 3))
        for one in found["invocations"]:
            self.assertEqual(one["values"], [one["seconds"]])
            self.assertGreaterEqual(one["seconds"], 0.05)
        failed = self.probed("-r", "2", "--warmup", "0", "--", "false", status=1)
        self.assertEqual((failed["n"], failed["lost"]), (0, 2), "a command that fails has no time")

    def test_what_cant_be_probed_is_refused(self):
        self.assert_refused(["probe", "--skip", "1", "--", "true"], "--skip", "--pattern")
        self.assert_refused(["probe", "--save", "b", "--", "true"], "--save", "--pattern")
        self.assert_refused(["probe", "--pattern", "x", "--", "true"], "one named group")
        self.assert_refused(["probe", "--pattern", "(?<v>x", "--", "true"], "a regular expression")
        self.assert_refused(["probe", "--unit", "ms", "--", "no-such-program"], "no-such-program")
        self.assert_refused(["probe", "--unit", "ms", "--", ""], "an empty word")
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
