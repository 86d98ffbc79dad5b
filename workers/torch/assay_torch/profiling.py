"""One repetition under torch.profiler: the Chrome trace, and a summary read out of it."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Callable

import torch

REGION = "assay: timed region"
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
_SYNCHRONIZES = re.compile(r"cu(da)?(Stream|Device|Event|Ctx)Synchronize")
TOP = 10


def profile(run: Callable[[Callable[[], Any], Callable[[], Any]], Any], device: torch.device,
            path: Path) -> dict[str, Any]:
    """`run(start, end)` calls `start` and `end` at the ends of the timed region. Writes the trace to `path`,
    compressed where that ends in .gz."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    region = torch.profiler.record_function(REGION)
    with torch.profiler.profile(activities=activities) as profiler:
        timing = run(region.__enter__, lambda: region.__exit__(None, None, None))
    profiler.export_chrome_trace(str(path))
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    return {"device": device.type, "wall_ns": timing.latency_ns, **summarise(events, device.type)}


def summarise(events: list[dict[str, Any]], device: str) -> dict[str, Any]:
    """Summary of the complete ("X") events of a Chrome trace, times in microseconds."""
    region = next((event for event in events if event["name"] == REGION and event.get("cat") == "user_annotation"),
                  None)
    if region is None:
        return {"problem": "the trace has no event of the timed region"}
    begin, end = region["ts"], region["ts"] + region["dur"]
    inside = [event for event in events if begin <= event["ts"] <= end]
    return _of_device(inside) if device == "cuda" else _of_host(inside)


def _of_device(inside: list[dict[str, Any]]) -> dict[str, Any]:
    """The region ends with the device idle, so that all it started lies in it."""
    work = [event for event in inside if event.get("cat") in DEVICE_CATEGORIES]
    kernels = [event for event in work if event["cat"] == "kernel"]
    spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in work)
    busy = gaps = 0.0
    reached: float | None = None
    for start, stop in spans:
        if reached is None:
            reached = start
        gaps += max(0.0, start - reached)
        busy += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    runtime = [event for event in inside if event.get("cat") in ("cuda_runtime", "cuda_driver")]
    # The worker's own wait for the device is the last thing in the region, in every arm.
    waits = sum(bool(_SYNCHRONIZES.search(event["name"])) for event in runtime)
    return {"counts": "kernels on the device", "kernels_launched": len(kernels),
            "distinct_kernels": len({event["name"] for event in kernels}), "gpu_busy_ns": round(busy * 1000),
            "gpu_gap_ns": round(gaps * 1000), "copies": sum(event["cat"] == "gpu_memcpy" for event in work),
            "synchronizations": max(0, waits - 1), "launch_calls": _launch_calls(runtime), "top": _top(kernels)}


def _launch_calls(runtime: list[dict[str, Any]]) -> int:
    """Calls of the host that start device work: a replayed CUDA graph is one of them, whatever it holds."""
    return sum("Launch" in event["name"] for event in runtime)


def _of_host(inside: list[dict[str, Any]]) -> dict[str, Any]:
    """Leaf operators stand in for kernels; a compiled graph is one, since its kernels have no events of their own."""
    host = sorted((event for event in inside if _is_operator(event) or "CompiledFxGraph" in event["name"]),
                  key=lambda event: (event["tid"], event["ts"], -event["dur"]))
    leaves = []
    for event, following in zip(host, [*host[1:], None]):
        nested = (following is not None and following["tid"] == event["tid"]
                  and following["ts"] < event["ts"] + event["dur"])
        if not nested or "CompiledFxGraph" in event["name"]:
            leaves.append(event)
    return {"counts": "leaf operators, and runs of compiled graphs", "kernels_launched": len(leaves),
            "distinct_kernels": len({event["name"] for event in leaves}),
            "copies": sum(event["name"] in ("aten::copy_", "aten::clone") for event in leaves),
            "synchronizations": sum(event["name"] == "aten::_local_scalar_dense" for event in leaves),
            "top": _top(leaves)}


def _is_operator(event: dict[str, Any]) -> bool:
    """aten::add and its like; the runtime's own marks have names without a namespace."""
    return event.get("cat") == "cpu_op" and "::" in event["name"]


def _top(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls, total = Counter(), Counter()
    for event in events:
        calls[event["name"]] += 1
        total[event["name"]] += event["dur"]
    return [{"name": name, "calls": calls[name], "total_ns": round(us * 1000)} for name, us in total.most_common(TOP)]
