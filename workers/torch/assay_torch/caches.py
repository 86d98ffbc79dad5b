"""KV caches: a DynamicCache for each repetition, or StaticCaches allocated once for a batch and capacity."""

from __future__ import annotations

import torch
from transformers import DynamicCache, StaticCache

from assay_torch import compat
from assay_torch.models import DTYPES, Model


class Caches:
    """The arm's caches. A static one keeps its tensors, and so their addresses, between repetitions."""

    def __init__(self, model: Model, kind: str) -> None:
        self._model, self.kind = model, kind
        self._static: dict[tuple[int, int], StaticCache] = {}

    def empty(self, batch: int, capacity: int) -> DynamicCache | StaticCache | None:
        """A cache that holds nothing yet."""
        if self._model.noop:
            return None
        if self.kind == "dynamic":
            return self._growing()
        key = (batch, capacity)
        if key not in self._static:
            self._static[key] = self._allocate(batch, capacity)
        else:
            self._static[key].reset()
        return self._static[key]

    def _growing(self) -> DynamicCache:
        try:
            return DynamicCache(config=self._model.config)
        except TypeError:  # before transformers 4.56
            return DynamicCache()

    def forget(self) -> None:
        """Frees the static caches, when nothing that was compiled knows their addresses any more."""
        self._static.clear()

    def _allocate(self, batch: int, capacity: int) -> StaticCache:
        model = self._model
        cache = compat.static_cache(model.config, batch, capacity, model.kv_heads(), model.head_dim(),
                                    DTYPES[model.dtype], model.device)
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        return cache
