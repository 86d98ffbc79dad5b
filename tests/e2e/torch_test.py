"""Two small studies with arms of backend torch: one compiles, the other recompiles until it is given up.

usage: torch_test.py ASSAY SOURCE FAKE_WORKER      exit 77 where there is no torch environment

Each process that imports torch and transformers takes as long as a dozen other tests, so everything that can be asked of
these runs is asked of them. The ready studies, padding, symbolic lengths and all families: torch_smoke_test.py.
"""

import gzip
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

from program import recompile_tail, rows_of
from resume_test import write_checkpoint
from torch_program import ASSAY, ENVIRONMENT, SOURCE, TorchProgram, main

FAKE_WORKER = Path(sys.argv[3]).resolve()
TORCH = {"backend": "torch", "device": "cpu"}
COMMON = {
    "models": [{"path": "model", "dtype": "fp32"}], "baseline": "native", "processes": 1, "warmup": 1, "timeout_s": 300,
    "compile_timeout_s": 600, "parity": "after",
}
NATIVE = {"name": "native", "backend": "native", "mode": "eager", "cache": "dynamic", "threads": 1}
# Traced. One graph with generated code, that of the step: each graph takes half a minute.
COMPILED = COMMON | {
    "name": "torch-compiled",
    "arms": [NATIVE, {"name": "eager", **TORCH, "mode": "eager", "cache": "dynamic"},
             {"name": "compiled", **TORCH, "mode": "default", "cache": "static", "dynamic": "false",
              "compile_phases": "decode"}],
    "phases": ["kv_decode"], "scenarios": [{"name": "mixed", "prompt_tokens": [5, 8]}],
    "padding": {"scope": "scenario", "multiple_of": 8}, "token_lengths": [4], "batch": [2], "repetitions": 4,
    "require": {"cuda": True, "triton": 3, "compiler_real": True, "graph_breaks": 0, "parity": True, "deterministic": True},
}
# Three graphs for four lengths, and one for another scenario.
CHURN = COMMON | {
    "name": "torch-churn",
    "arms": [NATIVE, {"name": "churn", **TORCH, "mode": "default", "torch_backend": "aot_eager", "cache": "dynamic",
                      "dynamic": "false", "recompile_limit": 3, "keep_cache": True, "explain": False}],
    "phases": ["prefill"],
    "scenarios": [{"name": "churn", "prompt_tokens": [5, 9, 14, 20]}, {"name": "one", "prompt_tokens": [8]}],
    "repetitions": 8, "require": {"compiler_real": True},
}
EAGER = {
    "name": "interpreters", "models": [{"arch": "tiny-llama", "dtype": "fp32"}],
    "arms": [{"name": "eager", **TORCH, "mode": "eager", "cache": "dynamic"}], "phases": ["prefill"],
    "scenarios": ["single_micro"], "repetitions": 6, "processes": 2, "warmup": 1, "timeout_s": 300,
}
# An interpreter whose packages are those of its answer, and whose worker is the harness tests' own.
INTERPRETER = """#!/bin/sh
case "$*" in
*probe.py) echo '{probe}' ;;
*) exec "{fake_worker}" ;;
esac
"""
PROBE = {"python": "3.12.0", "torch": "2.7.0", "transformers": "4.52.0", "cxx": "g++"}


class Torch(TorchProgram):
    @classmethod
    def run_all(cls):
        write_checkpoint(cls.folder / "model", 1)
        return {"compiled": cls.run_study("compiled", COMPILED, "--profile"), "churn": cls.run_study("churn", CHURN)}

    def interpreter(self, name, **probe):
        path = self.folder / name
        path.write_text(INTERPRETER.format(probe=json.dumps(PROBE | probe), fake_worker=FAKE_WORKER))
        path.chmod(0o755)
        return path

    def test_every_study_runs_to_its_end_and_loses_nothing(self):
        for name, run in self.runs.items():
            with self.subTest(name):
                self.assertEqual(run.returncode, 0, run.stderr)
                self.succeed("verify", self.folder / name)
                self.assertEqual({row["status"] for row in self.rows(name)}, {"ok"})

    def test_arms_agree_and_give_the_same_output_every_time(self):
        for name in self.runs:
            cells = {row["cell_id"]: row["arm"] for row in self.rows(name)}
            for cell, arm in cells.items():
                parity = json.loads((self.folder / name / "cells" / cell / "parity.json").read_text())
                self.assertEqual((parity["baseline_arm"], parity["passed"]), ("native", True), f"{cell}: {parity}")
                if name == "compiled":
                    self.assertEqual(parity["compared_tokens"], 2 * 2 * (4 + 1), "prompts, batch, tokens")
                for stats in parity.get("logit_stats", {}).get(arm, []):
                    self.assertEqual(len(stats["steps"]["others"]), 4 + 1 if name == "compiled" else 1)
            self.assert_one_output(name)

    def test_variable_lengths_recompile_and_the_rows_say_so(self):
        counters = self.counters("churn", "churn", scenario="churn")
        self.assertEqual((counters["unique_graphs"], counters["recompiles"]), (3, 2))
        rows = self.rows("churn", arm="churn", scenario="churn")
        recompiled = [row for row in rows if int(row["recompiles_delta"]) > 0]
        self.assertEqual(len(recompiled), 2)
        for row in rows:
            compile_ms = float(row["compile_ms_delta"])
            self.assertEqual(compile_ms > 0, row in recompiled or int(row["recompile_limit_hits_delta"]) > 0, row)
            self.assertGreater(float(row["latency_ms"]), 0.99 * compile_ms, "its call waits for the compiler, on two clocks")
        found, kinds = self.findings("churn", status=1)
        (tail,) = [tail for tail in found["tails"] if (tail["arm"], tail["scenario"]) == ("churn", "churn")]
        self.assertGreaterEqual(tail["slow_recompiled"], 1)
        self.assertEqual(tail["slow_recompiled"], tail["recompiled"], "every recompile is slow")
        self.assertEqual({kind for kind, arm in kinds if arm == "churn"} & {"recompile_tail"}, recompile_tail(tail))

    def test_the_recompile_limit_is_hit_and_recorded(self):
        self.assertEqual(self.counters("churn", "churn", scenario="churn")["recompile_limit_hits"], 1)
        self.assertEqual(sum(int(row["fallbacks_delta"]) for row in self.rows("churn", arm="churn")), 2, "the fourth length")
        found, kinds = self.findings("churn", status=1)
        self.assertIn(("fallback", "churn"), kinds)
        (cost,) = [cost for cost in found["compile_costs"] if (cost["arm"], cost["scenario"]) == ("churn", "churn")]
        self.assertRegex(cost["problem"], "recompile_limit|cache_size_limit")

    def test_compiled_is_proven_and_a_label_is_not(self):
        for name, arm, scenario, verdict in (("compiled", "compiled", "mixed", "yes"), ("churn", "churn", "one", "label_only"),
                                             ("churn", "churn", "churn", "fallback"),
                                             ("compiled", "eager", "mixed", "not_applicable")):
            (evidence,) = self.evidence(name, arm, scenario=scenario)
            self.assertEqual(evidence["compiler_real"], verdict, f"{name} {arm} {evidence['reported']['reasons']}")

    def test_a_compiled_arm_is_explained_and_the_time_of_it_is_beside_that_of_preparing(self):
        (evidence,) = self.evidence("compiled", "compiled")
        reported = evidence["reported"]
        self.assertEqual([(one["part"], one["graphs"], one["graph_breaks"]) for one in reported["explain"]],
                         [("prefill", 1, 0), ("decode", 1, 0)])
        self.assertGreater(reported["explain_seconds"], 0)
        self.assertEqual(evidence["worker"]["prepare_seconds"], reported["prepared"][-1]["seconds"])
        self.assertGreater(evidence["worker"]["prepare_seconds"], 0)

    def test_a_cells_cache_folders_are_its_own_unless_it_keeps_the_users(self):
        (evidence,) = self.evidence("compiled", "compiled")
        reported = evidence["reported"]
        self.assertIs(reported["cache_folders"]["fresh"], True)
        self.assertEqual(reported["counters"]["fx_cache_hits"], 0)
        self.assertGreater(reported["kernels"]["files_written"], 0)
        for evidence in self.evidence("churn", "churn"):
            self.assertIs(evidence["reported"]["cache_folders"]["fresh"], False)

    def test_a_studys_requirements_have_one_verdict(self):
        found, _ = self.findings("compiled")
        self.assertEqual(found["requirements"]["verdict"], "not_decided")
        status = {one["name"]: one["status"] for one in found["requirements"]["criteria"]}
        here = dict.fromkeys(("compiler_real", "graph_breaks", "parity", "deterministic"), "met")
        self.assertEqual(status, here | {"cuda": "not_applicable", "triton": "not_applicable"})
        self.assertIn("NOT DECIDED", self.succeed("analyze", self.folder / "compiled"))
        failed = self.call("analyze", self.folder / "churn", "--full")
        self.assertEqual(failed.returncode, 1, "a requirement that isn't met")
        self.assertRegex(failed.stdout, r'FAILED[^#]*compiler_real true: NOT MET')

    def test_the_time_of_a_gpu_study_is_told_with_its_assumptions(self):
        plan = json.loads(self.succeed_with("plan", SOURCE / "studies/tr147-static-cache.yaml", "-o", "json"))
        parts = plan["estimate_parts_s"]
        self.assertAlmostEqual(sum(parts.values()), plan["estimate_s"])
        # 36 cells took 1,650 s on the GPU whose figures the rules are.
        self.assertTrue(1650 / 2 < plan["estimate_s"] < 1650 * 2, parts)
        text = self.succeed_with("plan", SOURCE / "studies/tr147-static-cache.yaml")
        self.assertIn("from one host with an H200", text)

    def test_without_a_compiler_it_is_a_fallback(self):
        """The interpreter says so here; torch_smoke_test.py has one that finds none."""
        python = self.interpreter("python-bare", cxx=None, cxx_error="/nonexistent/g++ is not on the path")
        arm = {"name": "default", **TORCH, "mode": "default", "cache": "static"}
        run = self.run_study("no-compiler", EAGER | {"arms": [arm], "processes": 1}, ASSAY_TORCH_PYTHON=str(python))
        self.assertEqual(run.returncode, 0, run.stderr)
        (evidence,) = self.evidence("no-compiler", "default")
        self.assertEqual(evidence["gate"], evidence["gate"] | {"verdict": "fallback", "fallback": "eager"})
        self.assertIn("/nonexistent/g++", evidence["gate"]["reason"])
        self.assertIn("/nonexistent/g++", run.stderr)

    def test_a_profile_stands_arm_beside_arm(self):
        found, _ = self.findings("compiled")
        arms = {profile["arm"]: profile for profile in found["profiles"]}
        self.assertEqual(set(arms), {"native", "eager", "compiled"})
        for arm in ("eager", "compiled"):
            self.assertIsNone(arms[arm]["missing"])
            self.assertGreater(arms[arm]["kernels_launched"], arms[arm]["distinct_kernels"])
            self.assertLessEqual(len(arms[arm]["top"]), 10)
            row = self.rows("compiled", arm=arm, repetition="0")[0]
            with gzip.open(self.folder / "compiled" / "cells" / row["cell_id"] / "trace.json.gz", "rt") as file:
                self.assertTrue(json.load(file)["traceEvents"])
        self.assertIn("## Profile", self.succeed("analyze", self.folder / "compiled", "-o", "md"))

    def test_the_page_shows_the_traces_beside_one_another(self):
        """Real traces, of both arms on one scale: what the profiler writes is what the page reads."""
        self.succeed("report", self.folder / "compiled")
        page = (self.folder / "compiled" / "report.html").read_text()
        figure = re.search(r'<figure id="timelines".*?</figure>', page, re.S)
        self.assertTrue(figure, "no figure of timelines")
        found, _ = self.findings("compiled")
        alternative = re.search(r'aria-label="Traced repetitions of kv_decode ([^"]*)"', figure[0])
        self.assertTrue(alternative, figure[0][:500])
        for profile in found["profiles"]:
            arm = profile["arm"]
            if arm == "native":
                continue
            drawn = {name: count for count, name in re.findall(rf"\b{arm}: (\d+) ([^,]+), busy [\d.]+ %", alternative[1])}
            graphs = sum(int(count) for name, count in drawn.items() if name.startswith("compiled graph"))
            self.assertEqual(graphs > 0, arm == "compiled", alternative[1])
            self.assertEqual(int(drawn["operators"]) + graphs, profile["kernels_launched"], "the worker counts the same")
        self.assertIn("plots/timelines.svg", (self.folder / "compiled" / "report.md").read_text())

    def test_decoding_stands_beside_the_limit_of_the_memory(self):
        found, _ = self.findings("compiled")
        shares = [one for one in found["read_shares"] if one["arm"] != "native"]  # whose weights fit the cache
        self.assertEqual({(one["arm"], one["phase"]) for one in shares}, {("eager", "kv_decode"), ("compiled", "kv_decode")})
        for one in shares:
            self.assertGreater(one["share"], 0)
            self.assertAlmostEqual(one["share"], one["bytes_per_s"] / one["limit_bytes_per_s"])

    def test_the_identity_names_each_arms_own_stack(self):
        for name, arm, generator in (("compiled", "compiled", "g++"), ("churn", "churn", "aot_eager")):
            manifest = json.loads((self.folder / name / "manifest.json").read_text())
            arms = manifest["identity"]["arms"]
            self.assertNotIn("framework_build", arms["native"])
            self.assertRegex(arms[arm]["framework_build"], r"^torch \d.* transformers \d.* python 3")
            self.assertIn(generator, arms[arm]["code_generator"])
            environment = json.loads((self.folder / name / "environment.json").read_text())
            self.assertEqual(environment["arms"][arm]["interpreter"]["executable"], ENVIRONMENT["ASSAY_TORCH_PYTHON"])

    def test_an_installation_brings_its_worker_and_its_gate_speaks_before_the_run(self):
        prefix = self.folder / "installed"
        done = subprocess.run(["cmake", "--install", ASSAY.parent, "--prefix", prefix], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((prefix / "share/assay/workers/torch/worker.py").is_file())
        self.assertFalse(list(prefix.rglob("test_*.py")))
        study = prefix / "share/assay/studies/smoke/tr147-static-cache.yaml"
        done = self.call("plan", "--probe", study, "-o", "json", program=prefix / "bin/assay")
        self.assertEqual(done.returncode, 0, done.stderr)
        here = {arm["arm"]: arm["here"] for arm in json.loads(done.stdout)["arms"]}
        self.assertEqual(here, dict.fromkeys(("eager-dynamic", "eager-static", "default-dynamic", "default-static"), "ready")
                         | dict.fromkeys(("reduce-overhead", "mark-step"), "fallback")
                         | {"manual-cudagraph": "impossible"})
        bare = self.succeed_with("plan", study, ASSAY_TORCH_PYTHON="/nonexistent/python")
        self.assertIn("/nonexistent/python", bare)
        refused = self.run_study("bare", EAGER, ASSAY_TORCH_PYTHON="/nonexistent/python")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertRegex(refused.stderr, r'\Aassay: arm "eager": .*/nonexistent/python.*\n\Z')

    def test_two_interpreters_stand_side_by_side_in_one_bundle(self):
        sides = {side: self.interpreter(f"python-{side}") for side in ("base", "cand")}
        study, bundle = self.folder / "interpreters.yaml", self.folder / "interpreters"
        study.write_text(json.dumps(EAGER))
        found = json.loads(self.succeed_with("compare", "--run", sides["base"], sides["cand"], study, "--bundle", bundle,
                                             "-o", "json"))
        self.assertTrue(found["in_one_run"])
        self.assertEqual([cell["judged_by"] for cell in found["cells"]], ["pairs of processes"])
        manifest = json.loads((bundle / "manifest.json").read_text())
        self.assertEqual(manifest["study"]["sides"], {side: str(path) for side, path in sides.items()})
        arms = {arm: len(list(rows)) for arm, rows in itertools.groupby(
            sorted(row["arm"] for row in rows_of(bundle, cold="false")))}
        self.assertEqual(arms, {"eager@base": 6, "eager@cand": 6})


if __name__ == "__main__":
    main()
