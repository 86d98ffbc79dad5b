"""`assay import` of files that the real tools wrote (tests/import): each becomes a bundle that verify, analyze, report and
compare take, with the tool's own figures in it, and with what the file doesn't state listed by name.

usage: import_test.py ASSAY
"""

import csv
import json
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of

REAL = pathlib.Path(__file__).parents[1] / "import"


def number(text):
    return float(text) if text else None


class ImportTest(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def imported(self, *names, options=(), bundle="bundle"):
        """The rows and the manifest of a bundle that every reader takes."""
        self.succeed("import", *(REAL / name for name in names), *options, "-o", bundle)
        self.assertIn("intact", self.succeed("verify", bundle))
        self.succeed("analyze", bundle)
        self.succeed("report", bundle)
        copy = self.folder / f"{bundle}-again"
        shutil.copytree(self.folder / bundle, copy)
        self.assertIn(self.assay("gate", bundle).returncode, (0, 1))
        compared = self.assay("compare", bundle, copy.name)
        self.assertEqual(compared.returncode, 2, compared.stdout)
        self.assertIn("expected each run once", compared.stderr, "a copy is no second measurement")
        manifest = json.loads((self.folder / bundle / "manifest.json").read_text())
        return rows_of(self.folder / bundle), manifest

    def assert_times(self, rows, expected_ms):
        self.assertEqual(len(rows), len(expected_ms))
        for row, ms in zip(rows, expected_ms):
            self.assertAlmostEqual(number(row["latency_ms"]), ms, delta=1e-9 * max(1, ms))

    def in_order(self, rows):
        return sorted(rows, key=lambda row: int(row["order_index"]))

    def of_phase(self, rows, phase, scenario):
        return self.in_order([row for row in rows if (row["phase"], row["scenario"]) == (phase, scenario)])

    def document(self, name):
        return json.loads((REAL / name).read_text())

    def test_hyperfine(self):
        rows, manifest = self.imported("hyperfine.json")
        results = self.document("hyperfine.json")["results"]
        for result in results:
            of_command = [row for row in rows if row["arm"] == result["command"]]
            self.assert_times(of_command, [1e3 * time for time in result["times"]])
            self.assertEqual([row["cold"] for row in of_command], ["true"] + ["false"] * 9)
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        for field in ("phase", "model", "device", "framework_build", "code_sha", "cache", "compile_mode"):
            self.assertIn(field, manifest["identity"]["unknown"])
            self.assertNotIn(field, manifest["identity"])

    def test_hyperfine_runs_that_took_no_time_or_failed(self):
        rows, _ = self.imported("hyperfine-impossible.json")
        self.assertEqual({(row["status"], row["error_class"]) for row in rows if row["arm"] == "true"},
                         {("false_success", "zero_latency")})
        self.assertEqual({(row["status"], row["error_class"]) for row in rows if row["arm"] == "exit 3"},
                         {("crash", "exit 3")})

    def test_pytest_benchmark(self):
        rows, manifest = self.imported("pytest-benchmark.json")
        document = self.document("pytest-benchmark.json")
        for benchmark in document["benchmarks"]:
            of_test = [row for row in rows if row["arm"] == benchmark["name"]]
            self.assert_times(of_test, [1e3 * time for time in benchmark["stats"]["data"]])
        hashes = [row for row in rows if row["arm"].startswith("test_sha256")]
        self.assertEqual({(row["phase"], row["model"], row["scenario"]) for row in hashes}, {("prefill", "sha", "hash")})
        self.assertEqual(manifest["identity"]["device"], document["machine_info"]["cpu"]["brand_raw"])
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["tool"], f"pytest-benchmark {document['version']}")
        self.assertEqual(manifest["started_at"][:10], document["datetime"][:10])

    def test_pytest_benchmark_without_rounds(self):
        rows, _ = self.imported("pytest-benchmark-means.json")
        document = self.document("pytest-benchmark-means.json")
        self.assertEqual(sorted(number(row["latency_ms"]) for row in rows),
                         sorted(1e3 * benchmark["stats"]["mean"] for benchmark in document["benchmarks"]))
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["means"], len(rows))
        self.assertTrue([text for text in environment["warnings"] if "the mean of several samples" in text])

    def test_llama_bench(self):
        for name in ("tests.json", "tests.jsonl"):
            rows, manifest = self.imported(f"llama-bench/{name}", bundle=name)
            text = (REAL / "llama-bench" / name).read_text()
            tests = json.loads(text) if name == "tests.json" else [json.loads(line) for line in text.splitlines()]
            self.assert_times(self.in_order(rows), [ns / 1e6 for test in tests for ns in test["samples_ns"]])
            self.assertEqual({row["status"] for row in rows}, {"ok"}, "its rates agree with its times and lengths")
            self.assertEqual({row["arm"] for row in rows}, {"CPU-t1", "CPU-t2"})
            self.assertEqual({(row["model"], row["dtype"]) for row in rows}, {("tiny-f32", "fp32"), ("tiny-f16", "fp16")})
            self.assertEqual({(row["phase"], row["scenario"], row["prompt_tokens"], row["new_tokens"]) for row in rows},
                             {("prefill", "pp64", "64", "0"), ("kv_decode", "tg16", "0", "16"),
                              ("e2e_kv", "pp32+tg8", "32", "8")})
            self.assertEqual(manifest["identity"]["device"], tests[0]["cpu_info"])
            self.assertEqual(manifest["completion"]["model_weight_bytes"],
                             {test["model_filename"].removesuffix(".gguf"): test["model_size"] for test in tests})
            self.assertEqual(manifest["started_at"], min(test["test_time"] for test in tests))
            self.assertIn("compile_mode", manifest["identity"]["unknown"])
            # This build doesn't know its commit, and says so.
            self.assertIn("code_sha", manifest["identity"]["unknown"])

    def test_llama_bench_without_samples(self):
        with (REAL / "llama-bench" / "tests.csv").open(newline="") as file:
            means = [int(test["avg_ns"]) / 1e6 for test in csv.DictReader(file)]
        rows, _ = self.imported("llama-bench/tests.csv", bundle="csv")
        self.assert_times(self.in_order(rows), means)
        self.assertEqual({row["cold"] for row in rows}, {"false"}, "a mean is no first sample")
        rows, _ = self.imported("llama-bench/tests.sql", bundle="sql")
        self.assertEqual(len(rows), len(means))
        found = json.loads(self.succeed("analyze", "sql", "-o", "json"))["findings"]
        self.assertTrue([one for one in found if one["kind"] == "too_few_samples"], "no contrast of single means")

    def test_llama_benchs_table_for_people(self):
        rows, manifest = self.imported("llama-bench/tests.md")
        tests = self.document("llama-bench/tests.json")
        self.assert_times(self.in_order(rows), [round(1e9 * (test["n_prompt"] + test["n_gen"]) / round(test["avg_ts"], 2)) / 1e6
                                                for test in tests])
        self.assertEqual({row["arm"] for row in rows}, {"CPU-t1", "CPU-t2"})
        self.assertEqual({row["dtype"] for row in rows}, {"fp32", "fp16"})
        self.assertIn("device", manifest["identity"]["unknown"])

    def test_llama_bench_at_a_depth(self):
        rows, _ = self.imported("llama-bench/depth.json")
        self.assertEqual({(row["phase"], row["scenario"], row["prompt_tokens"]) for row in rows},
                         {("prefill", "pp32@d64", "32"), ("kv_decode", "tg8@d64", "64")})

    def nvbench_states(self, name):
        """Benchmark, axis values and summaries by tag, of each state that wasn't skipped."""
        for benchmark in self.document(name)["benchmarks"]:
            for state in benchmark["states"]:
                if not state["is_skipped"]:
                    values = "-".join(f"{axis['name']}={axis['value']}" for axis in state["axis_values"])
                    yield benchmark["name"], values, {summary["tag"]: summary for summary in state["summaries"]}

    def test_nvbench(self):
        rows, manifest = self.imported("nvbench/samples.json")
        states = list(self.nvbench_states("nvbench/samples.json"))
        self.assertEqual(len(states), 6)
        for benchmark, values, summaries in states:
            hint = summaries["nv/json/bin:nv/cold/sample_times"]
            file, = [datum["value"] for datum in hint["data"] if datum["name"] == "filename"]
            seconds = [time for time, in struct.iter_unpack("<f", (REAL / "nvbench" / file).read_bytes())]
            of_state = [row for row in rows if row["arm"] == benchmark and row["scenario"] == values]
            self.assert_times(of_state, [1e3 * time for time in seconds])
            self.assertEqual([row["cold"] for row in of_state], ["true"] + ["false"] * (len(seconds) - 1))
            self.assertEqual({row["device_ms"] for row in of_state}, {row["latency_ms"] for row in of_state})
        self.assertEqual([(row["status"], row["error_class"]) for row in rows if row["scenario"].startswith("n=3-")],
                         [("error", "skipped")] * 2)
        self.assertEqual(manifest["identity"]["device"], "NVIDIA H100 80GB HBM3")
        self.assertIn("compile_mode", manifest["identity"]["unknown"])

    def test_nvbench_without_samples(self):
        rows, _ = self.imported("nvbench/means.json")
        means = []
        for _, _, summaries in self.nvbench_states("nvbench/means.json"):
            seconds, = [datum["value"] for datum in summaries["nv/cold/time/gpu/mean"]["data"] if datum["name"] == "value"]
            means.append(1e3 * float(seconds))
        self.assert_times([row for row in self.in_order(rows) if row["status"] == "ok"], means)
        self.assertEqual({row["cold"] for row in rows if row["status"] == "ok"}, {"false"}, "a mean is no first sample")

    def test_aiperf(self):
        records = [json.loads(line) for line in (REAL / "aiperf/profile_export.jsonl").read_text().splitlines()]
        records.sort(key=lambda record: record["metadata"]["request_start_ns"])
        rows, manifest = self.imported("aiperf/profile_export.jsonl", "aiperf/profile_export_aiperf.json")
        first, token = self.of_phase(rows, "prefill", "c2-ttft"), self.of_phase(rows, "kv_decode", "c2-tpot")
        rows = self.of_phase(rows, "e2e_kv", "c2")
        self.assertEqual([len(some) for some in (rows, first, token)], [len(records)] * 3)
        for row, first_row, token_row, record in zip(rows, first, token, records):
            if "error" not in record:
                self.assertAlmostEqual(number(first_row["latency_ms"]), record["metrics"]["time_to_first_token"]["value"])
                decode = record["metrics"]["request_latency"]["value"] - record["metrics"]["time_to_first_token"]["value"]
                self.assertAlmostEqual(number(token_row["latency_ms"]), decode / (int(row["tokens"]) - 1))
            self.assertEqual(int(row["started_at_ns"]), record["metadata"]["request_start_ns"])
            self.assertEqual(row["cold"] == "true", record["metadata"]["benchmark_phase"] == "warmup")
            if "error" in record:
                self.assertEqual((row["status"], row["error_class"]), ("error", record["error"]["type"]))
            else:
                self.assertAlmostEqual(number(row["latency_ms"]), record["metrics"]["request_latency"]["value"])
                self.assertAlmostEqual(number(row["ttft_ms"]), record["metrics"]["time_to_first_token"]["value"])
        self.assertEqual({row["status"] for row in rows}, {"ok", "error"})
        self.assertEqual({(row["model"], row["scenario"], row["new_tokens"]) for row in rows}, {("tiny", "c2", "8")})
        self.assertEqual(manifest["identity"]["imported_from"], "aiperf")
        log = "".join(path.read_text() for path in (self.folder / "bundle" / "cells").glob("*/stderr.log"))
        self.assertIn("out of slots", log, "messages are kept whole")

    def test_aiperf_in_sum_and_without_its_configuration(self):
        rows, _ = self.imported("aiperf/profile_export_aiperf.json", bundle="sum")
        document = self.document("aiperf/profile_export_aiperf.json")
        self.assert_times(self.in_order(rows), [document[name]["avg"] for name in
                                                ("request_latency", "time_to_first_token")])
        rows, manifest = self.imported("aiperf/profile_export.jsonl", bundle="alone")
        self.assertIn("model", manifest["identity"]["unknown"])
        self.assertIn("new_tokens", manifest["identity"]["unknown"])
        self.assertEqual(len({row["cell_id"] for row in rows}), 3, "losses are of the strata of the others")

    def test_optimum_benchmark(self):
        rows, manifest = self.imported("optimum/benchmark.json", "optimum/compile/benchmark_report.json",
                                       "optimum/compile/benchmark_config.json")
        for name, arm in (("benchmark.json", "pytorch-eager"), ("compile/benchmark_report.json", "pytorch-default")):
            document = self.document(f"optimum/{name}")
            report = document.get("report", document)
            for target, phase in (("prefill", "prefill"), ("decode", "kv_decode"), ("generate", "e2e_kv")):
                found = [row for row in rows if row["phase"] == phase and row["arm"].startswith(arm)]
                self.assert_times(found, [1e3 * value for value in report[target]["latency"]["values"]])
        self.assertEqual({row["cold"] for row in rows}, {"false"}, "two warm-ups came before")
        self.assertEqual({(row["phase"], row["new_tokens"]) for row in rows},
                         {("prefill", "0"), ("kv_decode", "7"), ("e2e_kv", "8")})
        self.assertEqual({row["dtype"] for row in rows}, {"fp32"})
        self.assertIn("pytorch 2.6.0, transformers 4.53.3", manifest["identity"]["framework_build"])
        self.assertTrue(manifest["study"]["baseline"].startswith("pytorch-eager"))
        found = json.loads(self.succeed("analyze", "bundle", "-o", "json"))["findings"]
        unproven = {one["arm"] for one in found if one["kind"] == "unproven_compiler"}
        self.assertEqual(len(unproven), 1)
        self.assertTrue(unproven.pop().startswith("pytorch-default"))

    def test_vllm_bench_serve(self):
        rows, manifest = self.imported("vllm-serve/detailed.json")
        document = self.document("vllm-serve/detailed.json")
        ok = [i for i, error in enumerate(document["errors"]) if not error]
        for phase, mark, times in (
                ("prefill", "ttft", [document["ttfts"][i] for i in ok]),
                ("kv_decode", "tpot", [(document["latencies"][i] - document["ttfts"][i]) / (document["output_lens"][i] - 1)
                                       for i in ok]),
                ("kv_decode", "itl", [gap for i in ok for gap in document["itls"][i]])):
            found = self.of_phase(rows, phase, f"rate-inf-c2-{mark}")
            self.assert_times([row for row in found if row["status"] == "ok"], [1e3 * time for time in times])
            self.assertEqual(sum(row["status"] == "error" for row in found), document["failed"], "a loss is one in each phase")
        rows = self.of_phase(rows, "e2e_kv", "rate-inf-c2")
        self.assertEqual(len(rows), document["num_prompts"])
        for i, row in enumerate(rows):
            if document["errors"][i]:
                self.assertEqual(row["status"], "error")
                self.assertTrue(row["error_class"])
                continue
            self.assertEqual(row["status"], "ok")
            self.assertAlmostEqual(number(row["latency_ms"]), 1e3 * document["latencies"][i])
            self.assertAlmostEqual(number(row["ttft_ms"]), 1e3 * document["ttfts"][i])
            self.assertEqual(int(row["tokens"]), document["output_lens"][i])
        self.assertEqual(sum(row["status"] == "error" for row in rows), document["failed"])
        self.assertEqual(len({row["cell_id"] for row in rows}), 1, "losses are of the stratum of the others")
        self.assertEqual(rows[0]["scenario"], "rate-inf-c2")
        # Values of --metadata.
        self.assertEqual(manifest["identity"]["device"], "mock server")
        self.assertEqual(rows[0]["dtype"], "fp32")
        self.assertIn("new_tokens", manifest["identity"]["unknown"])

    def test_vllm_bench_serve_appended_and_in_sum(self):
        rows, _ = self.imported("vllm-serve/appended.jsonl", bundle="appended")
        self.assertEqual({row["process"] for row in rows}, {"0", "1"})
        self.assertEqual(sum(row["cold"] == "true" for row in self.of_phase(rows, "e2e_kv", "rate-inf-c2")), 2)
        rows, _ = self.imported("vllm-serve/means.json", bundle="sum")
        document = self.document("vllm-serve/means.json")
        self.assert_times(self.in_order(rows), [document[f"mean_{name}_ms"] for name in ("e2el", "ttft", "tpot", "itl")])

    def test_vllm_bench_serve_at_two_rates(self):
        for rate in (2.0, 8.0):
            (self.folder / f"{rate}.json").write_text(json.dumps({**self.document("vllm-serve/detailed.json"), "request_rate": rate}))
        self.succeed("import", "2.0.json", "8.0.json", "-o", "rates")
        rows = rows_of(self.folder / "rates")
        for rate in ("2.0", "8.0"):
            for phase, mark in (("e2e_kv", ""), ("prefill", "-ttft"), ("kv_decode", "-tpot")):
                self.assertEqual(len(self.of_phase(rows, phase, f"rate-{rate}-c2{mark}")), 16, "each rate is a condition")
        self.assertEqual({row["arm"] for row in rows}, {"vllm"})

    def test_vllms_offline_benchmarks(self):
        rows, manifest = self.imported("vllm-offline/latency.json", bundle="latency")
        self.assert_times(self.in_order(rows), [1e3 * time for time in self.document("vllm-offline/latency.json")["latencies"]])
        self.assertEqual({row["cold"] for row in rows}, {"false"}, "the tool warms up")
        for field in ("model", "batch", "prompt_tokens", "new_tokens", "setting.num_iters_warmup"):
            self.assertIn(field, manifest["identity"]["unknown"])
        rows, _ = self.imported("vllm-offline/throughput.json", bundle="throughput")
        document = self.document("vllm-offline/throughput.json")
        self.assert_times(rows, [1e3 * document["elapsed_time"]])
        self.assertEqual(rows[0]["scenario"], f"{document['num_requests']} requests")

    def test_guidellm(self):
        rows, manifest = self.imported("guidellm/loads.json")
        document = self.document("guidellm/loads.json")
        for benchmark, load in zip(document["benchmarks"], ("concurrent-1", "concurrent-2")):
            requests = sorted(benchmark["requests"]["successful"], key=lambda request: request["request_start_time"])
            for phase, mark, name, factor in (("e2e_kv", "", "request_latency", 1e3), ("prefill", "-ttft", "time_to_first_token_ms", 1),
                                              ("kv_decode", "-tpot", "inter_token_latency_ms", 1)):
                for row, request in zip(self.of_phase(rows, phase, load + mark), requests, strict=True):
                    self.assertAlmostEqual(number(row["latency_ms"]), factor * request[name], delta=1e-6)
                    self.assertEqual(int(row["prompt_tokens"]), request["prompt_tokens"])
        self.assertEqual({(row["model"], row["arm"]) for row in rows}, {("tiny", "guidellm")})
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["tool"], "guidellm " + document["metadata"]["guidellm_version"])
        rows, _ = self.imported("guidellm/errors.json", bundle="errors")
        lost = [row for row in rows if row["status"] != "ok"]
        self.assertEqual({(row["status"], row["error_class"]) for row in lost}, {("error", "HTTPStatusError")})
        self.assertEqual(len(lost), 3 * len(self.document("guidellm/errors.json")["benchmarks"][0]["requests"]["errored"]))

    def test_criterions_folder(self):
        rows, manifest = self.imported("criterion")
        for arm, scenario, folder in (("fold", "sums 100", "sums/fold/100"), ("loop", "sums 100", "sums/loop/100"),
                                      ("fold", "sums 1000", "sums/fold/1000"), ("loop", "sums 1000", "sums/loop/1000"),
                                      ("read_file", "unknown", "read_file")):
            sample = self.document(f"criterion/{folder}/new/sample.json")
            found = self.in_order([row for row in rows if (row["arm"], row["scenario"]) == (arm, scenario)])
            self.assert_times(found, [1e-6 * time / count for time, count in zip(sample["times"], sample["iters"])])
        self.assertEqual({row["cold"] for row in rows}, {"false"}, "criterion warms up")
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertIn("sums/fold/100/new/sample.json", [file["name"] for file in environment["imported"]["files"]])
        rows, _ = self.imported("criterion/read_file/new/estimates.json", bundle="mean")
        estimates = self.document("criterion/read_file/new/estimates.json")
        self.assert_times(rows, [1e-6 * estimates["mean"]["point_estimate"]])
        (self.folder / "empty").mkdir()
        self.assert_refused(["import", "empty", "-o", "x"], "NAME/new/sample.json")

    # Statuses, each on a table that gives it and on one beside it that doesn't

    def table(self, lines, mapping="", bundle="bundle", **options):
        """Findings and rows of a table of eager and one other arm."""
        shutil.rmtree(self.folder / bundle, ignore_errors=True)
        (self.folder / "table.csv").write_text("".join(line + "\n" for line in lines))
        (self.folder / "table.yaml").write_text(
            "columns: {arm: arm, compile_mode: mode, tokens: n, latencies: t_ms}\n"
            "constants: {phase: kv_decode, new_tokens: 4, model: m, prompt_tokens: 80}\n" + mapping)
        arguments = [text for key, value in options.items() for text in (f"--{key.replace('_', '-')}", value)]
        self.succeed("import", "table.csv", "--mapping", "table.yaml", "-o", bundle, *arguments)
        return json.loads(self.succeed("analyze", bundle, "-o", "json")), rows_of(self.folder / bundle)

    def arm(self, name, mode, base, tokens=4, cold=1):
        times = [base * (1 + i / 1000) for i in range(8)]
        return f'{name},{mode},{tokens},"[{", ".join(map(str, [times[0] * cold, *times[1:]]))}]"'

    def test_compilers_that_are_named_and_not_proven(self):
        rule = "compiler: [{arm: fast, verdict: VERDICT, reason: as its author says}]\n"
        for name, mode, mapping, kind in (
                ("fast", "", "", None), ("fast", "eager", "", None), ("no-compile", "eager", "", None),
                ("fast", "reduce-overhead", "", "unproven_compiler"), ("gpu-compile", "", "", "unproven_compiler"),
                ("gpuCompiled", "", "", "unproven_compiler"), ("fast", "", rule.replace("VERDICT", "unproven"), "unproven_compiler"),
                ("gpu-compile", "eager", "", "label_only"), ("fast", "", rule.replace("VERDICT", "label_only"), "label_only"),
                ("fast", "eager", rule.replace("VERDICT", "label_only"), "label_only"),
                ("fast", "", rule.replace("VERDICT", "fallback"), "fallback")):
            with self.subTest(name=name, mode=mode, mapping=mapping):
                lines = ["arm,mode,n,t_ms", self.arm("eager", "eager", 10), self.arm(name, mode, 8)]
                found, _ = self.table(lines, mapping)
                kinds = {one["kind"] for one in found["findings"] if one.get("arm") == name}
                self.assertEqual(kinds & {"unproven_compiler", "label_only", "fallback"}, {kind} if kind else set())
                taken = [one for one in found["decisions"] if one.get("arm") == name]
                self.assertEqual(bool(taken), kind is None, "no decision takes an arm whose name isn't earned")

    def test_first_samples_that_are_cold_and_those_that_are_not(self):
        lines = ["arm,mode,n,t_ms", self.arm("eager", "eager", 10, cold=6), self.arm("fast", "", 8)]
        for mapping, options, cold, severity in (("", {}, 2, "note"), ("", {"first_samples": "cold"}, 2, "note"),
                                                 ("", {"first_samples": "warm"}, 0, "warning"),
                                                 ("warmed_up: true\n", {}, 0, "warning"),
                                                 ("warmed_up: true\n", {"first_samples": "cold"}, 2, "note")):
            with self.subTest(mapping=mapping, options=options):
                found, rows = self.table(lines, mapping, **options)
                self.assertEqual([int(row["order_index"]) for row in rows if row["cold"] == "true"], [0, 8][:cold])
                skew = [(one["arm"], one["severity"]) for one in found["findings"] if one["kind"] == "cold_start_skew"]
                self.assertEqual(skew, [("eager", severity)])

    def test_successes_that_cant_be(self):
        for line, error in (('fast,,4,"[8, 8.1]"', None), ('fast,,0,"[8, 8.1]"', "too_few_tokens"),
                            ('fast,,3,"[8, 8.1]"', "too_few_tokens"), ('fast,,5,"[8, 8.1]"', "too_many_tokens"),
                            ('fast,,4,"[0, 0]"', "zero_latency"), ('fast,,4,"[-8, nan]"', "impossible_latency"),
                            ("fast,,4,[]", "no_latency"), ('fast,,-4,"[8, 8]"', "impossible_tokens")):
            with self.subTest(line=line):
                _, rows = self.table(["arm,mode,n,t_ms", self.arm("eager", "eager", 10), line])
                found = {(row["status"], row["error_class"]) for row in rows if row["arm"] == "fast"}
                self.assertEqual(found, {("false_success", error) if error else ("ok", "")})

    def test_axes_that_no_file_states_stay_open(self):
        tables = {"a": [("eager", 10), ("quick", 8)], "b": [("eager", 10), ("quick", 13)],
                  "later": [("eager", 10.001), ("quick", 13.001)]}
        for bundle, arms in tables.items():
            lines = ["arm,mode,n,t_ms"]
            for process in range(6):
                lines += [self.arm(name, "eager" if name == "eager" else "", base * (1 + process / 1000)) for name, base in arms]
            self.table(lines, bundle=bundle)
        judged = self.assay("portability", "a", "b", "-o", "json")
        self.assertEqual(judged.returncode, 1, judged.stderr)
        flip, = [one for one in json.loads(judged.stdout)["verdicts"] if one["verdict"] == "direction_flip"]
        self.assertEqual((flip["attribution"]["basis"], flip["attribution"]["responsible"]), ("unstated", None))
        for axis in ("device", "code_generator", "framework_build", "code_sha"):
            self.assertIn(axis, flip["attribution"]["unstated"])
        self.assertIn("nothing stated", self.assay("portability", "a", "b").stdout)
        self.assertIn("agree on every axis that both state", self.succeed("compare", "a", "b"))
        # A device that one of them states: an axis, and not a difference of what is known.
        self.succeed("import", "table.csv", "--mapping", "table.yaml", "--set", "device=X", "-o", "c")
        self.assert_refused(["compare", "later", "c"], "expected each run once", "later", "c")
        self.assertIn("\"X\"", self.assert_refused(["compare", "b", "c"], "device"))
        self.assertNotIn("unknown", self.succeed("compare", "b", "c", "--vary", "device").split("== Crash")[0])

    # Options

    def test_facts_that_the_user_states_are_recorded_as_asserted(self):
        rows, manifest = self.imported("hyperfine.json", options=[
            "--set", "phase=prefill", "--set", "model=zeros", "--set", "cache=static", "--first-samples", "warm",
            "--name", "zeros", "--baseline", "head -c 30000000 /dev/zero"])
        self.assertEqual({(row["phase"], row["model"], row["cache"], row["cold"]) for row in rows},
                         {("prefill", "zeros", "static", "false")})
        self.assertNotIn("phase", manifest["identity"]["unknown"])
        self.assertEqual(manifest["study"]["name"], "zeros")
        self.assertEqual(manifest["study"]["baseline"], "head -c 30000000 /dev/zero")
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["asserted"], {"phase": "prefill", "model": "zeros", "cache": "static"})

    def test_what_is_printed_has_the_four_formats(self):
        arguments = ["import", REAL / "hyperfine.json", "-o"]
        shown = {name: self.succeed(*arguments, name, "--output-format", name) for name in ("table", "json", "csv", "md")}
        document = json.loads(shown["json"])
        manifest = json.loads((self.folder / "json" / "manifest.json").read_text())
        self.assertEqual((document["schema_version"], document["bundle"], document["format"]), (1, "json", "hyperfine"))
        self.assertEqual((document["rows"], document["cells"], document["rows_by_status"]), (20, 2, {"ok": 20}))
        self.assertEqual(document["arms"], [arm["name"] for arm in manifest["study"]["arms"]])
        self.assertEqual(document["unknown"], sorted(manifest["identity"]["unknown"]))
        self.assertEqual(document["lost_by_class"], {})
        self.assertIn("the imported files don't state", " ".join(document["warnings"]))
        table = dict(csv.reader(shown["csv"].splitlines()))
        self.assertEqual((table["what"], table["format"], table["rows"]), ("value", "hyperfine", "20 of 2 cells"))

    def test_files_of_two_formats_are_refused(self):
        error = self.assert_refused(["import", REAL / "hyperfine.json", REAL / "pytest-benchmark.json", "-o", "b"],
                                    "pytest-benchmark after hyperfine")
        self.assertIn("expected files of one format", error)
        self.assertFalse((self.folder / "b").exists())

    def test_a_format_that_is_named_and_isnt_there(self):
        self.assert_refused(["import", REAL / "hyperfine.json", "--format", "pytest-benchmark", "-o", "b"], "benchmarks")


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
