"""Tests exceptions in an `error` reply, and the summary of a trace."""

import pytest
import torch
from assay_torch import profiling
from assay_torch.errors import NonFinite, Unsupported, class_names, error_class, is_out_of_memory, whole_message


def raised(error, cause=None):
    try:
        raise error from cause
    except Exception as caught:
        return caught


@pytest.mark.parametrize("error,expected", [
    (MemoryError(), True), (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), True),
    (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), True),
    (RuntimeError("CUDA error: an illegal memory access was encountered"), False), (ValueError("memory"), False)])
def test_out_of_memory(error, expected):
    assert is_out_of_memory(raised(error)) is expected
    # Dynamo wraps what a compiler throws.
    assert is_out_of_memory(raised(RuntimeError("backend failed"), error)) is expected


def test_class_message_and_chain():
    error = raised(KeyError("name"), RuntimeError("first"))
    assert error_class(error) == "KeyError"
    text = whole_message(error)
    assert text.startswith("'name'\n") and "RuntimeError: first" in text and "Traceback" in text
    assert {"KeyError", "LookupError", "RuntimeError"} <= class_names(error)
    assert whole_message(raised(Unsupported("mode: found x"))) == "mode: found x"
    assert error_class(raised(NonFinite("logits: found NaN"))) == "non_finite"


def event(name, cat, ts, dur, tid=1):
    return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "tid": tid}


def test_summary_of_a_device_trace():
    """Two kernels that overlap, a gap of 20 us, a copy; what lies outside isn't counted."""
    region = event(profiling.REGION, "user_annotation", 100, 100)
    events = [region, event("early", "kernel", 50, 10), event("late", "gpu_memcpy", 210, 5),
              event("a", "kernel", 110, 20), event("b", "kernel", 120, 20),
              event("Memcpy DtoD", "gpu_memcpy", 160, 5), event("a", "kernel", 165, 10),
              event("cudaLaunchKernel", "cuda_runtime", 101, 1), event("cudaGraphLaunch", "cuda_runtime", 102, 1),
              event("cudaStreamSynchronize", "cuda_runtime", 150, 1),
              event("cudaDeviceSynchronize", "cuda_runtime", 180, 1),
              event("cudaDeviceSynchronize", "cuda_runtime", 90, 1)]
    found = profiling.summarise(events, "cuda")
    assert (found["kernels_launched"], found["distinct_kernels"], found["copies"]) == (3, 2, 1)
    assert found["gpu_busy_ns"] == 45_000  # 110..140, 160..175
    assert found["gpu_gap_ns"] == 20_000
    assert found["synchronizations"] == 1, "the worker's own at the end isn't the arm's"
    assert found["launch_calls"] == 2
    tops = [(one["name"], one["calls"], one["total_ns"]) for one in found["top"]]
    assert tops == [("a", 2, 30_000), ("b", 1, 20_000)]


def test_summary_of_a_host_trace_counts_leaves():
    region = event(profiling.REGION, "user_annotation", 0, 100)
    events = [region, event("aten::linear", "cpu_op", 10, 30), event("aten::addmm", "cpu_op", 12, 20),
              event("aten::copy_", "cpu_op", 50, 5), event("TorchDynamo Cache Lookup", "cpu_op", 1, 2),
              event("aten::mul", "cpu_op", 200, 5)]
    found = profiling.summarise(events, "cpu")
    assert found["kernels_launched"] == 2 and found["copies"] == 1
    assert [one["name"] for one in found["top"]] == ["aten::addmm", "aten::copy_"]
    assert "gpu_busy_ns" not in found
    assert "problem" in profiling.summarise([], "cpu")


def test_profile_writes_a_trace(arm, tmp_path):
    import json

    from assay_torch.requests import Shape
    from test_arms import make_prompts, padded
    prompt = padded(make_prompts()[:1])
    found = arm("llama").profile(Shape("kv_decode", 1, 2, 7), prompt, tmp_path / "trace.json")
    assert found["device"] == "cpu" and found["wall_ns"] > 0
    assert found["kernels_launched"] > 50 and len(found["top"]) == 10
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
