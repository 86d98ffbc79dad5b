"""The evidence of a phase: what was asked for, what ran, and whether a compiler was behind it."""

from __future__ import annotations

from typing import Any

import torch

from assay_torch import toolchain
from assay_torch.arms import PARTS
from assay_torch.engine import Engine
from assay_torch.options import CUDAGRAPH_MODES, MANUAL
from assay_torch.units import Runs, Unit, counters
from assay_torch.watch import Events, Watch

MOST_RECORDS = 500  # an evidence message has its greatest length


def collect(engine: Engine, phase: str) -> dict[str, Any]:
    """Evidence of the last unit of the phase; the facts of the process's other units are beside it, if there."""
    engine.folders.begin_request()
    unit = engine.unit_of(phase)
    runs = unit.runs
    found: dict[str, Any] = {"phase": phase, "requested": _requested(engine), "actual": _actual(engine, runs),
                             "fallback": False, "unit": unit.number, "regions": runs.regions}
    found["memory"] = engine.faults[phase].evidence()
    if unit.step_times:
        found["step_times"] = unit.step_times
    if engine.read_bandwidth:
        found["read_bandwidth"] = engine.read_bandwidth
    if engine.watch:
        found |= _records(engine, engine.watch, unit)
    found |= _verdict(engine, unit)
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


def _actual(engine: Engine, runs: Runs) -> dict[str, Any]:
    load, options = engine.load, engine.options
    actual: dict[str, Any] = {
        "mode": load.mode, "cache": load.cache, "dtype": engine.model.dtype, "device": str(engine.device),
        "threads": torch.get_num_threads(),
        "attn_implementation": getattr(engine.model.config, "_attn_implementation", None)}
    if engine.model.fp8:
        actual["fp8"] = engine.model.fp8
    if options.sdpa_kernel != "auto":
        actual["sdpa_kernel"] = options.sdpa_kernel
    if engine.arm.compiled_mode:
        actual["backend"] = None if engine.arm.fallback_error else options.torch_backend
        if engine.arm.fallback_error or runs.calls and runs.fallbacks == runs.calls:
            actual["mode"] = "eager"
        elif runs.fallbacks:
            actual["mode"] = f"{load.mode}, then eager"
        elif load.mode in CUDAGRAPH_MODES and runs.regions and not runs.graph_replays:
            actual["mode"] = f"{load.mode} without CUDA graphs"
    return actual


def _records(engine: Engine, watch: Watch, unit: Unit) -> dict[str, Any]:
    counts, events, metrics = unit.counts(), watch.events, watch.compile_metrics()
    return {
        "counters": counters(counts, [unit.runs]),
        "counters_of_process": counters(watch.counts(rescan=True), engine.all_runs),
        "kernels": {"in_graphs": unit.kernels_in_graphs(), "files_written": counts.kernels_compiled,
                    "compile_seconds": counts.compile_ns / 1e9},
        "recompiles": [_with_cost(one, metrics) for one in unit.of(events.recompiles)[:MOST_RECORDS]],
        "graphs": [_graph(*where, one) for where, one in metrics.items() if where[0] == unit.number],
        **_messages(events, unit), "resets": engine.resets,
        "prepared": unit.prepared, "explain": engine.explained, "explain_seconds": engine.explain_seconds,
        "cache_folders": unit.cache_folders()}


def _messages(events: Events, unit: Unit) -> dict[str, Any]:
    """Records with their whole text; of more than MOST_RECORDS of a kind the first, and how many there were."""
    found: dict[str, Any] = {}
    for name, records in (("graph_breaks", events.graph_breaks), ("recompile_limits", events.recompile_limits),
                          ("cudagraph_messages", events.cudagraphs), ("perf_hints", events.perf_hints),
                          ("warnings", events.warnings)):
        records = unit.of(records)
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


def _verdict(engine: Engine, unit: Unit) -> dict[str, Any]:
    """compiler_real with its reasons, and what was fallen back to with the whole error."""
    verdict, reasons = _decide(engine, unit)
    promised = _cudagraph_reasons(engine, unit)
    found: dict[str, Any] = {"compiler_real": verdict, "reasons": reasons + promised}
    if verdict == "yes" and engine.load.mode in CUDAGRAPH_MODES and not unit.runs.graph_replays:
        error = [one["text"] for one in _skips(engine, unit)] or promised
        found |= {"compiler_real": "fallback", "fallback": CUDAGRAPH_MODES[engine.load.mode],
                  "fallback_error": "\n".join(error)}
    if verdict == "fallback":
        error = engine.arm.fallback_error
        errors = [error] if error else [one["text"] for one in _limits(engine, unit)]
        found |= {"fallback": "eager", "fallback_error": "\n".join(errors) or None}
    return found


def _limits(engine: Engine, unit: Unit) -> list[dict[str, Any]]:
    """The unit's recompile limits; if none, the process's: without a reset torch may tell of a frame once."""
    told = engine.watch.events.recompile_limits if engine.watch else []
    return unit.of(told) or (told if engine.options.reset == "never" else [])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _decide(engine: Engine, unit: Unit) -> tuple[str, list[str]]:
    options, arm, runs, phase = engine.options, engine.arm, unit.runs, unit.phase
    if engine.load.mode == MANUAL:
        return "not_applicable", [f"mode {MANUAL} asks for no compiler: eager operators, captured by hand"]
    if not arm.compiled_mode:
        return "not_applicable", ["mode eager asks for no compiler"]
    timed = [part for part in PARTS if phase == "e2e_kv" or (part == "prefill") == (phase == "prefill")]
    if not any(options.compiles(part) for part in timed):
        return "not_applicable", [f"compile_phases {options.compile_phases}: the study requests eager for the timed part of "
                                  "this phase"]
    if arm.fallback_error:
        return "fallback", ["no compiler works here", arm.fallback_error]
    if runs.regions == 0:
        return "unproven", ["nothing has run in this phase"]
    counts = unit.counts()
    if counts.unique_graphs == 0 and counts.graph_runs == 0 and not _limits(engine, unit):
        return "label_only", [f"mode {engine.load.mode} never reached a compiler: no graph was captured in "
                              f"{_counted(runs.calls, 'call')}"]
    went = f"{runs.calls - runs.fallbacks} of {runs.calls} timed calls went through graphs, {runs.fallbacks} ran eager"
    if runs.fallbacks:
        return "fallback", [went, *(f"recompile limit hit: {one['text']}" for one in _limits(engine, unit))]
    if options.torch_backend != "inductor":
        return "label_only", [went, f"torch_backend {options.torch_backend} captures graphs and generates no code: "
                                    "their operators ran eager"]
    verdict, known = _kernels_known(engine, unit)
    return verdict, [went, known]


def _kernels_known(engine: Engine, unit: Unit) -> tuple[str, str]:
    """Says if kernels stand behind the graphs that ran; without a reset they may be of an earlier unit."""
    scope, counts, in_graphs = "this unit", unit.counts(), unit.kernels_in_graphs()
    if engine.options.reset == "never" and not in_graphs and counts.kernels_compiled == 0:
        scope, counts, in_graphs = "this process", unit.totals().counts, unit.totals().kernels_in_graphs
    written = counts.kernels_compiled
    if in_graphs is None:
        return ("yes" if written else "unproven",
                f"{scope} wrote {_counted(written, 'file')} of machine code; this torch doesn't count loaded kernels")
    if in_graphs == 0 and written == 0:
        return "unproven", "no kernel was built or loaded"
    return "yes", (f"the source of {_counted(counts.unique_graphs, 'graph')} defines {_counted(in_graphs, 'kernel')}; "
                   f"{scope} wrote {_counted(written, 'file')} of machine code" +
                   ("" if written else ", so a cache had them all"))


def _cudagraph_reasons(engine: Engine, unit: Unit) -> list[str]:
    """Reasons of a mode that promises CUDA graphs: its replays, or why there were none."""
    runs = unit.runs
    if engine.load.mode not in (*CUDAGRAPH_MODES, MANUAL) or engine.watch is None or not runs.regions:
        return []
    skips = [one["text"] for one in _skips(engine, unit)]
    if runs.graph_replays:
        return [f"{_counted(runs.graph_replays, 'replay')} of CUDA graphs in {_counted(runs.regions, 'timed region')}",
                *skips]
    if engine.device.type != "cuda":
        return [f"no CUDA graph: the device is {engine.device.type}", *skips]
    return ["no CUDA graph was replayed", *skips]


def _skips(engine: Engine, unit: Unit) -> list[dict[str, Any]]:
    """Messages of torch on graphs that it left without a CUDA graph; of captures it tells in the same place."""
    told = unit.of(engine.watch.events.cudagraphs) if engine.watch else []
    skips = [one for one in told if "skip" in one["text"].lower()]
    return skips if skips or unit.runs.graph_replays else told
