"""An arm's callables for each part of a phase: the model itself, torch.compile's of it, or a fallback that says so."""

from __future__ import annotations

from typing import Any, Callable

import torch

from assay_torch import compat
from assay_torch.errors import chain, class_names, whole_message
from assay_torch.models import Model
from assay_torch.options import COMPILED_MODES, DYNAMICS, Options
from assay_torch.requests import Load
from assay_torch.watch import Watch

Call = Callable[..., Any]
PARTS = ("prefill", "decode")
# Raised where the tool that compiles isn't there; any other failure to compile is the arm's error.
MISSING_TOOL = {"InvalidCxxCompiler", "TritonMissing", "GPUTooOldForTriton"}
MISSING_TOOL_TEXT = "Failed to find C compiler"  # Triton's, for its launchers


class Arm:
    """The calls of `prefill` and `decode`, both taking the model's keyword arguments."""

    def __init__(self, model: Model, load: Load, options: Options, watch: Watch | None) -> None:
        self._model, self._load, self._options, self._watch = model, load, options, watch
        self.compiled_mode = load.mode in COMPILED_MODES
        self.fallback_error: str | None = None
        self.calls: dict[str, Call] = {part: model.module for part in PARTS}
        if self.compiled_mode:
            self._compile()

    def wants_compiled(self, part: str) -> bool:
        return self.compiled_mode and self._options.compiles(part)

    def fall_back(self, error: BaseException) -> bool:
        """Runs eager from now on if `error` says that a tool to compile with is missing."""
        if not self.compiled_mode or self.fallback_error or not says_missing_tool(error):
            return False
        self._set_fallback(error)
        return True

    def _set_fallback(self, error: BaseException) -> None:
        self.fallback_error = f"{type(error).__name__}: {whole_message(error)}"
        self.calls = {part: self._model.module for part in PARTS}

    def _compile(self) -> None:
        options = self._options
        if options.recompile_limit is not None:
            config = torch._dynamo.config
            setattr(config, compat.recompile_limit_key(config), options.recompile_limit)
        if options.cudagraph_trees is not None:
            from torch._inductor import config as inductor_config
            inductor_config.triton.cudagraph_trees = options.cudagraph_trees
        if options.torch_backend == "inductor":
            try:
                check_tools(self._model.device)
            except Exception as error:  # pylint: disable=broad-except
                if not says_missing_tool(error):
                    raise
                self._set_fallback(error)
                return
        compiled = torch.compile(self._target(), **self._arguments())
        for part in PARTS:
            if options.compiles(part):
                self.calls[part] = _marked(compiled) if options.mark_step_begin else compiled

    def _target(self) -> Any:
        return self._model.module if self._options.compile_target == "module" else self._model.module.forward

    def _arguments(self) -> dict[str, Any]:
        options = self._options
        arguments: dict[str, Any] = {"fullgraph": options.fullgraph, "dynamic": DYNAMICS[self._load.dynamic]}
        if options.torch_backend == "inductor":
            return {**arguments, "backend": "inductor", "mode": self._load.mode}
        assert self._watch is not None
        return {**arguments, "backend": self._watch.counted_backend(options.torch_backend)}

    def explain(self, part: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """torch._dynamo.explain of one call; resets Dynamo, so it must come before anything is compiled."""
        found = torch._dynamo.explain(self._target())(**arguments)
        return {"part": part, "graphs": found.graph_count, "graph_breaks": found.graph_break_count,
                "operators": found.op_count, "guards": len(found.out_guards or ()),
                "break_reasons": [str(reason.reason) for reason in found.break_reasons]}


def _marked(call: Call) -> Call:
    """Each call is a step of its own to the CUDA graphs' memory pool."""
    mark = torch.compiler.cudagraph_mark_step_begin

    def marked(**arguments: Any) -> Any:
        mark()
        return call(**arguments)
    return marked


def says_missing_tool(error: BaseException) -> bool:
    return bool(class_names(error) & MISSING_TOOL) or any(MISSING_TOOL_TEXT in str(one) for one in chain(error))


def check_tools(device: torch.device) -> None:
    """Raises what Inductor would raise on first use if it has nothing to compile with."""
    if device.type == "cpu":
        from torch._inductor.cpp_builder import get_cpp_compiler
        get_cpp_compiler()
        return
    from torch.utils._triton import has_triton
    if not has_triton():
        from torch._inductor.exc import TritonMissing
        raise TritonMissing(None)
