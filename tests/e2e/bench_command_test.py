"""`assay bench`: rows without a study file, every output format, and the plan and rows that `assay run` gives for the same study.

usage: bench_command_test.py ASSAY
"""

import csv
import io
import json
import os
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of
from resume_test import write_checkpoint

QUICK = ("-p", "5,9", "-n", "3", "-r", "5", "-t", "1", "--arms", "eager")
COLUMNS = ["cell_id", "arm", "model", "dtype", "cache", "compile_mode", "phase", "scenario", "batch", "prompt_tokens",
           "padded_tokens", "new_tokens", "repetition", "block", "order_index", "status", "cold", "tokens", "output_hash", "process"]


class BenchCommand(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-bench-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)
        self.environment = dict(os.environ, ASSAY_MODEL_CACHE=str(self.folder / "made"), TMPDIR=str(self.folder / "tmp"))
        (self.folder / "tmp").mkdir()

    def assay(self, *arguments, cwd=None):
        return subprocess.run([str(self.program), *map(str, arguments)], cwd=cwd or self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)

    def test_a_study_file_gives_the_same_plan_and_rows(self):
        self.succeed("bench", "model", *QUICK, "--cache", "dynamic,static", "--save", "benched")
        study = self.folder / "study.yaml"
        study.write_text(
            "name: bench\nmodels: {path: model}\n"
            "arms: {name: eager, backend: native, mode: eager, cache: [dynamic, static], threads: 1}\n"
            "phases: [prefill, kv_decode]\ntoken_lengths: 3\nrepetitions: 5\nwarmup: 1\nparity: after\n"
            "scenarios:\n- {name: prompt_5, phases: prefill}\n- {name: prompt_9, phases: prefill}\n"
            "- {name: prompt_1, phases: kv_decode}\n")
        self.succeed("run", study, "-o", "ran")
        plans = [json.loads((self.folder / name / "manifest.json").read_text())["plan_sha256"] for name in ("benched", "ran")]
        self.assertEqual(*plans)
        benched, ran = ([[row[column] for column in COLUMNS] for row in rows_of(self.folder / name)] for name in ("benched", "ran"))
        self.assertEqual(benched, ran)
        self.assertEqual(len(benched), 3 * 2 * (5 + 5), "5 processes, each with a warm-up")
        self.assertEqual({row[COLUMNS.index("status")] for row in benched}, {"ok"})
        self.succeed("verify", "benched")
        self.assertTrue((self.folder / "benched" / "report.md").exists())
        # Gates and routing stand on its page as `analyze` writes it.
        page = (self.folder / "benched" / "report.html").read_text()
        self.assertNotIn("0 rules", page)
        self.succeed("analyze", "benched")
        self.assertEqual((self.folder / "benched" / "report.html").read_text(), page)
        # The bundle's own study file is one that `run` takes.
        self.succeed("plan", "benched/study.yaml")

    def test_its_numbers_are_those_of_the_bundles_analysis(self):
        rows = json.loads(self.succeed("bench", "model", "-p", "5", "-n", "3", "-r", "8", "-t", "1", "--arms", "eager,compiled",
                                       "--save", "benched", "-o", "json"))
        found = json.loads(self.succeed("analyze", "benched", "-o", "json"))
        tests = {"prefill": "pp5", "kv_decode": "tg3"}
        means = {(tests[one["phase"]], one["arm"]): one for one in found["latencies"]}
        ratios = {(tests[one["phase"]], one["arm"]): one for one in found["contrasts"]}
        self.assertEqual({(row["test"], row["arm"]) for row in rows}, set(means))
        for row in rows:
            mean = means[row["test"], row["arm"]]
            self.assertAlmostEqual(row["avg_ns"] / 1e6, mean["mean_ms"], delta=2e-6)
            self.assertEqual(row["rows"], mean["n"])
            if row["arm"] == "eager":
                self.assertIsNone(row["ratio"])
                continue
            self.assertEqual(row["ratio"], ratios[row["test"], row["arm"]]["ratio"])
            self.assertEqual([row["ratio_low"], row["ratio_high"]], ratios[row["test"], row["arm"]]["ratio_interval"])
            self.assertEqual(row["verdict"], ratios[row["test"], row["arm"]]["verdict"])

    def test_each_process_makes_a_repetition_and_says_what_starts_cost(self):
        run = self.assay("bench", "model", "-p", "5", "-n", "0", "-r", "2", "-t", "1", "--arms", "eager,compiled", "--save", "benched")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("-r 2 becomes 5: each of an arm's 5 processes makes one repetition", run.stderr)
        self.assertRegex(run.stderr, r"note: 5 processes of each arm: starting them took [\d.]+ m?s, and preparing tests [\d.]+ m?s")
        rows = rows_of(self.folder / "benched")
        processes = {(row["arm"], row["process"]) for row in rows if int(row["repetition"]) >= 0}
        self.assertEqual(processes, {(arm, str(process)) for arm in ("eager", "compiled") for process in range(5)})
        self.assertEqual(self.assay("bench", "model", "-p", "5", "-n", "0", "-r", "2", "--print-study").stdout.count("repetitions: 5"), 1)

    def test_two_processes_have_a_range_and_no_interval(self):
        """Wherever an interval would stand, and called so."""
        printed = self.succeed("bench", "model", "-p", "5,9", "-n", "0", "-r", "8", "-t", "1", "--arms", "eager,compiled", "--print-study")
        (self.folder / "two.yaml").write_text(printed + "processes: 2\n")
        screen = self.succeed("run", "two.yaml", "-o", "two")
        self.assertIn("range: of processes, fewer than 4.", " ".join(screen.split()))
        found = json.loads(self.succeed("analyze", "two", "-o", "json"))
        means = {}
        for row in rows_of(self.folder / "two"):
            if int(row["repetition"]) >= 0:
                means.setdefault((row["arm"], row["scenario"]), {}).setdefault(row["process"], []).append(float(row["latency_ms"]))

        def process_means(arm, scenario):
            """The mean of each process, in the order of the processes."""
            return [sum(ms) / len(ms) for _, ms in sorted(means[arm, scenario].items())]

        for one in found["latencies"]:
            self.assertIsNone(one["mean_interval_ms"])
            range_ms = sorted(process_means(one["arm"], one["scenario"]))
            for printed_ms, mean in zip(one["mean_process_range_ms"], range_ms, strict=True):
                self.assertAlmostEqual(printed_ms, mean, places=6)
        ratios = {}  # of the two processes of each round
        for _, scenario in means:
            both_arms = zip(process_means("compiled", scenario), process_means("eager", scenario), strict=True)
            ratios[scenario] = [mean / base for mean, base in both_arms]
        for one in found["contrasts"]:
            self.assertIsNone(one["ratio_interval"])
            self.assertLessEqual(one["ratio_process_range"][0], one["ratio"])
            self.assertGreaterEqual(one["ratio_process_range"][1], one["ratio"])
        # The ratio of both prompts may lie outside: a mean over rounds and prompts is no mean over prompts of each round.
        both = sorted(statistics.geometric_mean(round) for round in zip(*ratios.values(), strict=True))
        combined, = found["combined"]
        self.assertIsNone(combined["ratio_interval"])
        # On a busy machine one arm alone may have slow calls: the range goes as far as the other's may lie.
        at = 1 if combined["slow_arm"] == combined["arm"] else 0
        both[at] *= combined["unseen_slow_factor"] ** (1 if at == 1 else -1)
        for printed, ratio in zip(combined["ratio_process_range"], both, strict=True):
            self.assertAlmostEqual(printed, ratio, places=6)
        for text in (self.succeed("analyze", "--full", "two"), (self.folder / "two" / "report.md").read_text(),
                     (self.folder / "two" / "report.html").read_text()):
            self.assertRegex(text, r"range [\d.]+-[\d.]+")
            self.assertIn("too few for an interval", " ".join(text.split()))

    def test_the_study_is_printed_and_not_run(self):
        printed = self.succeed("bench", "model", *QUICK, "--print-study")
        (self.folder / "printed.yaml").write_text(printed)
        self.assertIn("30 rows", self.succeed("plan", "printed.yaml"))
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_every_format_has_a_row_a_test_and_arm(self):
        tests = [("pp5", "eager"), ("pp9", "eager"), ("tg3", "eager")]
        rows = json.loads(self.succeed("bench", "model", *QUICK, "-o", "json"))
        self.assertEqual([(row["test"], row["arm"]) for row in rows], tests)
        for row in rows:
            self.assertEqual(len(row["samples_ns"]), 5)
            tokens = (row["n_gen"] or row["n_prompt"]) * row["batch"]
            self.assertAlmostEqual(row["avg_ts"], tokens * 1e9 / row["avg_ns"], delta=1e-3 * row["avg_ts"])
            self.assertEqual(row["model_size"], 4 * row["model_n_params"], "fp32")
        lines = self.succeed("bench", "model", *QUICK, "-o", "jsonl").splitlines()
        self.assertEqual([(json.loads(line)["test"], json.loads(line)["arm"]) for line in lines], tests)
        table = list(csv.DictReader(io.StringIO(self.succeed("bench", "model", *QUICK, "-o", "csv"))))
        self.assertEqual([(row["test"], row["arm"]) for row in table], tests)
        database = sqlite3.connect(":memory:")
        database.executescript(self.succeed("bench", "model", *QUICK, "-o", "sql"))
        self.assertEqual(database.execute("SELECT test, arm FROM assay_bench").fetchall(), tests)
        self.assertEqual(database.execute("SELECT count(*) FROM assay_bench WHERE avg_ts > 0 AND ratio IS NULL").fetchone(), (3,))
        markdown = self.succeed("bench", "model", *QUICK, "-o", "md").splitlines()
        self.assertEqual([cell.strip() for cell in markdown[0].strip("|").split("|")][:5], ["model", "size", "params", "backend", "threads"])
        self.assertRegex(markdown[2], r"\| +pp5 \| +[\d.]+ ± [\d.]+ \|")
        text = self.succeed("bench", "model", *QUICK)
        self.assertRegex(text, r"(?m)^eager +tg3 +[\d.]+ ± [\d.]+ ")
        self.assertEqual(list((self.folder / "tmp").iterdir()), [], "the bundle is gone")

    def test_an_architecture_is_made_once(self):
        first = self.assay("bench", "tiny-gpt2", *QUICK)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("making tiny-gpt2 with random weights", first.stderr)
        self.assertEqual([path.name for path in (self.folder / "made").iterdir()], ["tiny-gpt2"])
        again = self.assay("bench", "tiny-gpt2", *QUICK)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("making", again.stderr)

    def test_a_folder_goes_before_an_architecture(self):
        write_checkpoint(self.folder / "tiny-gpt2", 1)
        rows = json.loads(self.succeed("bench", "tiny-gpt2", *QUICK, "-o", "json"))
        self.assertEqual(rows[0]["model_filename"], "tiny-gpt2")
        self.assertFalse((self.folder / "made").exists())

    def test_depth_and_batches_are_named(self):
        rows = json.loads(self.succeed("bench", "model", "-p", "0", "-n", "2,3", "-d", "6", "-b", "1,2", "-r", "2", "-t", "1",
                                       "--arms", "eager", "-o", "json"))
        self.assertEqual([row["test"] for row in rows], ["tg2 @ d6", "tg2 @ d6 b2", "tg3 @ d6", "tg3 @ d6 b2"])
        self.assertEqual({(row["n_depth"], row["n_prompt"]) for row in rows}, {(6, 0)})
        rows = json.loads(self.succeed("bench", "model", "-p", "0", "-n", "2", "-d", "0,6", "-t", "1,2", "-r", "2",
                                       "--arms", "eager", "-o", "json"))
        self.assertEqual([(row["arm"], row["n_threads"], row["n_depth"]) for row in rows],
                         [("eager-t1", 1, 1), ("eager-t2", 2, 1), ("eager-t1", 1, 6), ("eager-t2", 2, 6)])

    def start_long(self):
        """A bench that goes on for far longer than the test."""
        bench = subprocess.Popen([self.program, "bench", "model", "-p", "9", "-n", "0", "-r", "20000", "-t", "1", "--arms", "eager",
                                  "-o", "json"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(bench.communicate)
        self.addCleanup(bench.kill)
        return bench

    def kept_folder(self, bench, others=()):
        """The folder of its bundle, once it is there."""
        while bench.poll() is None:
            new = [path for path in (self.folder / "tmp").iterdir() if path.name.startswith("assay-bench.") and path not in others]
            if new and (new[0] / "bundle" / "manifest.json").exists():
                return new[0]
        self.fail(bench.communicate()[1])

    def test_a_crash_of_an_arm_of_its_own_is_no_success(self):
        bench = subprocess.Popen([self.program, "bench", "model", "-p", "9", "-n", "0", "-r", "100", "-t", "1", "--arms", "eager",
                                  "-o", "json"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        struck = set()
        while bench.poll() is None:
            if not list((self.folder / "tmp").glob("assay-bench.*/bundle/prefill/metrics.csv")):
                continue  # nothing is measured yet
            for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
                try:
                    pid, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
                    if parent == bench.pid and b"\0worker\0" in (stat.parent / "cmdline").read_bytes():
                        os.kill(pid, signal.SIGSEGV)
                        struck.add(pid)
                except (OSError, IndexError):
                    continue  # it has ended
        out, err = bench.communicate()
        self.assertTrue(struck, err)
        self.assertEqual(bench.returncode, 1, err)
        self.assertGreater(sum(row["lost"] for row in json.loads(out)), 0, "the others are shown")
        self.assertRegex(err, r"assay: expected [\d,]+ rows \(warm-ups included\) to be ok, found .*\d+ crash")

    def test_a_worker_survives_a_second_shape(self):
        for _ in range(3):
            rows = json.loads(self.succeed("bench", "tiny-llama", "-p", "64", "-n", "0", "-b", "1,4", "-r", "3", "--arms", "eager",
                                           "-o", "json"))
            self.assertEqual([row["lost"] for row in rows], [0, 0])

    def test_an_arm_that_cannot_run_is_no_success(self):
        self.environment["ASSAY_TORCH_PYTHON"] = "/nowhere/python"
        done = self.assay("bench", "model", "-p", "5", "-n", "0", "-r", "2", "-t", "1", "--arms", "eager,torch:eager", "-o", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([row["lost"] > 0 for row in json.loads(done.stdout)], [False, True])

    def test_the_next_one_removes_what_a_killed_one_left(self):
        killed = self.start_long()
        left = self.kept_folder(killed)
        killed.kill()
        killed.wait()
        self.assertTrue((left / "bundle").exists())
        living = self.start_long()
        in_use = self.kept_folder(living, [left])
        self.assertFalse(left.exists())
        own = self.folder / "tmp" / "assay-bench.of-mine"
        own.mkdir()
        self.succeed("bench", "model", *QUICK)
        self.assertTrue((in_use / "bundle" / "manifest.json").exists(), "its process lives")
        self.assertTrue(own.exists(), "no name of assay's")
        living.send_signal(signal.SIGINT)
        self.assertEqual(living.wait(), 130)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [own])

    def test_what_is_wrong_is_named(self):
        self.assert_refused(["bench", "modle"], "checkpoint's folder", "modle")
        for habit, here in (("--reps", "-r"), ("-ngl", "--device cuda"), ("--n-prompts", "--n-prompt")):
            done = self.assay("bench", "model", habit, "5")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertRegex(done.stderr, rf'did you mean "?{here}"?\?')
        self.assert_refused(["bench", "tiny-lama"], "did you mean")
        self.assert_refused(["bench", "model", "./model"], "each model once", "./model")
        self.assert_refused(["bench", "model", "-p", "0", "-n", "0"], "at least one length above 0")
        self.assert_refused(["bench", "model", "-p", "5,5"], "each value once")
        self.assert_refused(["bench", "model", "-p", "x"], "an integer from 0")
        self.assert_refused(["bench", "model", "-b", "0"], "an integer from 1")
        self.assert_refused(["bench", "model", "-p", "100000"], "positions")
        self.assert_refused(["bench", "model", "--arms", "compield"], "did you mean", "--print-study")
        self.assert_refused(["bench", "model", "--cache", "big"], "dynamic")
        self.assert_refused(["bench", "model", "-o", "xml"], "jsonl")
        (self.folder / "full").mkdir()
        (self.folder / "full" / "file").write_text("x")
        self.assert_refused(["bench", "model", *QUICK, "--save", "full"], "full")
        self.assert_refused(["bench", "model", *QUICK, "--save", ""], "--save", "expected a folder")


if __name__ == "__main__":
    unittest.main()
