"""A study's `processes`: rows spread over worker processes, a plan that says so, and a resume after a kill.

usage: processes_test.py ASSAY
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of
from resume_test import committed as committed_bytes
from resume_test import write_checkpoint

PROCESSES, REPETITIONS, WARMUP = 3, 24, 1
CELLS = 4  # two arms, two phases
ROUND = CELLS * REPETITIONS // PROCESSES  # units: a unit is one repetition of a cell
UNITS = PROCESSES * ROUND


class Processes(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-processes-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)
        self.study = self.write_study(phases=["prefill", "kv_decode"], repetitions=REPETITIONS, warmup=WARMUP,
                                      processes=PROCESSES)

    def shares(self, bundle):
        """The repetitions of each process of each cell, without warm-ups."""
        found = {}
        for row in rows_of(bundle):
            shares = found.setdefault(row["cell_id"], {})
            shares.setdefault(int(row["process"]), []).append(int(row["repetition"]))
        self.assertEqual(len(found), CELLS)
        return {cell: [[r for r in shares[p] if r >= 0] for p in range(len(shares))] for cell, shares in found.items()}

    def test_a_compiler_is_asked_and_tried_once_a_run(self):
        calls = self.folder / "calls"
        fake = self.folder / "fake-c++"
        fake.write_text(f'#!/bin/sh\necho "$1" >> {calls}\nexec c++ "$@"\n')
        fake.chmod(0o755)
        arms = [{"name": "compiled", "backend": "native", "mode": "compiled", "cache": ["dynamic", "static"], "threads": 1}]
        study = self.write_study("compiled.yaml", arms=arms, processes=2, repetitions=4, phases=["prefill"])
        variables = {**os.environ, "ASSAY_CXX": str(fake), "ASSAY_KERNEL_CACHE": str(self.folder / "kernels")}
        done = subprocess.run([self.program, "run", study, "-o", "compiled"], cwd=self.folder, env=variables,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        evidence = [json.loads(path.read_text()) for path in (self.folder / "compiled").rglob("evidence.json")]
        self.assertEqual([(cell["compiler_real"], len(cell["processes"])) for cell in evidence], [("yes", 2)] * 2)
        self.assertEqual(calls.read_text().splitlines().count("--version"), 1)

    def test_rows_are_spread_over_processes_and_the_bundle_is_whole(self):
        screen = self.succeed("run", self.study, "-o", "bundle")
        bundle = self.folder / "bundle"
        self.succeed("verify", bundle)
        self.assertLessEqual(len(screen.splitlines()), 40, screen)
        self.assertLessEqual(max(map(len, screen.splitlines())), 100, screen)
        self.assertIn("findings: bundle/analysis/findings.json\nin full:  assay analyze --full bundle\nreport:   bundle/report.html\n", screen)
        self.assertTrue(screen.endswith("report:   bundle/report.html\n"), screen)
        self.assertTrue((bundle / "report.html").exists())
        self.assertTrue((bundle / "report.md").exists())
        self.assertEqual(self.succeed("analyze", "bundle"), screen, "the end of a run is its analysis")
        for cell, shares in self.shares(bundle).items():
            self.assertEqual(shares, [list(range(8)), list(range(8, 16)), list(range(16, 24))], cell)
        rows = sorted(rows_of(bundle), key=lambda row: int(row["order_index"]))
        process = [int(row["process"]) for row in rows]
        self.assertEqual(process, sorted(process), "rounds of all arms, one after the other")
        for row in rows:
            self.assertEqual(row["cold"] == "true", int(row["repetition"]) < 0, row)
        self.assertEqual(sum(row["cold"] == "true" for row in rows), CELLS * PROCESSES * WARMUP)
        for path in bundle.glob("cells/*/evidence.json"):
            evidence = json.loads(path.read_text())
            self.assertEqual([one["process"] for one in evidence["processes"]], [0, 1, 2])
            self.assertTrue(all(one["load_seconds"] > 0 for one in evidence["processes"]))
        self.assertEqual(len(list(bundle.glob("cells/*/parity.json"))), CELLS)
        self.succeed("analyze", bundle)

    def test_processes_that_take_turns_share_cpus(self):
        cpus = sorted(os.sched_getaffinity(0))
        arms = [{"name": mode, "backend": "native", "mode": mode, "cache": "static", "threads": 1} for mode in ("eager", "compiled")]

        def allowed(bundle, **changes):
            """CPUs that the kernel let each process of each cell run on."""
            study = self.write_study(phases=["kv_decode"], repetitions=4, warmup=0, processes=2, arms=arms, baseline="eager", **changes)
            self.succeed("run", study, "-o", bundle)
            paths = list((self.folder / bundle).glob("cells/*/evidence.json"))
            self.assertEqual(len(paths), 2)
            return [[one["placement"]["cpus_allowed"] for one in json.loads(path.read_text())["processes"]] for path in paths]

        all_cpus = pathlib.Path("/proc/self/status").read_text().split("Cpus_allowed_list:")[1].split()[0]
        first, second = (str(cpus[i % len(cpus)]) for i in range(2))
        self.assertEqual(allowed("shared"), [[first, second]] * 2, "both arms on one CPU, then on the next")
        self.assertEqual(allowed("free", cpus="free"), [[all_cpus] * 2] * 2)
        unlike = [{**arms[0], "threads": 2}, arms[1]]
        self.assert_refused(["plan", self.write_study(arms=unlike, baseline="eager", cpus="together")], "cpus", "one number of `threads`")

    def test_the_plan_shows_them_and_counts_their_starts(self):
        plan = json.loads(self.succeed("plan", self.study, "--units", "-o", "json"))
        self.assertEqual(plan["processes"], PROCESSES)
        self.assertEqual(plan["counts"]["units"], UNITS)
        self.assertEqual(plan["counts"]["rows"], CELLS * (REPETITIONS + PROCESSES * WARMUP))
        self.assertEqual([unit["process"] for unit in plan["units"]], sorted(list(range(PROCESSES)) * ROUND))
        once = self.write_study("once.yaml", phases=["prefill", "kv_decode"], repetitions=REPETITIONS, warmup=WARMUP)
        starting = json.loads(self.succeed("plan", once, "-o", "json"))["estimate_parts_s"]["starting"]
        self.assertAlmostEqual(plan["estimate_parts_s"]["starting"], starting * (PROCESSES + 1) / 2)
        self.assertIn("processes: 3 (as the study says)\n  An arm's processes run in turn", self.succeed("plan", self.study))

    def test_a_study_that_does_not_say_gets_several(self):
        study = self.write_study(phases=["prefill"], repetitions=12, warmup=0, processes=None)
        plan = json.loads(self.succeed("plan", study, "-o", "json"))
        self.assertEqual(plan["processes"], 5)
        self.assertIn("processes: 5 (by default: every arm is estimated to start", self.succeed("plan", study))
        self.succeed("run", study, "-o", "bundle")
        bundle = self.folder / "bundle"
        self.assertEqual(json.loads((bundle / "manifest.json").read_text())["study"]["processes"], 5)
        self.assertEqual({row["process"] for row in rows_of(bundle)}, set("01234"))
        few = self.write_study(repetitions=3, processes=None)
        self.assertIn("processes: 3 (by default: each process makes one of the 3 repetitions)", self.succeed("plan", few))

    def test_more_processes_than_repetitions_are_refused(self):
        study = self.write_study(repetitions=2, processes=3)
        self.assert_refused(["run", study, "-o", "bundle"], "processes", "at most as many", "found 3")
        self.assertFalse((self.folder / "bundle").exists())

    def test_a_study_that_stops_when_it_knows(self):
        study = self.write_study(phases=["prefill", "kv_decode"], repetitions=6, warmup=1, processes=2, order="interleaved",
                                 stopping={"max_repetitions": 24, "decide": True, "margin": 0.5})
        plan = json.loads(self.succeed("plan", study, "-o", "json"))
        self.assertEqual((plan["stopping"]["least_rounds"], plan["stopping"]["most_rounds"]), (5, 8))
        self.assertLess(plan["stopping"]["without_estimate_s"], plan["stopping"]["least_estimate_s"], "two rounds")
        self.assertLess(plan["stopping"]["least_estimate_s"], plan["estimate_s"])
        self.assertEqual(plan["counts"]["rows"], CELLS * 8 * (3 + 1))
        self.assertIn("a stratum ends after 5 to 8 rounds of processes (15 to 24 repetitions", self.succeed("plan", study))
        self.succeed("run", study, "-o", "bundle")
        bundle = self.folder / "bundle"
        self.succeed("verify", bundle)
        self.succeed("analyze", bundle)
        for path in bundle.glob("cells/*/evidence.json"):
            evidence = json.loads(path.read_text())
            stopping = evidence["stopping"]
            self.assertTrue(5 <= stopping["rounds"] <= 8)
            self.assertTrue(stopping["decided"] or stopping["rounds"] == 8)
            self.assertEqual(len(rows_of(bundle, cell_id=evidence["cell_id"])), stopping["rounds"] * (3 + 1))
            for process in evidence["processes"]:
                self.assertGreater(process["placement"]["resident_bytes"], 0)
        self.assert_refused(["plan", self.write_study(order="sequential", stopping={"max_repetitions": 24, "decide": True})],
                            "stopping.decide", "order interleaved", "found sequential")

    def killed_run(self, bundle, units):
        """Kills a run once so many units are committed; how many were when it was dead."""
        commits = bundle / "commits.jsonl"

        def committed():
            # A record without a unit is of files of cells alone.
            return len(re.findall(rb'"unit":\d.*\n', commits.read_bytes())) if commits.exists() else 0

        run = subprocess.Popen([self.program, "run", self.study, "-o", bundle], cwd=self.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while committed() < units and run.poll() is None:
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
        return committed()

    def test_a_kill_in_the_middle_of_a_round_is_resumed(self):
        for attempt in range(20):  # this process may be given a CPU too late
            bundle = self.folder / f"bundle-{attempt}"
            committed = self.killed_run(bundle, ROUND + ROUND // 4)
            if ROUND < committed < 2 * ROUND:
                break
        self.assertTrue(ROUND < committed < 2 * ROUND, f"{committed} units committed")
        safe = committed_bytes(bundle)
        self.succeed("run", self.study, "-o", bundle, "--resume")
        self.succeed("verify", bundle)
        for name, content in safe.items():
            self.assertTrue((bundle / name).read_bytes().startswith(content), f"{name} lost committed rows")
        split = 0
        for cell, shares in self.shares(bundle).items():
            # The second round's share in one process, or in one before the kill and one after it.
            self.assertIn(len(shares), (3, 4), cell)
            split += len(shares) == 4
            self.assertEqual(sum(shares, []), list(range(REPETITIONS)), cell)
            self.assertEqual(shares[0], list(range(8)))
            self.assertEqual(shares[-1], list(range(16, 24)))
        self.assertGreaterEqual(split, 1)


if __name__ == "__main__":
    unittest.main()
