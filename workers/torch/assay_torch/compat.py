"""Where torch and transformers keep what the worker needs, in the versions that have moved it.

An interpreter that somebody names is measured as it is. What a version doesn't have at all is None here, and the evidence
says what could not be counted.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable


def first_of(*places: str) -> Any | None:
    """The first "module:name" that exists."""
    for place in places:
        module, name = place.split(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return None


def inductor_cache_dir() -> Callable[[], str] | None:
    return first_of("torch._inductor.runtime.cache_dir_utils:cache_dir",
                    "torch._inductor.runtime.runtime_utils:cache_dir", "torch._inductor.codecache:cache_dir")


def compiled_graph_class() -> type | None:
    return first_of("torch._inductor.output_code:CompiledFxGraph", "torch._inductor.codecache:CompiledFxGraph")


def load_dtype_key() -> str:
    """What from_pretrained and from_config call the type of the weights."""
    from transformers import __version__
    major, minor = (int(part) for part in __version__.split(".")[:2])
    return "dtype" if (major, minor) >= (4, 56) else "torch_dtype"


def last_logits_only(forward: Callable[..., Any]) -> dict[str, int]:
    """The argument by which a forward pass computes the logits of the last position alone, if it has one."""
    names = inspect.signature(forward).parameters
    return {name: 1 for name in ("logits_to_keep", "num_logits_to_keep") if name in names}
