"""Counts the compiler's work while it goes on: Dynamo's counters, log records that nothing else keeps, and hooks
where torch counts nothing (runs of compiled graphs, captures and replays of CUDA graphs)."""

from __future__ import annotations

import logging
import os
import re
import traceback
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Iterator

from assay_torch import compat
from assay_torch.cachedirs import CacheFolders

LOGGERS = ("torch._dynamo", "torch._inductor", "torch._functorch")
ARTIFACTS = ("recompiles", "graph_breaks", "cudagraphs", "perf_hints")
CUDAGRAPH_TREES = "torch._inductor.cudagraph_trees"
_GUARD = re.compile(r"^- (?:\d+/\d+(?:_\d+)?: )?(.*)$")
_EXPECTED = re.compile(r"^(.*?)[.,]? expected (.*), actual (.*)$")


@dataclass(frozen=True)
class Counts:
    """Totals of the process; a sample's counters are differences of two of these."""

    unique_graphs: int = 0
    graph_breaks: int = 0
    recompiles: int = 0
    recompile_limit_hits: int = 0
    kernels_compiled: int = 0
    kernels_generated: int = 0
    fx_cache_hits: int = 0
    compile_ns: int = 0
    graph_runs: int = 0
    cudagraph_captures: int = 0
    graph_replays: int = 0
    cudagraph_skips: int = 0

    def minus(self, before: Counts) -> dict[str, int]:
        return {one.name: getattr(self, one.name) - getattr(before, one.name) for one in fields(self)}


@dataclass
class Events:
    """Log records by kind, each with its whole text and what was going on."""

    recompiles: list[dict[str, Any]] = field(default_factory=list)
    graph_breaks: list[dict[str, Any]] = field(default_factory=list)
    cudagraphs: list[dict[str, Any]] = field(default_factory=list)
    perf_hints: list[dict[str, Any]] = field(default_factory=list)
    recompile_limits: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)


class _Handler(logging.Handler):
    def __init__(self, watch: Watch) -> None:
        super().__init__(logging.DEBUG)
        self._watch = watch
        self._last: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record is not self._last:  # a record reaches the handlers of several of LOGGERS
            self._last = record
            self._watch.note(record)


class Watch:
    """Attached once a process, after torch is imported and before anything is compiled."""

    def __init__(self, folders: CacheFolders) -> None:
        self.graph_runs = 0
        self.graph_replays = 0
        self.cudagraph_captures = 0
        self.events = Events()
        self.context: dict[str, Any] = {}  # what is going on: phase, during, repetition
        self.kernels_in_graphs: int | None = None  # where this torch doesn't tell
        self._folders = folders
        self._paused = False
        self.unit = 0  # of what is compiled now; compile ids start again after a reset
        self._archived: list[tuple[int, Any]] = []
        self._hidden = Counts()  # what came before the arm, or is none of its: explain()
        self._scanned: tuple[tuple[int, ...], int] = ((), 0)
        folders.mark_start()
        self._enable_logs()
        self._hook_graphs()
        self._clear_records()
        self._hidden = self._raw()

    # Records

    def _enable_logs(self) -> None:
        import torch
        from torch._dynamo import utils
        if hasattr(utils, "set_compilation_metrics_limit"):
            utils.set_compilation_metrics_limit(1 << 12)
        # TORCH_LOGS would make torch ignore what is asked for here; the toolchain's record has it.
        os.environ.pop("TORCH_LOGS", None)
        torch._logging.set_logs(**{name: True for name in ARTIFACTS})
        # Re-recordings of CUDA graphs are told at this level alone; replays log nothing.
        logging.getLogger(CUDAGRAPH_TREES).setLevel(logging.DEBUG)
        handler = _Handler(self)
        for name in LOGGERS:
            logging.getLogger(name).addHandler(handler)

    def note(self, record: logging.LogRecord) -> None:
        if self._paused:
            return
        text = record.getMessage()
        if record.exc_info and record.exc_info[1]:  # where torch 2.5 has the reason of a graph break
            text += "\n" + "".join(traceback.format_exception_only(record.exc_info[1])).rstrip()
        entry = {"text": text, "unit": self.unit, **self.context}
        if compile_id := _current_compile_id():
            entry["compile_id"] = compile_id
        kind = record.name.rsplit(".__", 1)[-1]
        if kind == "recompiles":
            self.events.recompiles.append({**_failed_guard(text), **entry})
        elif kind in ARTIFACTS:
            getattr(self.events, kind).append(entry)
        elif record.name == CUDAGRAPH_TREES:
            self.events.cudagraphs.append(entry)
        elif text.startswith("torch._dynamo hit config."):
            if self.events.recompiles:
                self.events.recompiles[-1]["refused"] = "recompile limit"
            self.events.recompile_limits.append(entry)
        elif record.levelno >= logging.WARNING:
            self.events.warnings.append({"logger": record.name, **entry})

    # Hooks

    def _hook_graphs(self) -> None:
        import torch
        graph = compat.compiled_graph_class()
        if graph is None:
            self._cannot("runs of compiled graphs can't be counted: no CompiledFxGraph")
        else:
            self._wrap(graph, "__call__", self._count_run)
        if after := compat.after_compiling():
            self.kernels_in_graphs = 0
            self._wrap(*after, self._count_kernels)
        else:
            self._cannot("kernels in graphs can't be counted: found no post_compile of graphs")
        self._wrap(torch.cuda.CUDAGraph, "replay", self._count_replay)
        self._wrap(torch.cuda.CUDAGraph, "capture_end", self._count_capture)

    def _cannot(self, what: str) -> None:
        self.events.warnings.append({"text": f"in this torch {what}", "unit": None})

    @staticmethod
    def _wrap(owner: type, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        setattr(owner, name, wrapper(getattr(owner, name)))

    def _count_run(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(graph: Any, inputs: Any) -> Any:
            self.graph_runs += 1
            return call(graph, inputs)
        return counted

    def _count_kernels(self, post_compile: Callable[..., Any]) -> Callable[..., Any]:
        def counted(graph: Any, *args: Any, **kwargs: Any) -> Any:
            source = getattr(graph, "source_code", "") or ""
            self.kernels_in_graphs += len(re.findall(r"= async_compile\.\w+\(", source))
            return post_compile(graph, *args, **kwargs)
        return counted

    def _count_replay(self, replay: Callable[..., Any]) -> Callable[..., Any]:
        def counted(graph: Any) -> None:
            self.graph_replays += 1
            replay(graph)
        return counted

    def _count_capture(self, capture_end: Callable[..., Any]) -> Callable[..., Any]:
        def counted(graph: Any) -> None:
            capture_end(graph)
            self.cudagraph_captures += 1
        return counted

    def counted_backend(self, name: str) -> Callable[..., Any]:
        """One of Dynamo's own backends, with its graphs' runs counted."""
        from torch._dynamo.backends.registry import lookup_backend
        backend = lookup_backend(name)

        def compiler(graph: Any, inputs: Any) -> Callable[..., Any]:
            return self._counted_call(backend(graph, inputs))
        compiler.__name__ = name
        return compiler

    def _counted_call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self.graph_runs += 1
            return call(*args)
        return counted

    # Counts

    def counts(self, rescan: bool = False) -> Counts:
        """Totals now. The kernels' folders are walked only if something was compiled since the last time."""
        raw = self._raw()
        state = (raw.unique_graphs, raw.graph_breaks, raw.kernels_generated, raw.fx_cache_hits, raw.compile_ns)
        if rescan or state != self._scanned[0]:
            self._scanned = (state, self._folders.compiled())
        shown = raw.minus(self._hidden)
        shown["kernels_compiled"] = self._scanned[1]
        return Counts(**shown)

    def _raw(self) -> Counts:
        from torch._dynamo import utils
        inductor = utils.counters["inductor"]
        return Counts(
            unique_graphs=utils.counters["stats"]["unique_graphs"],
            graph_breaks=sum(utils.counters["graph_break"].values()),
            # One that hits the limit is announced, but not done.
            recompiles=len(self.events.recompiles) - len(self.events.recompile_limits),
            recompile_limit_hits=len(self.events.recompile_limits),
            kernels_generated=_generated_kernels(), fx_cache_hits=inductor["fxgraph_cache_hit"],
            compile_ns=round(sum(utils.compilation_time_metrics.get("_compile.compile_inner", ())) * 1e9),
            graph_runs=self.graph_runs, cudagraph_captures=self.cudagraph_captures, graph_replays=self.graph_replays,
            cudagraph_skips=inductor["cudagraph_skips"])

    def hide(self, act: Callable[[], Any]) -> Any:
        """Runs `act` so that nothing of it is counted or recorded."""
        before = self._raw()
        self._paused = True
        try:
            return act()
        finally:
            self._paused = False
            self._clear_records()
            added = self._raw().minus(before)
            hidden = {name: value + getattr(self._hidden, name) for name, value in added.items()}
            self._hidden = Counts(**hidden)

    def begin_unit(self) -> None:
        """Begins another unit, which the records from now on belong to; those of this one are kept."""
        self._archived = list(self._metrics())
        self._clear_records()
        self.unit += 1

    def compile_metrics(self) -> dict[tuple[int, str], Any]:
        """Dynamo's record of each compilation, by unit and compile id."""
        return {(unit, metric.compile_id): metric for unit, metric in self._metrics()}

    def _metrics(self) -> Iterator[tuple[int, Any]]:
        from torch._dynamo import utils
        yield from self._archived
        for metric in utils.get_compilation_metrics():
            if getattr(metric, "compile_id", None) is not None and not getattr(metric, "is_runtime", False):
                yield self.unit, metric

    @staticmethod
    def _clear_records() -> None:
        from torch._dynamo import utils
        if hasattr(utils, "clear_compilation_metrics"):
            utils.clear_compilation_metrics()
        # torch tells less of a graph break the second time, or (2.5) nothing.
        if hasattr(utils, "reset_graph_break_dup_checker"):
            utils.reset_graph_break_dup_checker()


def _generated_kernels() -> int:
    from torch._inductor import metrics
    return metrics.generated_kernel_count


def _current_compile_id() -> str | None:
    from torch._guards import CompileContext
    current = CompileContext.current_compile_id()
    return str(current) if current is not None else None


def _failed_guard(text: str) -> dict[str, Any]:
    """The first failed guard of "Recompiling function ...": that of the graph compiled last."""
    for line in text.splitlines():
        if match := _GUARD.match(line.strip()):
            guard = match.group(1)
            if parts := _EXPECTED.match(guard):
                return {"guard": parts.group(1), "expected": parts.group(2), "found": parts.group(3)}
            return {"guard": guard}
    return {"guard": text}
