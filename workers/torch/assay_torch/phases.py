"""The timed region of each phase, as docs/worker-protocol.md has it, and the inputs that are made before it begins."""

from __future__ import annotations

import gc
import hashlib
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from assay_torch.arms import Call
from assay_torch.manual_graph import DecodeGraph
from assay_torch.models import Model
from assay_torch.requests import Prompt, Shape
from assay_torch.watch import Watch

now_ns = time.perf_counter_ns


@dataclass
class Inputs:
    """A prompt on the device, with what its decode steps are given. Without padding the model makes masks itself."""

    ids: torch.Tensor  # [batch, padded_len]
    prefill: dict[str, Any]  # further arguments of its call
    decode: list[dict[str, Any]]  # of each step's
    pad: torch.Tensor  # [batch]

    @staticmethod
    def of(prompt: Prompt, shape: Shape, cache_kind: str, masked: bool, model: Model) -> Inputs:
        device, length = model.device, prompt.padded_len
        ids = torch.tensor(prompt.ids, dtype=torch.int64, device=device)
        pad = torch.tensor(prompt.pad, dtype=torch.int64, device=device)
        prefill, decode = dict(model.fixed_arguments), [dict(model.fixed_arguments) for _ in range(shape.new_tokens)]
        if cache_kind == "static" and model.takes_cache_position:
            prefill["cache_position"] = torch.arange(length, device=device)
            for step, extra in enumerate(decode):
                extra["cache_position"] = torch.tensor([length + step], device=device)
        if not masked:
            return Inputs(ids, prefill, decode, pad)
        width = shape.capacity if cache_kind == "static" else length + shape.new_tokens
        mask = torch.arange(width, device=device)[None, :] >= pad[:, None]  # [batch, width]
        positions = (torch.arange(length + shape.new_tokens, device=device)[None, :] - pad[:, None]).clamp(min=0)
        prefill["attention_mask"] = _copy(mask[:, :length])
        prefill["position_ids"] = _copy(positions[:, :length])
        for at, extra in enumerate(decode, length):
            extra["attention_mask"] = mask if cache_kind == "static" else _copy(mask[:, :at + 1])
            extra["position_ids"] = _copy(positions[:, at:at + 1])
        return Inputs(ids, prefill, decode, pad)


def _copy(part: torch.Tensor) -> torch.Tensor:
    """Contiguous, and no view, which contiguous() would return of one row: a view's address differs in alignment from
    step to step, and under torch 2.6 to free one for which Inductor has compiled ended the process (SIGSEGV in
    PyObject_ClearWeakRefs, its base being nobody else's)."""
    return part.clone(memory_format=torch.contiguous_format)


@dataclass
class Timing:
    """One repetition: clock and device times of the region, and what it produced."""

    latency_ns: int
    started_at_ns: int
    tokens: list[list[int]]  # [batch, produced]
    first: list[int]  # [batch]: the prefill's
    device_ns: int | None = None
    ttft_ns: int | None = None
    step_ns: list[int] = field(default_factory=list)
    prefill_runs: int = 0  # of compiled graphs, in the region
    decode_runs: int = 0
    finite: bool = True  # the logits that the last tokens were chosen from have a finite maximum


class Region:
    """Runs one repetition. Everything that isn't the phase itself happens in `run` before and after the two clock
    reads; the cyclic garbage collector is off between them."""

    def __init__(self, calls: dict[str, Call], device: torch.device, watch: Watch | None, step_times: bool) -> None:
        self._calls, self._watch, self._step_times = calls, watch, step_times
        self._cuda = device.type == "cuda"

    def run(self, shape: Shape, inputs: Inputs, cache: Any, graph: DecodeGraph | None = None,
            at_start: Callable[[], Any] = lambda: None, at_end: Callable[[], Any] = lambda: None) -> Timing:
        """`at_start` and `at_end` are called just outside the two clock reads."""
        first = self._prefill(inputs, cache)[0] if not shape.prefills else None
        if first is not None and graph is not None:
            self._hand_over(graph, first, inputs)
        marks = _Marks(self._cuda, shape.new_tokens if self._step_times else 0)
        collecting = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            return self._timed(shape, inputs, cache, graph, first, marks, at_start, at_end)
        finally:
            if collecting:
                gc.enable()

    def _timed(self, shape: Shape, inputs: Inputs, cache: Any, graph: DecodeGraph | None,
               first: torch.Tensor | None, marks: _Marks, at_start: Callable[[], Any],
               at_end: Callable[[], Any]) -> Timing:
        watch = self._watch
        produced: list[torch.Tensor] = []
        last: torch.Tensor | None = None
        self._synchronize()
        at_start()
        runs_before = watch.graph_runs if watch else 0
        started_at_ns = time.time_ns()
        marks.start()
        begin_ns = now_ns()
        if shape.prefills:
            first, last = self._prefill(inputs, cache)
            if shape.new_tokens:
                last = None  # the decode steps may have its memory
                marks.first_token()
        runs_between = watch.graph_runs if watch else 0
        if shape.new_tokens:
            produced, last = self._decode(shape, inputs, cache, graph, first, marks)
        marks.end()
        self._synchronize()
        end_ns = now_ns()
        runs_after = watch.graph_runs if watch else 0
        at_end()
        assert first is not None
        tokens = _rows(shape, graph, first, produced)
        return Timing(end_ns - begin_ns, started_at_ns, tokens, first[:, 0].tolist(), marks.device_ns(),
                      marks.ttft_ns(begin_ns) if shape.phase == "e2e_kv" else None, marks.step_ns(),
                      runs_between - runs_before, runs_after - runs_between, all_finite(last))

    def _prefill(self, inputs: Inputs, cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens [batch, 1], the lowest id of equals; and the logits [batch, vocabulary] that they come from."""
        out = self._calls["prefill"](input_ids=inputs.ids, past_key_values=cache, **inputs.prefill)
        logits = out.logits[:, -1]
        return logits.argmax(-1, keepdim=True), logits

    def _decode(self, shape: Shape, inputs: Inputs, cache: Any, graph: DecodeGraph | None, token: torch.Tensor | None,
                marks: _Marks) -> tuple[list[torch.Tensor], torch.Tensor | None]:
        """The tokens [batch, 1] of each step, and the last one's logits."""
        assert token is not None
        if graph is not None:
            if shape.prefills:
                self._hand_over(graph, token, inputs)
            for _ in range(shape.new_tokens):
                graph.replay()
                marks.step()
            return [], graph.logits
        call, produced = self._calls["decode"], []
        for extra in inputs.decode:
            out = call(input_ids=token, past_key_values=cache, **extra)
            token = out.logits[:, -1].argmax(-1, keepdim=True)
            produced.append(token)
            marks.step()
        return produced, out.logits[:, -1]

    @staticmethod
    def _hand_over(graph: DecodeGraph, token: torch.Tensor, inputs: Inputs) -> None:
        step = inputs.decode[0]
        graph.begin(token, step.get("position_ids", token), step.get("attention_mask"), step.get("cache_position"))

    def _synchronize(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


class _Marks:
    """Device events of a region, made before it. Without a device the clock stands in for the steps' events."""

    def __init__(self, cuda: bool, steps: int) -> None:
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(3 + steps)] if cuda else []
        for event in self._events:
            event.record()  # torch makes an event when it is first recorded
        self._cuda, self._steps = cuda, steps
        self._reads: list[int] = []
        self._first_ns = 0
        self._has_first = False
        self._done = 0
        self.step = self._mark_step if steps else _nothing

    def start(self) -> None:
        if self._cuda:
            self._events[0].record()
        elif self._steps:
            self._reads.append(now_ns())

    def first_token(self) -> None:
        """Marks the end of the prefill: by an event, since waiting for the device would change what is measured."""
        self._has_first = True
        if self._cuda:
            self._events[1].record()
        else:
            self._first_ns = now_ns()

    def end(self) -> None:
        if self._cuda:
            self._events[2].record()

    def _mark_step(self) -> None:
        if self._cuda:
            self._events[3 + self._done].record()
            self._done += 1
        else:
            self._reads.append(now_ns())

    def device_ns(self) -> int | None:
        return self._between(0, 2) if self._cuda else None

    def ttft_ns(self, begin_ns: int) -> int:
        return self._between(0, 1) if self._cuda else self._first_ns - begin_ns

    def step_ns(self) -> list[int]:
        """Duration of each decode step; that of an e2e_kv's first step is from the end of the prefill."""
        if not self._steps:
            return []
        if not self._cuda:
            starts = [max(self._reads[0], self._first_ns), *self._reads[1:-1]]
            return [end - begin for begin, end in zip(starts, self._reads[1:])]
        order = [1 if self._has_first else 0, *range(3, 3 + self._done)]
        return [self._between(begin, end) for begin, end in zip(order, order[1:])]

    def _between(self, begin: int, end: int) -> int:
        return round(self._events[begin].elapsed_time(self._events[end]) * 1e6)


def _nothing() -> None:
    pass


def _rows(shape: Shape, graph: DecodeGraph | None, first: torch.Tensor,
          produced: list[torch.Tensor]) -> list[list[int]]:
    if shape.phase == "prefill":
        return first.tolist()
    if graph is not None:
        return graph.tokens(shape.new_tokens).tolist()
    return torch.cat(produced, dim=1).tolist()


def all_finite(logits: torch.Tensor | None) -> bool:
    """True if the largest logit of each row is finite: a NaN counts as the largest. Logits of the steps before the
    last aren't kept, but a key or value that isn't finite stays in the cache."""
    return logits is None or bool(torch.isfinite(logits.max(-1).values).all())


def output_hash(tokens: list[list[int]]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the ids, row after row, as little-endian int32."""
    flat = [token for row in tokens for token in row]
    return hashlib.sha256(b"".join(token.to_bytes(4, "little", signed=True) for token in flat)).hexdigest()[:16]
