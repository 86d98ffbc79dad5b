"""The loaded arm: its model, caches, compiled calls and records, and the requests that need them."""

from __future__ import annotations

import gc
import math
import os
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import torch

from assay_torch import bandwidth, compat, models, profiling
from assay_torch.arms import PARTS, Arm
from assay_torch.cachedirs import CacheFolders
from assay_torch.caches import Caches
from assay_torch.errors import NonFinite, ProtocolError, Unsupported, WrongCacheLength
from assay_torch.faults import TimedFaults
from assay_torch.manual_graph import DecodeGraph
from assay_torch.options import CUDAGRAPH_MODES, MANUAL, Options
from assay_torch.phases import Inputs, Region, Timing, all_finite, output_hash
from assay_torch.requests import Load, Prepare, Prompt, Shape
from assay_torch.units import Runs, Unit
from assay_torch.watch import Counts, Watch

# A CUDA graph tree runs a graph once to warm up, records it the second time, and replays it from the third.
CUDAGRAPH_PASSES = 3
RIVALS = 8  # tokens next to the chosen one that parity tells of


class Engine:
    def __init__(self, load: Load, options: Options, folders: CacheFolders) -> None:
        self.load, self.options, self.folders = load, options, folders
        torch.set_num_threads(load.threads or len(os.sched_getaffinity(0)))
        self.device = models.pick_device(options.device)
        if load.mode == MANUAL and self.device.type != "cuda":
            raise Unsupported(f"mode {MANUAL}: expected device cuda, found {self.device.type}: "
                              "CUDA graphs are NVIDIA's")
        self.read_bandwidth = None if options.noop else bandwidth.measure(self.device)
        models.choose_sdpa_kernel(options.sdpa_kernel, self.device)
        self.model = models.open_model(load, options, self.device)
        self.watch = Watch(folders) if load.mode != "eager" else None
        self.arm = Arm(self.model, load, options, self.watch)
        self.caches = Caches(self.model, load.cache)
        self.unit: Unit | None = None  # prepared last
        self._units: dict[str, Unit] = {}  # the last of each phase
        self.all_runs: list[Runs] = []
        self.explained: list[dict[str, Any]] = []
        self.explain_seconds = 0.0
        self._graphs_per_call = {part: 1 for part in PARTS}
        self._masked = options.attention_mask == "always"
        self._seen: set[Shape] = set()
        self.faults: defaultdict[str, TimedFaults] = defaultdict(TimedFaults)  # by phase
        self._used = False  # the model has run since the unit began
        self.resets = 0
        self._manual: dict[tuple[int, int, bool], DecodeGraph] = {}

    # Requests

    def loaded(self) -> dict[str, Any]:
        load, model = self.load, self.model
        return {"vocab_size": model.vocab_size, "special_ids": model.special_ids(),
                "max_positions": model.max_positions, "weight_bytes": model.weight_bytes(), "dtype": model.dtype,
                "quantization": "fp8" if model.fp8 else "", "threads": torch.get_num_threads(),
                "model_hash": models.model_hash(load, model) if load.want_model_hash and not model.noop else ""}

    @torch.no_grad()
    def prepare(self, request: Prepare) -> dict[str, Any]:
        unit = self._begin_unit(request.shape.phase)
        begin = time.monotonic()
        self._masked = self._masked or bool(request.padding)
        explain_before = self.explain_seconds
        before = self._counts()
        length = request.padded_lens[0] if request.padded_lens else 1
        self._make_ready(request.shape, _stand_in(request.shape, length, self.model))
        explained = self.explain_seconds - explain_before
        seconds = time.monotonic() - begin - explained
        gc.collect()
        gc.freeze()  # what is left stays: the collections between repetitions needn't look at it
        added = self._counts(rescan=True).minus(before) if self.watch else {}
        unit.prepared.append({"phase": request.shape.phase, "padded_len": length, "seconds": seconds})
        return {"seconds": seconds, "evidence": {"counters": added, "explain_seconds": explained,
                                                 "compile_seconds": added.get("compile_ns", 0) / 1e9,
                                                 "fallback_error": self.arm.fallback_error}}

    @torch.no_grad()
    def measure(self, shape: Shape, repetition: int, prompt: Prompt) -> dict[str, Any]:
        marks: dict[str, Counts] = {}
        faults = self.faults[shape.phase]

        def at_start() -> None:
            marks["before"] = self._counts()
            faults.begin()

        def at_end() -> None:
            faults.end()
            marks["after"] = self._counts()

        inputs, cache, graph = self._set_up(shape, prompt)
        with self._during("measure", shape, repetition):
            timing = self._region(self.options.step_times).run(shape, inputs, cache, graph, at_start, at_end)
        self._check_filled(shape, prompt, cache)
        added = marks["after"].minus(marks["before"])
        fallbacks = self._count_region(shape, timing, added)
        cold = shape not in self._seen
        self._seen.add(shape)
        faults.count(cold or repetition < 0)
        if timing.step_ns and self.unit:
            self.unit.step_times.append({"phase": shape.phase, "repetition": repetition, "step_ns": timing.step_ns})
        produced = sum(len(row) for row in timing.tokens)
        sample = {"repetition": repetition, "latency_ns": timing.latency_ns, "device_ns": timing.device_ns,
                  "ttft_ns": timing.ttft_ns, "tokens": produced, "output_hash": output_hash(timing.tokens),
                  "non_finite": None if timing.finite else True, "cold": cold, "started_at_ns": timing.started_at_ns,
                  "read_bytes": models.read_bytes(self.model, shape.batch, _kv_lens(shape, prompt)),
                  "counters": {**added, "fallbacks": fallbacks, "fresh_cache": int(self.folders.fresh)}
                  if self.watch else {}}
        return {name: value for name, value in sample.items() if value is not None}

    @torch.no_grad()
    def parity(self, shape: Shape, prompt: Prompt) -> dict[str, Any]:
        """The prefill's token and those of all decode steps but the last; figures of the prefill's logits."""
        steps = Shape("prefill" if shape.new_tokens == 1 else "kv_decode", shape.batch, shape.new_tokens - 1,
                      shape.capacity)
        with self._during("parity", shape, None):
            timing = self._attempt(steps, prompt)
            inputs, cache, _ = self._set_up(steps, prompt)
            out = self.arm.calls["prefill"](input_ids=inputs.ids, past_key_values=cache, **inputs.prefill)
        if not timing.finite or not all_finite(out.logits[:, -1]):
            raise NonFinite("logits: expected finite values, found NaN or infinity")
        rows = timing.tokens if steps.new_tokens == 0 else [[first, *row]
                                                            for first, row in zip(timing.first, timing.tokens)]
        stats = [_logit_stats(row) for row in out.logits[:, -1]]
        if not self.model.noop:
            eps = torch.finfo(out.logits.dtype).eps
            stats = [one | {"eps": eps, "steps": steps} for one, steps in zip(stats, self._choices(prompt, rows))]
        return {"tokens": rows, "logit_stats": stats}

    def _choices(self, prompt: Prompt, rows: list[list[int]]) -> list[dict[str, Any]]:
        """The choice of each token: its rival and how far that was behind, by one eager pass over the sequence."""
        whole = Prompt([[*ids, *row[:-1]] for ids, row in zip(prompt.ids, rows)], prompt.pad)
        shape = Shape("prefill", len(rows), 0, whole.padded_len)
        inputs = Inputs.of(whole, shape, "dynamic", any(prompt.pad), self.model)
        arguments = {**inputs.prefill, "use_cache": False}
        arguments |= {name: len(rows[0]) for name in ("logits_to_keep", "num_logits_to_keep") if name in arguments}
        out = self.model.module(input_ids=inputs.ids, **arguments)
        logits = out.logits[:, -len(rows[0]):].float()  # [batch, tokens, vocabulary]
        chosen = torch.tensor(rows, device=logits.device)[..., None]
        logit = logits.gather(-1, chosen)
        if not torch.isfinite(logit).all():
            raise NonFinite("logits: expected finite values for the chosen tokens, found NaN or infinity")
        others = logits.scatter(-1, chosen, -math.inf).topk(min(RIVALS, logits.shape[-1] - 1))
        margins = logit - others.values
        if not torch.isfinite(margins).all():
            return [{} for _ in rows]
        return [{"others": others.indices[row].tolist(), "margins": margins[row].tolist(),
                 "logit": logit[row, :, 0].tolist()} for row in range(len(rows))]

    @torch.no_grad()
    def profile(self, shape: Shape, prompt: Prompt, path: Path) -> dict[str, Any]:
        with self._during("profile", shape, None):
            self._attempt(shape, prompt)  # what is profiled is a warm repetition
            inputs, cache, graph = self._set_up(shape, prompt)
            region = self._region(False)
            return profiling.profile(lambda start, end: region.run(shape, inputs, cache, graph, start, end),
                                     self.device, path)

    def tokenize(self, text: str) -> list[int]:
        from tokenizers import Tokenizer
        path = Path(self.load.model) / "tokenizer.json"
        if not path.is_file():
            raise Unsupported(f"tokenize: expected {path}, found no such file")
        return Tokenizer.from_file(str(path)).encode(text, add_special_tokens=True).ids

    # Parts

    def _counts(self, rescan: bool = False) -> Counts:
        return self.watch.counts(rescan) if self.watch else Counts()

    def _region(self, step_times: bool) -> Region:
        return Region(self.arm.calls, self.device, self.watch, step_times)

    def unit_of(self, phase: str) -> Unit:
        """The last of this phase; one in which nothing has happened, if there was none."""
        return self._units.get(phase) or Unit(-1, phase, self.watch, self.folders)

    def _begin_unit(self, phase: str) -> Unit:
        """Drops what other units compiled: else what this one compiles, and whether it hits the recompile limit, were
        a matter of their order."""
        if self.unit:
            self.unit.end()
        if self._used:
            if self.options.reset == "unit":
                self._reset()
            else:
                self.folders.go_on()
            if self.watch:
                self.watch.begin_unit()
        self._used = False
        self._graphs_per_call = {part: 1 for part in PARTS}
        self.unit = self._units[phase] = Unit(self.watch.unit if self.watch else 0, phase, self.watch, self.folders)
        self.all_runs.append(self.unit.runs)
        return self.unit

    def _reset(self) -> None:
        self._manual.clear()
        if self.watch and self.arm.compiled_mode:
            torch._dynamo.reset()
        self.caches.forget()
        gc.unfreeze()  # what was compiled is full of cycles, and may hold device memory
        gc.collect()
        if self.arm.compiled_mode:
            self.folders.renew(compat.forget_kernels())
        self.resets += 1

    def _set_up(self, shape: Shape, prompt: Prompt) -> tuple[Inputs, Any, DecodeGraph | None]:
        self._check_fits(shape, prompt)
        self._masked = self._masked or any(prompt.pad)
        inputs = Inputs.of(prompt, shape, self.load.cache, self._masked, self.model)
        graph = None
        if self.load.mode == MANUAL and shape.new_tokens:
            graph = self._manual_graph(shape)
        return inputs, self.caches.empty(shape.batch, shape.capacity), graph

    def _check_fits(self, shape: Shape, prompt: Prompt) -> None:
        """On a GPU what is out of range is an assertion that ends every later call of the process."""
        if (largest := max(map(max, prompt.ids))) >= self.model.vocab_size:
            raise ProtocolError(f"prompt: expected ids below the vocabulary's {self.model.vocab_size}, found {largest}")
        positions = self.model.max_positions
        if positions is not None and shape.capacity > positions:
            raise Unsupported(f"capacity: expected at most the model's {positions} positions, found {shape.capacity}")

    def _check_filled(self, shape: Shape, prompt: Prompt, cache: Any) -> None:
        """A cache that counts its content itself has counted each position once, unless what was compiled ran twice."""
        if self.load.cache != "static" or self.model.noop or self.model.takes_cache_position:
            return
        expected, found = prompt.padded_len + shape.new_tokens, int(cache.get_seq_length())
        if found != expected:
            raise WrongCacheLength(f"static cache: expected {expected} positions after the repetition, found {found}")

    def _manual_graph(self, shape: Shape) -> DecodeGraph:
        cache = self.caches.empty(shape.batch, shape.capacity)
        key = (shape.batch, shape.capacity, self._masked)
        if key not in self._manual or self._manual[key].cache is not cache:
            self._manual = {key: DecodeGraph(self.model, cache, shape.batch, shape.capacity, self._masked)}
        return self._manual[key]

    def _make_ready(self, shape: Shape, prompt: Prompt) -> None:
        """Runs the whole region, so that nothing of it is left to the first sample; its decode steps' shapes too."""
        with self._during("prepare", shape, None):
            if self.arm.compiled_mode and self.options.explain and not self.explained:
                self._explain(shape, prompt)
            passes = CUDAGRAPH_PASSES if self.load.mode in CUDAGRAPH_MODES and self.device.type == "cuda" else 1
            for _ in range(passes):
                timing = self._attempt(shape, prompt)
            if not self.watch:
                return
            if shape.prefills and timing.prefill_runs:
                self._graphs_per_call["prefill"] = timing.prefill_runs
            if shape.new_tokens and timing.decode_runs:
                self._graphs_per_call["decode"] = max(1, -(-timing.decode_runs // shape.new_tokens))

    def _attempt(self, shape: Shape, prompt: Prompt) -> Timing:
        """A repetition outside timing; where it shows that nothing can be compiled here, once more without."""
        inputs, cache, graph = self._set_up(shape, prompt)
        try:
            return self._region(False).run(shape, inputs, cache, graph)
        except Exception as error:  # pylint: disable=broad-except
            if not self.arm.fall_back(error):
                raise
        inputs, cache, graph = self._set_up(shape, prompt)
        return self._region(False).run(shape, inputs, cache, graph)

    def _explain(self, shape: Shape, prompt: Prompt) -> None:
        """Explains a prefill and the decode step behind it, for any phase: once a process, before compiling."""
        assert self.watch is not None
        begin = time.monotonic()
        # A prefill's own capacity has no room for the step; nor has one that is all the model's positions.
        capacity = shape.capacity + (0 if shape.new_tokens else 1)
        room = self.model.max_positions is None or capacity <= self.model.max_positions
        both = Shape("e2e_kv", shape.batch, 1, capacity) if room else shape
        inputs, cache, _ = self._set_up(both, prompt)
        token = torch.zeros(shape.batch, 1, dtype=torch.int64, device=self.device)
        parts = [("prefill", {"input_ids": inputs.ids, **inputs.prefill})]
        if inputs.decode:
            parts.append(("decode", {"input_ids": token, **inputs.decode[0]}))
        for part, arguments in parts:
            arguments |= {"past_key_values": cache}
            try:
                found = self.watch.hide(lambda part=part, given=arguments: self.arm.explain(part, given))
            except Exception as error:  # pylint: disable=broad-except
                found = {"part": part, "error": f"{type(error).__name__}: {error}"}
            self.explained.append(found)
        self.caches.forget()  # explain() has reset Dynamo: nobody knows these addresses
        self.explain_seconds += time.monotonic() - begin

    def _count_region(self, shape: Shape, timing: Timing, added: dict[str, int]) -> int:
        """Calls of the region that were to be compiled and went eager."""
        runs = self.unit.runs if self.unit else Runs()
        fallbacks = 0
        for part, calls, done in (("prefill", int(shape.prefills), timing.prefill_runs),
                                  ("decode", shape.new_tokens, timing.decode_runs)):
            if self.arm.wants_compiled(part):
                # A call whose graphs did not all run counts as eager.
                fallbacks += calls - min(calls, done // self._graphs_per_call[part])
                runs.calls += calls
        runs.regions += 1
        runs.fallbacks += fallbacks
        runs.graph_runs += added["graph_runs"]
        runs.graph_replays += added["graph_replays"]
        return fallbacks

    @contextmanager
    def _during(self, what: str, shape: Shape, repetition: int | None) -> Iterator[None]:
        self._used = True
        if self.watch:
            self.folders.begin_request()
            self.watch.context = {"phase": shape.phase, "during": what}
            if repetition is not None:
                self.watch.context["repetition"] = repetition
        try:
            yield
        finally:
            if self.watch:
                self.watch.counts()  # whatever was compiled is this request's, and looked for now
                self.watch.context = {}


def _logit_stats(logits: torch.Tensor) -> dict[str, Any]:
    """Statistics of one row's logits, in 32 bits at least. A figure that isn't finite is absent."""
    row = logits.detach().double().cpu()
    top = row.topk(min(2, row.numel()))
    found = {"mean": row.mean().item(), "std": row.std().item(), "min": row.min().item(), "max": row.max().item(),
             "top1": top.values[0].item(), "top2": top.values[-1].item(), "argmax": int(row.argmax())}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _stand_in(shape: Shape, length: int, model: models.Model) -> Prompt:
    """Ids that any model of this vocabulary takes; which ones doesn't matter to a shape."""
    row = [1 + (7 * i) % max(1, model.vocab_size - 1) for i in range(length)]
    return Prompt([row] * shape.batch, [0] * shape.batch)


def _kv_lens(shape: Shape, prompt: Prompt) -> list[int]:
    """Cached positions that each forward pass of the region reads; 0 stands for the prefill."""
    lens = [0] if shape.prefills else []
    return lens + [prompt.padded_len + step + 1 for step in range(shape.new_tokens)]
