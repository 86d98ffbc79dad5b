"""Studies whose native arms compute on a GPU, on a driver of the tests' own: what rows, evidence and exit statuses say of
it, and what becomes of each way in which a GPU can fail. Kernels do nothing there, so that every token is 0.

usage: gpu_test.py ASSAY STUDIES FAKE_CUDA FAKE_NVML
"""

import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, rows_of

ASSAY, STUDIES, FAKE_CUDA, FAKE_NVML = (Path(argument).resolve() for argument in sys.argv[1:5])
del sys.argv[1:]
ARMS = [{"name": mode, "backend": "native", "mode": mode, "cache": ["dynamic", "static"], "device": "cuda", "threads": 1}
        for mode in ("eager", "compiled")]
COMPILED_STATIC = [{"name": "eager", "backend": "native", "mode": "eager", "cache": "static", "device": "cuda", "threads": 1},
                   {"name": "compiled", "backend": "native", "mode": "compiled", "cache": "static", "device": "cuda:0",
                    "threads": 1}]
UUID = "GPU-00112233-4455-6677-8899-aabbccddeeff"  # the fake driver's


class Gpu(ProgramTest):
    program = ASSAY

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-gpu-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        saved = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(saved)))
        os.environ.update(ASSAY_CUDA_DRIVER=str(FAKE_CUDA), ASSAY_NVRTC=str(FAKE_CUDA), ASSAY_NVML=str(FAKE_NVML),
                          ASSAY_CUBLASLT=str(FAKE_CUDA),  # each worker would load the machine's own
                          FAKE_NVML_UUID=UUID, ASSAY_KERNEL_CACHE=str(self.folder / "kernels"),
                          ASSAY_TORCH_PYTHON="/nowhere/python")  # doctor imports torch where it is, which takes seconds
        self.succeed("model", "make", "tiny-llama", "-o", "model")

    def run_study(self, **changes):
        self.write_study(**{"arms": COMPILED_STATIC, **changes})
        self.succeed("run", "study.yaml", "-o", "bundle")
        self.succeed("verify", "bundle")
        return rows_of(self.folder / "bundle")

    def records(self, name):
        """The cells' records of that name, by arm and phase."""
        return {(row["arm"], row["phase"]): json.loads(
            (self.folder / "bundle" / "cells" / row["cell_id"] / name).read_text()) for row in rows_of(self.folder / "bundle")}

    def test_rows_say_what_the_gpu_did(self):
        rows = self.run_study(arms=ARMS, token_lengths=[40], repetitions=3)
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        for row in rows:
            self.assertGreater(float(row["device_ms"]), 0)
            self.assertEqual(row["sm_clock_mhz"], "1980", "the GPU's, not the processor's")
            for column in ("kernels_compiled_delta", "kernels_loaded_delta", "cudagraph_captures_delta",
                           "graph_replays_delta", "recompiles_delta", "fallbacks_delta"):
                self.assertTrue(row[column].isdigit(), column)
            measured = int(row["repetition"]) >= 0 and row["arm"] == "compiled-static" and row["phase"] == "kv_decode"
            if measured:
                self.assertEqual(row["graph_replays_delta"], "40", "every step, from one capture")
            self.assertEqual(row["cudagraph_captures_delta"], "0", "captures belong to the preparation")
            if row["arm"].startswith("compiled") and row["phase"] == "prefill":
                self.assertEqual(row["graph_replays_delta"], "1")
            if row["arm"].startswith("eager"):
                self.assertEqual((row["graph_replays_delta"], row["cudagraph_captures_delta"]), ("0", "0"))
        energy = [row for row in rows if row["energy_j"]]
        self.assertTrue(energy, "regions of many steps of the counter")
        for row in energy:  # 100 W; the readings stand outside of the region
            self.assertGreater(float(row["energy_j"]), 0.1 * 0.8 * float(row["latency_ms"]))

    def shared(self, order, others):
        """The findings `gpu_shared` of a run beside process 1, whose memory and share `others` says; and its decisions."""
        os.environ["FAKE_NVML_PROCESSES"] = f"1:{others}"
        self.run_study(phases=["kv_decode"], order=order, repetitions=6)
        whole = json.loads(self.succeed("analyze", "bundle", "-o", "json"))
        shutil.rmtree(self.folder / "bundle")
        return [one for one in whole["findings"] if one["kind"] == "gpu_shared"], whole["decisions"]

    def test_another_program_on_the_gpu_is_named(self):
        found, decisions = self.shared("shuffled", "5000000000:99")
        self.assertEqual({(one["severity"], one["arm"]) for one in found}, {("warning", "eager"), ("warning", "compiled")})
        for one in found:
            self.assertRegex(one["text"], r"\Aneighbour \(process 1\) held 5.00 GB of its memory during (\d+) of \1 warm rows and "
                                          r"computed for 99 % of the GPU's time")
            self.assertTrue(one["rows"])
        self.assertIn("gpu_shared", json.dumps(decisions), "the arms weren't interleaved")
        found, decisions = self.shared("interleaved", "5000000000:99")
        self.assertEqual({one["severity"] for one in found}, {"warning"})
        self.assertNotIn("gpu_shared", json.dumps(decisions))
        found, _ = self.shared("interleaved", "5000000000:0")
        self.assertEqual({one["severity"] for one in found}, {"note"}, "it only holds memory")

    def test_bench_names_who_shares_the_gpu_and_what_holds_its_clock_down(self):
        bench = ("bench", "model", "-p", "8", "-n", "4", "-r", "3", "--device", "cuda", "-t", "1")
        self.assertNotIn("throttled", self.succeed(*bench), "the power limit is in the way and lowers no clock")
        os.environ.update(FAKE_NVML_PROCESSES="1:5000000000:70", FAKE_NVML_POWER="1")
        told = " ".join(self.succeed(*bench).split())
        self.assertRegex(told, r"- gpu_shared \([^)]*\): neighbour \(process 1\)")
        self.assertIn("warm rows ran throttled (power)", told)

    def test_ready_studies_show_their_findings_on_a_gpu_too(self):
        studies = sorted((STUDIES / "smoke-gpu").glob("paradox-*.yaml"))
        self.assertEqual(len(studies), 4)
        self.succeed("model", "make", "tiny-gpt2", "-o", "models/tiny-gpt2")
        for path in studies:
            self.succeed("run", path, "-o", path.stem)
            self.succeed("verify", path.stem)
            rows = rows_of(self.folder / path.stem)
            self.assertEqual({row["status"] for row in rows}, {"ok"}, path.stem)
            self.assertTrue(all(row["device_ms"] for row in rows), path.stem)
        recompiled = [row for row in rows_of(self.folder / "paradox-variable", arm="compiled") if row["recompiles_delta"] != "0"]
        self.assertGreaterEqual(len(recompiled), 3, "lengths that neither preparation nor a warm-up met")
        self.assertEqual({row["recompiles_delta"] for row in rows_of(self.folder / "paradox-padded")}, {"0"})
        found = json.loads(self.succeed("analyze", "paradox-decode", "-o", "json"))["findings"]
        kinds = {(one["arm"], one["kind"]) for one in found if one["kind"] in ("recompile_limit", "fallback", "stable_compile")}
        self.assertEqual(kinds, {("compiled-dynamic", "recompile_limit"), ("compiled-dynamic", "fallback"),
                                 ("compiled-static", "stable_compile")})

    def test_a_profile_says_what_the_gpu_did(self):
        os.environ["ASSAY_CUPTI"] = str(FAKE_CUDA)
        arms = [*COMPILED_STATIC, dict(COMPILED_STATIC[0], name="cpu", device="cpu")]
        self.write_study(arms=arms, phases=["kv_decode"])
        self.succeed("run", "study.yaml", "-o", "bundle", "--profile")
        self.succeed("verify", "bundle")
        records = self.records("evidence.json")
        compiled = records[("compiled", "kv_decode")]["profile"]["summary"]
        self.assertEqual((compiled["kernels_launched"], compiled["distinct_kernels"], compiled["launch_calls"]), (8, 2, 4),
                         "4 steps, each one replay of two kernels")
        self.assertEqual((compiled["device"], compiled["counts"]), ("cuda", "kernels on the device"))
        self.assertEqual(compiled["synchronizations"], 0, "steps feed one another, and tokens arrive where the host reads them")
        self.assertEqual(compiled["gpu_busy_ns"], 8 * 1000)
        self.assertEqual(compiled["top"][0], {"name": "assay_prologue (40 registers, 0 B shared)", "calls": 4, "total_ns": 4000})
        eager = records[("eager", "kv_decode")]["profile"]["summary"]
        self.assertEqual(eager["kernels_launched"], eager["launch_calls"])
        self.assertIn("GPU alone", records[("cpu", "kv_decode")]["profile"]["summary"]["problem"])
        cell = next(row["cell_id"] for row in rows_of(self.folder / "bundle", arm="compiled"))
        with gzip.open(self.folder / "bundle" / "cells" / cell / "trace.json.gz") as trace:
            events = json.load(trace)["traceEvents"]
        self.assertEqual(sum(event["cat"] == "kernel" for event in events), 8)
        self.succeed("report", "bundle")
        self.assertIn("assay_run (40 registers", (self.folder / "bundle" / "report.md").read_text())

    def test_studies_for_a_gpu_plan_without_one(self):
        os.environ["ASSAY_CUDA_DRIVER"] = "/nonexistent/libcuda.so.1"
        for path in (STUDIES / "safe-and-fast.yaml", *sorted((STUDIES / "smoke-gpu").glob("*.yaml"))):
            plan = json.loads(self.succeed("plan", path, "-o", "json"))
            self.assertGreater(plan["counts"]["rows"], 0)
            native = {arm["arm"]: arm["here"] for arm in plan["arms"] if not arm["arm"].startswith("torch")}
            self.assertEqual(set(native.values()), {"impossible"}, path.stem)

    def test_evidence_and_identity_name_the_gpu_and_its_compiler(self):
        self.run_study()
        for (arm, _), evidence in self.records("evidence.json").items():
            reported = evidence["reported"]
            self.assertEqual(reported["actual"]["device"],
                             {"kind": "cuda", "name": "Fake GPU", "uuid": UUID, "compute_capability": "9.0",
                              "target": "sm_90a", "driver": "CUDA 13.0"})
            self.assertEqual((reported["toolchain"]["name"], reported["toolchain"]["version"]), ("nvrtc", "13.0"))
            library = Path(reported["toolchain"]["path"]).read_bytes()
            self.assertEqual(reported["toolchain"]["sha256"], hashlib.sha256(library).hexdigest())
            self.assertGreater(reported["counters"]["kernels_compiled"] + reported["counters"]["kernels_loaded"], 0)
            self.assertEqual(evidence["compiler_real"], "yes" if arm == "compiled" else "not_applicable")
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["arms"]["compiled"]["gpu"]["uuid"], UUID)
        manifest = json.loads((self.folder / "bundle" / "manifest.json").read_text())
        identity = manifest["identity"]["arms"]["compiled"]
        self.assertEqual(identity["device"], "Fake GPU, compute capability 9.0, CUDA 13.0")
        self.assertEqual(identity["code_generator"], "nvrtc 13.0 sm_90a")

    def test_a_gpu_that_is_not_there_is_one_line(self):
        arms = [dict(COMPILED_STATIC[0], device="cuda:3")]
        self.write_study(arms=arms)
        done = self.assay("run", "study.yaml", "-o", "bundle")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Aassay: [^\n]*expected one of this machine's GPUs \(it has 1\), found cuda:3[^\n]*\n\Z")
        here = json.loads(self.succeed("plan", "study.yaml", "-o", "json"))["arms"]
        self.assertIn("impossible", json.dumps(here))
        self.assertIn("cuda:3", json.dumps(here))
        done = self.assay("generate", "model", "1 2", "--ids", "--device", "cuda:3")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\Aassay: [^\n]*found cuda:3\n\Z")
        os.environ["ASSAY_CUDA_DRIVER"] = "/nonexistent/libcuda.so.1"
        self.assertRegex(self.succeed("doctor", "-o", "csv"), r"cuda,missing,.*/nonexistent/libcuda.so.1")
        # Beside an arm that runs, its rows are lost and the others aren't.
        rows = self.run_study(arms=[dict(COMPILED_STATIC[0], name="cpu", device="cpu"), *arms])
        self.assertEqual({(row["arm"], row["status"], row["error_class"]) for row in rows},
                         {("cpu", "ok", ""), ("eager", "error", "no_cuda")})

    def test_without_nvrtc_nothing_can_be_compiled(self):
        os.environ["ASSAY_NVRTC"] = "/nonexistent/libnvrtc.so"
        self.write_study(arms=COMPILED_STATIC)
        done = self.assay("run", "study.yaml", "-o", "bundle")
        self.assertEqual(done.returncode, 3)
        self.assertIn("/nonexistent/libnvrtc.so", done.stderr)

    def test_doctor_and_generate_name_the_gpu(self):
        told = self.succeed("doctor", "-o", "csv")
        self.assertRegex(told, r"cublaslt,ok,.*: 13.1.0")
        self.assertRegex(told, r'cuda,ok,"?Fake GPU, compute capability 9.0, 132 multiprocessors')
        self.assertRegex(told, r"gpu_read_bandwidth,ok,[0-9.e+]+ GB/s")
        self.assertRegex(told, r"gpu_matrix_rate,ok,[0-9.e+]+ TFLOP/s in bf16")
        done = self.assay("generate", "model", "1 2", "--ids", "-n", "6", "--device", "cuda", "--mode", "compiled")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"device   Fake GPU, .*; 2 graphs captured, 4 replays, \d+ kernels launched")
        self.assert_refused(["generate", "model", "1", "--ids", "--device", "gpu"], "cpu, cuda or cuda:N")

    def test_model_info_says_whether_the_gpu_holds_the_model(self):
        facts = json.loads(self.succeed("model", "info", "model", "-o", "json", "--device", "cuda"))
        weights, free = facts["weight_bytes"], facts["gpu_free_bytes"]
        self.assertEqual((facts["gpu"], facts["gpu_memory_bytes"]), ("Fake GPU", 10**12))
        self.assertEqual((facts["gpu_fits_eager"], facts["gpu_fits_compiled"]), (True, True))
        self.assertEqual(facts["gpu_cache_positions_beside_weights"], (free - weights) // facts["kv_bytes_per_position"])
        self.assertAlmostEqual(facts["gpu_decode_step_least_ms"] * facts["gpu_read_gb_per_s"] * 1e6,
                               facts["decode_step_weight_bytes"], delta=1)
        os.environ["FAKE_CUDA_MEMORY"] = str(weights + weights // 2)
        facts = json.loads(self.succeed("model", "info", "model", "-o", "json", "--device", "cuda:0"))
        self.assertEqual((facts["gpu_fits_eager"], facts["gpu_fits_compiled"]), (True, False))
        self.assertNotIn("gpu_read_gb_per_s", facts, "no room to measure it")
        self.assertNotIn("gpu", json.loads(self.succeed("model", "info", "model", "-o", "json")))
        self.assertIn("found cuda:3", self.assay("model", "info", "model", "--device", "cuda:3").stderr)

    def test_a_step_that_cant_be_recorded_runs_eager_with_the_reason(self):
        for call in ("cuStreamEndCapture", "cuGraphInstantiateWithFlags"):
            os.environ["FAKE_CUDA_FAILS"] = f"{call}:2:900"  # the first is the prompt's
            rows = self.run_study(phases=["kv_decode"], parity="after")
            self.assertEqual({row["status"] for row in rows}, {"ok"})
            self.assertEqual({row["fallbacks_delta"] for row in rows if row["arm"] == "compiled" and row["cold"] == "false"},
                             {"4"})
            evidence = self.records("evidence.json")[("compiled", "kv_decode")]
            self.assertEqual(evidence["compiler_real"], "fallback")
            self.assertEqual(evidence["reported"]["fallback"], "eager")
            self.assertIn(f"{call}: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", evidence["reported"]["fallback_error"])
            self.assertIs(self.records("parity.json")[("compiled", "kv_decode")]["passed"], True)
            self.wipe()

    def test_a_kernel_that_doesnt_compile_runs_eager_with_the_whole_log(self):
        os.environ["FAKE_NVRTC_FAILS"] = "NORMED = 1"  # of fused kernels alone
        rows = self.run_study(phases=["kv_decode"])
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        evidence = self.records("evidence.json")[("compiled", "kv_decode")]
        self.assertEqual(evidence["compiler_real"], "fallback")
        self.assertIn("fake log", evidence["reported"]["fallback_error"])

    def test_a_lost_context_is_a_crash_and_the_next_unit_gets_a_fresh_worker(self):
        # Parity's process and the timed one that comes after it have a mark between them.
        os.environ.update(FAKE_CUDA_FAILS="cuGraphLaunch:6:700", FAKE_CUDA_MARK=str(self.folder / "mark"))
        rows = self.run_study(phases=["kv_decode", "e2e_kv"], parity="after", order="sequential")
        lost = [row for row in rows if row["status"] != "ok"]
        self.assertTrue(lost)
        self.assertEqual({(row["arm"], row["phase"], row["status"], row["error_class"]) for row in lost},
                         {("compiled", "kv_decode", "crash", "CUDA_ERROR_ILLEGAL_ADDRESS")})
        evidence = self.records("evidence.json")[("compiled", "kv_decode")]
        (failure,) = evidence["failures"]
        self.assertIn("cuGraphLaunch: CUDA_ERROR_ILLEGAL_ADDRESS", failure["message"])
        self.assertEqual(len([row for row in rows if row["phase"] == "e2e_kv"]), 2 * 3, "of a fresh worker")

    def test_out_of_memory_names_what_was_asked_what_is_free_and_what_holds_the_rest(self):
        os.environ["FAKE_CUDA_MEMORY"] = "12000000"
        rows = self.run_study(batch=[1, 64], phases=["kv_decode"], scenarios=[{"name": "long", "prompt_tokens": [96]}])
        self.assertEqual({(row["batch"], row["status"], row["error_class"]) for row in rows},
                         {("1", "ok", ""), ("64", "oom", "CUDA_ERROR_OUT_OF_MEMORY")})
        cell = next(row["cell_id"] for row in rows if row["batch"] == "64")
        evidence = json.loads((self.folder / "bundle" / "cells" / cell / "evidence.json").read_text())
        for failure in evidence["failures"]:
            self.assertRegex(failure["message"], r"expected \d+ bytes on Fake GPU, found [\d.]+ [kM]?B of 12.00 MB free; this "
                             r"process holds .*: weights [\d.]+ [kM]B, caches .*; the driver and other processes hold ")

    def test_quality_is_of_products_in_fp8_where_that_is_asked_for(self):
        self.succeed("model", "make", "tiny-llama", "-o", "wide", "--dtype", "bf16")
        self.succeed("model", "quantize", "wide", "-t", "fp8", "-o", "narrow")
        asked = ["model", "quality", "narrow", "--reference", "wide", "--device", "cuda", "--window", 32, "--windows", 4, "-o", "json"]
        kernels = lambda: sorted(path.name for path in (self.folder / "kernels").iterdir())
        self.succeed(*asked)
        plain = kernels()
        self.assertTrue(plain, "compiled kernels are kept")
        self.succeed(*asked, "--dtype", "fp8")
        self.assertGreater(len(kernels()), len(plain), "its products are others")
        self.assert_refused(["model", "quality", "model", "--reference", "model", "--device", "cuda", "--reference-dtype", "int3"],
                            "--reference-dtype: expected fp32, fp16, bf16 or fp8, found")

    def wipe(self):
        for path in sorted((self.folder / "bundle").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (self.folder / "bundle").rmdir()


if __name__ == "__main__":
    unittest.main()
