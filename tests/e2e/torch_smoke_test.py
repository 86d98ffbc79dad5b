"""Every ready study with arms of backend torch at the size of a test, and all families beside the native engine.

usage: torch_smoke_test.py ASSAY SOURCE      exit 77 where there is no torch environment

Tiny models on the processor: the test says what the studies must show, never how long it takes. `make test` runs torch_test.py.
"""

import concurrent.futures
import gzip
import itertools
import json
import re
from pathlib import Path

from program import recompile_tail, rows_of
from torch_program import ENVIRONMENT, SOURCE, TorchProgram, main

# Other studies have tests of their own.
SMOKE = [path for path in sorted((SOURCE / "studies" / "smoke").glob("*.yaml")) if "backend: torch" in path.read_text()]
PROFILED = "tr126-padded"  # the study whose smoke run is traced too
MAIN = {
    "name": "torch-e2e",
    "models": [{"path": f"models/tiny-{family}", "dtype": "fp32"} for family in ("gpt2", "llama", "qwen2")],
    "arms": [
        {"name": "native", "backend": "native", "mode": "eager", "cache": "dynamic", "threads": 1},
        {"name": "eager", "backend": "torch", "mode": "eager", "cache": "dynamic", "device": "cpu"},
        {"name": "aot", "backend": "torch", "mode": "default", "torch_backend": "aot_eager", "cache": "static",
         "device": "cpu", "explain": False},
    ],
    "baseline": "native",
    "phases": ["prefill", "kv_decode", "e2e_kv"],
    "scenarios": [{"name": "mixed", "prompt_tokens": [5, 8]}],
    "padding": {"scope": "scenario", "multiple_of": 8},
    "token_lengths": [8], "batch": [2], "repetitions": 2, "warmup": 1, "timeout_s": 300, "parity": "after",
}
FALLBACK = {
    "name": "no-compiler", "models": [{"arch": "tiny-gpt2", "dtype": "fp32"}],
    "arms": [{"name": "default", "backend": "torch", "mode": "default", "cache": "static", "device": "cpu",
              "explain": False}],
    "phases": ["prefill"], "scenarios": ["single_micro"], "repetitions": 2, "warmup": 1, "timeout_s": 300,
    "parity": "after", "require": {"compiler_real": True},
}


class Torch(TorchProgram):
    @classmethod
    def run_all(cls):
        """Two at a time: much of a run is one thread that imports or compiles."""
        for model in MAIN["models"]:
            cls.call("model", "make", Path(model["path"]).name, "-o", cls.folder / model["path"])
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = {"main": pool.submit(cls.run_study, "main", MAIN),
                    "no-compiler": pool.submit(cls.run_study, "no-compiler", FALLBACK, CXX="/nonexistent/g++")}
            for path in SMOKE:
                flags = ["--profile"] if path.stem == PROFILED else []
                runs[path.stem] = pool.submit(cls.run_study, path.stem, path, *flags)
            return {name: run.result() for name, run in runs.items()}

    def test_every_study_runs_to_its_end(self):
        self.assertEqual(len(SMOKE), 12)
        for name, run in self.runs.items():
            with self.subTest(name):
                self.assertEqual(run.returncode, 0, run.stderr)
                self.succeed("verify", self.folder / name)

    def test_only_what_cannot_run_here_is_lost(self):
        expected = {"stack-ablation": {"eager-b": "no_interpreter", "compiled-b": "no_interpreter"},
                    **dict.fromkeys(("tr147-static-cache", "tr147-token-sweep", "tr147-large-models"),
                                    {"manual-cudagraph": "no_cuda"})}
        for name in self.runs:
            lost = {row["arm"]: row["error_class"] for row in self.rows(name) if row["status"] != "ok"}
            self.assertEqual(lost, expected.get(name, {}), name)
        for arm, error in expected["stack-ablation"].items():
            for evidence in self.evidence("stack-ablation", arm):
                self.assertEqual(evidence["gate"]["error_class"], error)
        self.assertIn("ASSAY_TORCH_PYTHON_B", self.runs["stack-ablation"].stderr)

    def test_arms_agree(self):
        compared = 0
        for path in self.folder.glob("*/cells/*/parity.json"):
            parity = json.loads(path.read_text())
            self.assertIs(parity["passed"], True, f"{path}: {parity}")
            compared += parity["compared_tokens"]
        self.assertGreater(compared, 500)
        for model in MAIN["models"]:  # with the engine of this program, on the same checkpoint, in fp32
            for arm in ("eager", "aot"):
                for row in self.rows("main", arm=arm, model=Path(model["path"]).name, repetition="0"):
                    parity = json.loads((self.folder / "main" / "cells" / row["cell_id"] / "parity.json").read_text())
                    self.assertEqual((parity["baseline_arm"], parity["passed"]), ("native", True))
                    tokens = int(row["new_tokens"]) + 1
                    self.assertEqual(parity["compared_tokens"], 2 * 2 * tokens, "prompts, batch, tokens")
                    for stats in parity.get("logit_stats", {}).get(arm, []):
                        self.assertEqual(len(stats["steps"]["others"]), tokens)

    def test_every_arm_gives_the_same_output_every_time(self):
        for name in self.runs:
            self.assert_one_output(name)

    def test_variable_lengths_recompile_and_the_rows_say_so(self):
        counters = self.counters("tr120-variable", "limit")
        self.assertEqual(counters["unique_graphs"], 4)
        rows = self.rows("tr120-variable", arm="limit")
        recompiled = [row for row in rows if int(row["recompiles_delta"]) > 0]
        self.assertGreaterEqual(len(recompiled), 3)
        for row in rows:
            compile_ms = float(row["compile_ms_delta"])
            self.assertEqual(compile_ms > 0, row in recompiled, row)
            self.assertGreater(float(row["latency_ms"]), 0.99 * compile_ms, "its call waits for the compiler, on two clocks")
        found, kinds = self.findings("tr120-variable")
        (tail,) = [tail for tail in found["tails"] if tail["arm"] == "limit"]
        self.assertGreaterEqual(tail["slow_recompiled"], 2)
        self.assertEqual(tail["slow_recompiled"], tail["recompiled"], "every recompile is slow")
        self.assertEqual({kind for kind, arm in kinds if arm == "limit"} & {"recompile_tail"}, recompile_tail(tail))

    def test_the_recompile_limit_is_hit_and_recorded(self):
        counters = self.counters("tr120-variable", "default")
        self.assertEqual(counters["unique_graphs"], 2)
        self.assertGreaterEqual(counters["recompile_limit_hits"], 1)
        self.assertGreater(sum(int(row["fallbacks_delta"]) for row in self.rows("tr120-variable", arm="default")), 0)
        found, kinds = self.findings("tr120-variable")
        self.assertIn(("fallback", "default"), kinds)
        (cost,) = [cost for cost in found["compile_costs"] if cost["arm"] == "default"]
        self.assertRegex(cost["problem"], "recompile_limit|cache_size_limit")

    def test_padding_leaves_one_graph_and_symbols_at_most_two(self):
        self.assertEqual(self.counters("tr120-padded", "default")["unique_graphs"], 1)
        self.assertEqual(sum(int(row["recompiles_delta"]) for row in self.rows("tr120-padded", arm="default")), 0)
        for arm in ("default-true", "default-auto"):
            self.assertLessEqual(self.counters("tr120-dynamic", arm)["unique_graphs"], 2, arm)

    def test_compiled_is_proven_and_a_label_is_not(self):
        both_caches = ("default-dynamic", "default-static")
        real = {"tr120-variable": ("limit",), "tr120-padded": ("default",), "tr120-dynamic": ("default-true", "default-auto"),
                "tr126-environment": ("default",), "tr126-mode-default": both_caches, "tr147-static-cache": both_caches,
                "tr147-token-sweep": ("default-static",),  # torch 2.6 compiles each length of a DynamicCache anew
                "tr147-large-models": ("default",), "stack-ablation": ("compiled-a",)}
        replays_nothing = {"tr126-baseline": ("compiled",), "tr126-padded": ("compiled",), "tr126-dynamic": ("compiled",),
                           "tr147-static-cache": ("reduce-overhead", "mark-step")}
        expected = [(name, arm, verdict) for verdict, studies in (("yes", real), ("fallback", replays_nothing))
                    for name, arms in studies.items() for arm in arms if name in self.runs]
        for name, arm, verdict in (*expected, ("main", "aot", "label_only"), ("tr120-variable", "eager", "not_applicable")):
            for evidence in self.evidence(name, arm):
                self.assertEqual(evidence["compiler_real"], verdict, f"{name} {arm} {evidence['reported']['reasons']}")
        for evidence in self.evidence(PROFILED, "compiled"):  # reduce-overhead, where no graph can be captured
            reported = evidence["reported"]
            self.assertEqual((reported["fallback"], reported["counters"]["fallbacks"]), ("default", 0))
            self.assertIn("no CUDA graph: the device is cpu", reported["fallback_error"])
        for evidence in self.evidence("tr126-environment", "default"):
            self.assertEqual(evidence["reported"]["counters"]["graph_breaks"], 0)
            self.assertGreater(evidence["worker"]["prepare_seconds"], 0)

    def test_every_compiled_arm_is_explained_and_the_time_of_it_is_beside_that_of_preparing(self):
        explained = 0
        for path in self.folder.glob("*/cells/*/evidence.json"):
            evidence = json.loads(path.read_text())
            reported = evidence.get("reported") or {}
            if path.parts[-4] in ("main", "no-compiler") or reported.get("requested", {}).get("mode", "eager") == "eager":
                continue
            self.assertEqual([one["part"] for one in reported["explain"]], ["prefill", "decode"], path)
            self.assertTrue(all(one["graphs"] == 1 and one["graph_breaks"] == 0 for one in reported["explain"]), path)
            self.assertGreater(reported["explain_seconds"], 0)
            self.assertEqual(evidence["worker"]["prepare_seconds"], reported["prepared"][-1]["seconds"])
            explained += 1
        self.assertGreater(explained, 20)

    def test_a_cells_cache_folders_are_its_own_unless_it_keeps_the_users(self):
        for name, arm, fresh in (("tr120-padded", "default", True), ("tr126-environment", "default", False)):
            for evidence in self.evidence(name, arm):
                self.assertIs(evidence["reported"]["cache_folders"]["fresh"], fresh, name)
        (evidence,) = self.evidence("tr120-padded", "default")
        self.assertEqual(evidence["reported"]["counters"]["fx_cache_hits"], 0)
        self.assertGreater(evidence["reported"]["kernels"]["files_written"], 0)

    def test_a_studys_requirements_have_one_verdict(self):
        found, _ = self.findings("tr126-environment")
        self.assertEqual(found["requirements"]["verdict"], "not_decided")
        status = {one["name"]: one["status"] for one in found["requirements"]["criteria"]}
        here = dict.fromkeys(("compiler_real", "graph_breaks", "parity", "logit_stats", "deterministic"), "met")
        self.assertEqual(status, here | {"cuda": "not_applicable", "triton": "not_applicable"})
        self.assertIn("NOT DECIDED", self.succeed("analyze", self.folder / "tr126-environment"))
        failed = self.call("analyze", self.folder / "no-compiler", "--full")
        self.assertEqual(failed.returncode, 1, "a requirement that isn't met")
        self.assertRegex(failed.stdout, r'FAILED[^#]*compiler_real true: NOT MET: [^#]*found\s+"fell back"')

    def test_without_a_compiler_it_is_a_fallback(self):
        (evidence,) = self.evidence("no-compiler", "default")
        self.assertEqual(evidence["compiler_real"], "fallback")
        self.assertEqual(evidence["gate"], evidence["gate"] | {"verdict": "fallback", "fallback": "eager"})
        self.assertIn("/nonexistent/g++", evidence["gate"]["reason"])
        self.assertTrue(evidence["reported"]["fallback_error"])
        for row in self.rows("no-compiler"):
            self.assertGreater(int(row["fallbacks_delta"]), 0)
        _, kinds = self.findings("no-compiler", status=1)
        self.assertIn(("fallback", "default"), kinds)

    def test_a_profile_stands_arm_beside_arm(self):
        found, _ = self.findings(PROFILED)
        arms = {profile["arm"]: profile for profile in found["profiles"] if profile["phase"] == "kv_decode"}
        self.assertEqual(set(arms), {"eager", "compiled"})
        for profile in arms.values():
            self.assertIsNone(profile["missing"])
            self.assertGreater(profile["kernels_launched"], profile["distinct_kernels"])
            self.assertLessEqual(len(profile["top"]), 10)
        for row in self.rows(PROFILED, repetition="0"):
            with gzip.open(self.folder / PROFILED / "cells" / row["cell_id"] / "trace.json.gz", "rt") as file:
                trace = json.load(file)
            self.assertTrue(trace["traceEvents"])
        self.assertIn("## Profile", self.succeed("analyze", self.folder / PROFILED, "-o", "md"))

    def test_the_page_shows_the_traces_beside_one_another(self):
        """Real traces, of both arms on one scale: what the profiler writes is what the page reads."""
        self.succeed("report", self.folder / PROFILED)
        page = (self.folder / PROFILED / "report.html").read_text()
        figure = re.search(r'<figure id="timelines".*?</figure>', page, re.S)
        self.assertTrue(figure, "no figure of timelines")
        found, _ = self.findings(PROFILED)
        for profile in found["profiles"]:
            phase, arm = profile["phase"], profile["arm"]
            alternative = re.search(rf'aria-label="Traced repetitions of {phase} ([^"]*)"', figure[0])
            self.assertTrue(alternative, phase)
            drawn = {name: count for count, name in re.findall(rf"\b{arm}: (\d+) ([^,]+), busy [\d.]+ %", alternative[1])}
            graphs = sum(int(count) for name, count in drawn.items() if name.startswith("compiled graph"))
            self.assertEqual(graphs > 0, arm == "compiled", alternative[1])
            self.assertEqual(int(drawn["operators"]) + graphs, profile["kernels_launched"], "the worker counts the same")
        self.assertIn("plots/timelines.svg", (self.folder / PROFILED / "report.md").read_text())

    def test_decoding_stands_beside_the_limit_of_the_memory(self):
        found, _ = self.findings("main")
        shares = [one for one in found["read_shares"] if one["arm"] != "native"]  # whose weights fit the cache
        self.assertEqual({one["arm"] for one in shares}, {"eager", "aot"})
        self.assertEqual({one["phase"] for one in shares}, {"kv_decode"})
        for one in shares:
            self.assertGreater(one["share"], 0)
            self.assertAlmostEqual(one["share"], one["bytes_per_s"] / one["limit_bytes_per_s"])

    def test_the_identity_names_each_arms_own_stack(self):
        manifest = json.loads((self.folder / "main" / "manifest.json").read_text())
        arms = manifest["identity"]["arms"]
        self.assertNotIn("framework_build", arms["native"])
        self.assertRegex(arms["aot"]["framework_build"], r"^torch \d.* transformers \d.* python 3")
        self.assertEqual(arms["aot"]["code_generator"], "aot_eager")
        environment = json.loads((self.folder / "main" / "environment.json").read_text())
        self.assertEqual(environment["arms"]["aot"]["interpreter"]["executable"], ENVIRONMENT["ASSAY_TORCH_PYTHON"])

    def test_two_interpreters_stand_side_by_side_in_one_bundle(self):
        sides = {}
        for side in ("base", "cand"):  # the same environment under two names
            sides[side] = self.folder / f"python-{side}"
            sides[side].write_text(f'#!/bin/sh\nexec "{ENVIRONMENT["ASSAY_TORCH_PYTHON"]}" "$@"\n')
            sides[side].chmod(0o755)
        study = self.folder / "interpreters.yaml"
        arm = {"name": "eager", "backend": "torch", "mode": "eager", "cache": "dynamic", "device": "cpu"}
        study.write_text(json.dumps({
            "name": "interpreters", "models": [{"arch": "tiny-llama", "dtype": "fp32"}], "arms": [arm],
            "phases": ["prefill"], "scenarios": ["single_micro"], "repetitions": 6, "processes": 2, "warmup": 1,
            "timeout_s": 300}))
        bundle = self.folder / "interpreters"
        done = self.call("compare", "--run", sides["base"], sides["cand"], study, "--bundle", bundle, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertTrue(found["in_one_run"])
        self.assertEqual([cell["judged_by"] for cell in found["cells"]], ["pairs of processes"])
        manifest = json.loads((bundle / "manifest.json").read_text())
        self.assertEqual(manifest["study"]["sides"], {side: str(path) for side, path in sides.items()})
        arms = {arm: len(list(rows)) for arm, rows in itertools.groupby(
            sorted(row["arm"] for row in rows_of(bundle, cold="false")))}
        self.assertEqual(arms, {"eager@base": 6, "eager@cand": 6})
        self.assertEqual(self.call("verify", bundle).returncode, 0)


if __name__ == "__main__":
    main()
