"""Finds the parts of torch and transformers that the worker needs in the versions that have moved them.

An interpreter that somebody names is measured as it is. A part that a version doesn't have at all is None here, and
the evidence says what could not be counted.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable

from assay_torch.errors import Unsupported


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


def forget_kernels() -> Callable[[], None] | None:
    """The function that empties Inductor's memory of its cache folder, as its own fresh_cache() does."""
    return first_of("torch._inductor.utils:clear_caches", "torch._inductor.utils:clear_inductor_caches")


def compiled_graph_class() -> type | None:
    return first_of("torch._inductor.output_code:CompiledFxGraph", "torch._inductor.codecache:CompiledFxGraph")


def after_compiling() -> tuple[type, str] | None:
    """Class and name of the method that gets each CompiledFxGraph, new or out of a cache, before it first runs."""
    for owner in (compiled_graph_class(), first_of("torch._inductor.codecache:FxGraphCache")):  # the latter: torch 2.5
        if hasattr(owner, "post_compile"):
            return owner, "post_compile"
    return None


def recompile_limit_key(config: Any) -> str:
    """The name that torch._dynamo.config, given, has for the number of graphs after which a frame stays eager."""
    return "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"  # before torch 2.7


def transformers_version() -> str:
    from transformers import __version__
    return __version__


def transformers_at_least(*version: int) -> bool:
    return tuple(int(part) for part in transformers_version().split(".")[:2]) >= version


def load_dtype_key() -> str:
    """The name that from_pretrained and from_config have for the type of the weights."""
    return "dtype" if transformers_at_least(4, 56) else "torch_dtype"


def read_rope_parameters(config: Any) -> None:
    """Gives a config that was written by transformers 5 the names of older versions, which keep `rope_parameters` and
    compute with their own defaults."""
    given = getattr(config, "rope_parameters", None)
    if transformers_at_least(5, 0) or not isinstance(given, dict):
        return
    if any(isinstance(value, dict) for value in given.values()):
        raise Unsupported("rope_parameters: expected one set for all layers, found one for each kind of layer, which "
                          f"transformers {transformers_version()} can't represent")
    scaling = dict(given)
    for name in ("rope_theta", "partial_rotary_factor"):
        if name in scaling:
            setattr(config, name, scaling.pop(name))
    config.rope_scaling = scaling if scaling.get("rope_type", "default") != "default" else None


def last_logits_only(forward: Callable[..., Any]) -> dict[str, int]:
    """The argument by which a forward pass computes the logits of the last position alone, if it has one."""
    names = inspect.signature(forward).parameters
    return {name: 1 for name in ("logits_to_keep", "num_logits_to_keep") if name in names}


def takes_caches(module: Any, kind: str) -> bool:
    """True if the model's forward pass takes a Cache of this kind, dynamic or static, as transformers says of it.

    In versions that don't say (4.54 and later) every model takes both.
    """
    flags = ("_supports_cache_class",) + (("_supports_static_cache",) if kind == "static" else ())
    return all(getattr(module, flag, True) for flag in flags)


def takes_cache_position(forward: Callable[..., Any]) -> bool:
    """True if the positions of new keys in a StaticCache are an argument; if not, the cache counts them itself.

    A model that takes them and isn't given them looks for the end of the cache's content: on a GPU a wait.
    """
    return "cache_position" in inspect.signature(forward).parameters


def static_cache(config: Any, batch: int, capacity: int, heads: int, head_dim: int, dtype: Any, device: Any) -> Any:
    """A StaticCache with its tensors, marked as of static addresses.

    Allocated here, not by the first forward pass: a compiled one could not mark them.
    """
    from transformers.cache_utils import StaticCache
    if hasattr(StaticCache, "early_initialization"):
        cache = StaticCache(config=config, max_cache_len=capacity)
        cache.early_initialization(batch, heads, head_dim, dtype, device)
        return cache
    # Before transformers 4.56 the constructor allocates.
    return StaticCache(config=config, max_batch_size=batch, max_cache_len=capacity, device=device, dtype=dtype)


def static_tensors(cache: Any) -> list[Any]:
    """The keys and values of a StaticCache, a pair for each layer."""
    if hasattr(cache, "layers"):
        return [one for layer in cache.layers for one in (layer.keys, layer.values)]
    return [one for pair in zip(cache.key_cache, cache.value_cache) for one in pair]  # before transformers 4.54
