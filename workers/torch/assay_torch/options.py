"""An arm's settings out of `load`: what each may be, and which of them don't go together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from assay_torch.errors import Unsupported
from assay_torch.requests import Load

COMPILED_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# Modes that promise CUDA graphs, each with the mode that it is without them.
CUDAGRAPH_MODES = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
MANUAL = "manual-cudagraph"
MODES = ("eager", *COMPILED_MODES, MANUAL)
CACHES = ("dynamic", "static")
DTYPES = ("fp32", "fp16", "bf16")
DYNAMICS = {"": None, "auto": None, "true": True, "false": False}
COMPILE_OPTIONS = ("torch_backend", "fullgraph", "cudagraph_trees", "compile_target", "compile_phases",
                   "mark_step_begin", "recompile_limit", "keep_cache", "explain", "reset")


@dataclass(frozen=True)
class Options:
    """`load.options`; docs/worker-protocol.md, "The torch worker's options", says what each does."""

    device: str = "auto"
    torch_backend: str = "inductor"
    fullgraph: bool = False
    cudagraph_trees: bool | None = None  # None: torch's own default
    compile_target: str = "forward"
    compile_phases: str = "both"
    mark_step_begin: bool = False
    recompile_limit: int | None = None
    attn_implementation: str = "sdpa"
    attention_mask: str = "auto"
    keep_cache: bool = False
    explain: bool = True
    reset: str = "unit"
    step_times: bool = False
    config: dict[str, Any] | None = None
    seed: int = 0
    noop: bool = False
    dtype: str = ""  # fp8: the products' type, beside that of the weights, which is the load's
    fp8_head: bool = False
    fp8_fast_sums: bool = False
    fp8_products: str = "scaled_mm"
    logits: str = "last"
    sdpa_kernel: str = "auto"
    ignored: tuple[str, ...] = field(default=())  # given, but of no meaning to this mode

    def compiles(self, part: str) -> bool:
        """True if `part`, prefill or decode, was asked to be compiled; for modes that compile."""
        return self.compile_phases in ("both", part)


_WORDS = {"device": ("auto", "cpu", "cuda"), "torch_backend": ("inductor", "aot_eager", "eager"),
          "compile_target": ("forward", "module"), "compile_phases": ("both", "prefill", "decode"),
          "attention_mask": ("auto", "always"), "reset": ("unit", "never"), "dtype": ("", "fp8"),
          "fp8_products": ("scaled_mm", "transformer_engine"), "logits": ("last", "all"),
          "sdpa_kernel": ("auto", "cudnn", "flash", "efficient", "math")}
_FLAGS = ("fullgraph", "cudagraph_trees", "mark_step_begin", "keep_cache", "explain", "step_times", "noop",
          "fp8_head", "fp8_fast_sums")
_COUNTS = {"recompile_limit": range(1, 1 << 31), "seed": range(1 << 64)}
_KNOWN = (*_WORDS, *_FLAGS, *_COUNTS, "attn_implementation", "config")


def _expected(name: str, value: Any) -> str | None:
    """The values that `name` takes, if `value` isn't one of them."""
    if name in _WORDS and value not in _WORDS[name]:
        return "one of " + ", ".join(_WORDS[name])
    if name in _FLAGS and not isinstance(value, bool):
        return "true or false"
    if name in _COUNTS and (type(value) is not int or value not in _COUNTS[name]):
        return f"an integer >= {_COUNTS[name].start}"
    if name == "attn_implementation" and (not isinstance(value, str) or not value):
        return "a text"
    if name == "config" and (not isinstance(value, dict) or not isinstance(value.get("model_type"), str)):
        return 'an object with a "model_type"'
    return None


def parse_options(load: Load) -> Options:
    """Unsupported, naming the key, what was expected and what was found."""
    for key, value, words in (("mode", load.mode, MODES), ("cache", load.cache, CACHES),
                              ("dynamic", load.dynamic, tuple(DYNAMICS)), ("dtype", load.dtype, ("", *DTYPES))):
        if value not in words:
            raise Unsupported(f"{key}: expected one of {', '.join(word or '(empty)' for word in words)}, found {value}")
    given = {name: value for name, value in load.options.items() if value is not None}
    for name, value in given.items():
        if name not in _KNOWN:
            raise Unsupported(f"options: expected one of {', '.join(_KNOWN)}, found {name}")
        if expected := _expected(name, value):
            raise Unsupported(f"options.{name}: expected {expected}, found {json.dumps(value)[:80]}")
    ignored: tuple[str, ...] = ()
    if load.mode not in COMPILED_MODES:
        ignored = tuple(name for name in COMPILE_OPTIONS if name in given) + (("dynamic",) if load.dynamic else ())
    options = Options(**given, ignored=ignored)
    _check_combination(load, options)
    return options


def _check_combination(load: Load, options: Options) -> None:
    for name in ("fp8_head", "fp8_fast_sums", "fp8_products"):
        if name in load.options and options.dtype != "fp8":
            raise Unsupported(f"options.{name}: expected dtype fp8 beside it, found none")
    if options.dtype == "fp8" and load.dtype == "fp32":
        raise Unsupported("dtype fp8: expected weights of fp16 or bf16 beside it, found fp32")
    if options.sdpa_kernel != "auto" and options.attn_implementation != "sdpa":
        raise Unsupported(f"options.sdpa_kernel: expected attn_implementation sdpa, found {options.attn_implementation}")
    if load.mode == MANUAL and load.cache != "static":
        raise Unsupported(f"mode {MANUAL}: expected cache static, found {load.cache}: "
                          "a cache that grows has no address to replay on")
    if load.mode in COMPILED_MODES and load.mode != "default" and options.torch_backend != "inductor":
        raise Unsupported(f"mode {load.mode}: expected torch_backend inductor, found {options.torch_backend}: "
                          "the mode is Inductor's")
