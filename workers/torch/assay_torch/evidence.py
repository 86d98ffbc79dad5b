"""The evidence of a phase: what was asked for, what ran, and whether a compiler was behind it."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch

from assay_torch import toolchain
from assay_torch.arms import PARTS
from assay_torch.options import CUDAGRAPH_MODES, MANUAL
from assay_torch.watch import Events

if TYPE_CHECKING:
    from assay_torch.engine import Engine, PhaseRuns

MOST_RECORDS = 500  # an evidence message has its greatest length


def collect(engine: Engine, phase: str) -> dict[str, Any]:
    runs = engine.runs[phase]
    found: dict[str, Any] = {"phase": phase, "requested": _requested(engine), "actual": _actual(engine, runs),
                             "fallback": False, "regions": runs.regions}
    if engine.step_times:
        found["step_times"] = [one for one in engine.step_times if one["phase"] == phase]
    if engine.read_bandwidth:
        found["read_bandwidth"] = engine.read_bandwidth
    if engine.watch:
        found |= _records(engine)
    found |= _verdict(engine, phase, runs)
    found["toolchain"] = toolchain.describe(engine.device, compiles=engine.arm.compiled_mode)
    return found


def _requested(engine: Engine) -> dict[str, Any]:
    load = engine.load
    options = {name: value for name, value in load.options.items() if name != "config"}
    requested = {"model": load.model, "mode": load.mode, "cache": load.cache, "dtype": load.dtype,
                 "dynamic": load.dynamic, "threads": load.threads, "options": options}
    if engine.options.ignored:
        requested["ignored"] = list(engine.options.ignored)  # options that mean nothing to this mode
    if engine.options.config:
        requested["config"] = engine.options.config
    return requested


def _actual(engine: Engine, runs: PhaseRuns) -> dict[str, Any]:
    load, options = engine.load, engine.options
    actual: dict[str, Any] = {
        "mode": load.mode, "cache": load.cache, "dtype": engine.model.dtype, "device": str(engine.device),
        "threads": torch.get_num_threads(),
        "attn_implementation": getattr(engine.model.config, "_attn_implementation", None)}
    if engine.arm.compiled_mode:
        actual["backend"] = None if engine.arm.fallback_error else options.torch_backend
        if engine.arm.fallback_error or runs.calls and runs.fallbacks == runs.calls:
            actual["mode"] = "eager"
        elif runs.fallbacks:
            actual["mode"] = f"{load.mode}, then eager"
        elif load.mode in CUDAGRAPH_MODES and runs.regions and not runs.graph_replays:
            actual["mode"] = f"{load.mode} without CUDA graphs"
    return actual


def _records(engine: Engine) -> dict[str, Any]:
    watch = engine.watch
    assert watch is not None
    counts = watch.counts(rescan=True)
    metrics = watch.compile_metrics()
    events = watch.events
    written, in_graphs = counts.kernels_compiled, watch.kernels_in_graphs
    return {
        "counters": {one.name: getattr(counts, one.name) for one in fields(counts)}
        | {"fallbacks": sum(one.fallbacks for one in engine.runs.values()),
           "calls": sum(one.calls for one in engine.runs.values())},
        "kernels": {"in_graphs": in_graphs, "compiled": written,
                    "loaded": None if in_graphs is None else max(0, in_graphs - written),
                    "compile_seconds": counts.compile_ns / 1e9},
        "recompiles": [_with_cost(one, metrics) for one in events.recompiles[:MOST_RECORDS]],
        "graphs": [_graph(*where, one) for where, one in metrics.items()],
        **_messages(events), "resets": engine.resets,
        "prepared": engine.prepare_seconds, "explain": engine.explained, "explain_seconds": engine.explain_seconds,
        "cache_folders": engine.folders.evidence()}


def _messages(events: Events) -> dict[str, Any]:
    """Records with their whole text; of more than MOST_RECORDS of a kind the first, and how many there were."""
    found: dict[str, Any] = {}
    for name, records in (("graph_breaks", events.graph_breaks), ("recompile_limits", events.recompile_limits),
                          ("cudagraph_messages", events.cudagraphs), ("perf_hints", events.perf_hints),
                          ("warnings", events.warnings)):
        found[name] = records[:MOST_RECORDS]
        if len(records) > MOST_RECORDS:
            found[f"{name}_in_all"] = len(records)
    return found


def _with_cost(event: dict[str, Any], metrics: dict[tuple[int, str], Any]) -> dict[str, Any]:
    metric = metrics.get((event["unit"], event.get("compile_id", "")))
    seconds = getattr(metric, "entire_frame_compile_time_s", None)
    return event if seconds is None else {**event, "seconds": seconds}


def _graph(unit: int, name: str, metric: Any) -> dict[str, Any]:
    wanted = {"frame": "co_name", "seconds": "entire_frame_compile_time_s", "backend_seconds": "backend_compile_time_s",
              "inductor_seconds": "inductor_compile_time_s", "code_generation_seconds": "code_gen_time_s",
              "guard_count": "guard_count", "operators": "graph_op_count", "recompile_reason": "recompile_reason",
              "cudagraph_skip_reason": "cudagraph_skip_reason", "fail_type": "fail_type", "fail_reason": "fail_reason",
              "cache_hits": "inductor_fx_local_cache_hit_count"}
    values = {key: getattr(metric, member, None) for key, member in wanted.items()}
    return {"unit": unit, "compile_id": name, **{key: value for key, value in values.items() if value is not None}}


def _verdict(engine: Engine, phase: str, runs: PhaseRuns) -> dict[str, Any]:
    """compiler_real with its reasons, and what was fallen back to with the whole error."""
    verdict, reasons = _decide(engine, phase, runs)
    found: dict[str, Any] = {"compiler_real": verdict, "reasons": reasons + _cudagraph_reasons(engine, runs)}
    if verdict == "fallback":
        limits = engine.watch.events.recompile_limits if engine.watch else []
        errors = [engine.arm.fallback_error] if engine.arm.fallback_error else [one["text"] for one in limits]
        found |= {"fallback": "eager", "fallback_error": "\n".join(errors) or None}
    return found


def _decide(engine: Engine, phase: str, runs: PhaseRuns) -> tuple[str, list[str]]:
    options, arm, watch = engine.options, engine.arm, engine.watch
    if engine.load.mode == MANUAL:
        return "not_applicable", [f"mode {MANUAL} asks for no compiler: eager operators, captured by hand"]
    if not arm.compiled_mode or watch is None:
        return "not_applicable", ["mode eager asks for no compiler"]
    timed = [part for part in PARTS if phase == "e2e_kv" or (part == "prefill") == (phase == "prefill")]
    if not any(options.compiles(part) for part in timed):
        return "not_applicable", [f"compile_phases {options.compile_phases}: what this phase times was to run eager"]
    if arm.fallback_error:
        return "fallback", ["nothing to compile with here", arm.fallback_error]
    if runs.regions == 0:
        return "unproven", ["nothing has run in this phase"]
    counts = watch.counts(rescan=True)
    if counts.unique_graphs == 0 and counts.graph_runs == 0:
        return "label_only", [f"mode {engine.load.mode} never reached a compiler: no graph was captured in "
                              f"{runs.calls} calls"]
    went = f"{runs.calls - runs.fallbacks} of {runs.calls} timed calls went through graphs, {runs.fallbacks} eager"
    if runs.fallbacks:
        limits = [f"recompile limit hit: {one['text']}" for one in watch.events.recompile_limits]
        return "fallback", [went, *limits]
    if options.torch_backend != "inductor":
        return "label_only", [went, f"torch_backend {options.torch_backend} captures graphs and generates no code: "
                                    "their operators ran eager"]
    if watch.kernels_in_graphs is None:
        known = (f"{counts.kernels_compiled} kernels compiled by this process; this torch doesn't tell how many were "
                 "loaded")
        return "yes" if counts.kernels_compiled else "unproven", [went, known]
    if watch.kernels_in_graphs == 0 and counts.kernels_compiled == 0:
        return "unproven", [went, "no kernel was built or loaded"]
    return "yes", [went, f"{watch.kernels_in_graphs} kernels in {counts.unique_graphs} graphs, "
                         f"{counts.kernels_compiled} of them compiled by this process"]


def _cudagraph_reasons(engine: Engine, runs: PhaseRuns) -> list[str]:
    """What a mode that promises CUDA graphs made of the promise."""
    if engine.load.mode not in (*CUDAGRAPH_MODES, MANUAL) or engine.watch is None or not runs.regions:
        return []
    if runs.graph_replays:
        return [f"{runs.graph_replays} replays of CUDA graphs in {runs.regions} timed regions"]
    if engine.device.type != "cuda":
        return [f"no CUDA graph: the device is {engine.device.type}"]
    return ["no CUDA graph was replayed", *[one["text"] for one in engine.watch.events.cudagraphs]]
