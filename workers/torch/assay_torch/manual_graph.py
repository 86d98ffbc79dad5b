"""Mode manual-cudagraph: one eager decode step over a StaticCache, captured by hand and replayed for every token.

Token, position and step are device memory that the step itself moves on, so that a replay needs nothing from the host.
"""

from __future__ import annotations

from typing import Any

import torch

from assay_torch.models import Model

WARM_UPS = 3


class DecodeGraph:
    """The captured step for one cache, batch and masking. `begin` sets it to the state after a prefill."""

    def __init__(self, model: Model, cache: Any, batch: int, capacity: int, masked: bool) -> None:
        self._model, self.cache, self._masked = model, cache, masked
        self._token = torch.zeros(batch, 1, dtype=torch.int64, device=model.device)
        self._position = torch.zeros(batch, 1, dtype=torch.int64, device=model.device)
        self._end = torch.zeros(1, dtype=torch.int64, device=model.device)  # of the cache's content
        self._step = torch.zeros(1, dtype=torch.int64, device=model.device)
        self._history = torch.zeros(batch, capacity, dtype=torch.int64, device=model.device)
        self._mask = torch.ones(batch, capacity, dtype=torch.bool, device=model.device)
        self.logits: torch.Tensor | None = None  # [batch, vocabulary] of the last step
        self._graph = torch.cuda.CUDAGraph()
        self._capture()

    def begin(self, token: torch.Tensor, position: torch.Tensor, mask: torch.Tensor | None,
              end: torch.Tensor | None) -> None:
        """`token` and `position` [batch, 1] of the first step; `mask` [batch, capacity], False at padding; `end` [1]:
        where its keys go in the cache, of models that are told so."""
        self._token.copy_(token)
        self._position.copy_(position)
        self._step.zero_()
        if mask is not None:
            self._mask.copy_(mask)
        if end is not None:
            self._end.copy_(end)

    def replay(self) -> None:
        self._graph.replay()

    def tokens(self, count: int) -> torch.Tensor:
        """[batch, count]: what the replays since `begin` chose."""
        return self._history[:, :count]

    def _one_step(self) -> None:
        extra = {"attention_mask": self._mask, "position_ids": self._position} if self._masked else {}
        if self._model.takes_cache_position:
            extra["cache_position"] = self._end
        out = self._model.module(input_ids=self._token, past_key_values=self.cache,
                                 **self._model.fixed_arguments, **extra)
        self.logits = out.logits[:, -1]
        chosen = self.logits.argmax(-1, keepdim=True)
        self._history.index_copy_(1, self._step, chosen)
        self._token.copy_(chosen)
        self._position.add_(1)
        self._end.add_(1)
        self._step.add_(1)

    def _capture(self) -> None:
        """Leaves the cache dirty: reset it before use."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self._restart()
                self._one_step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._restart()
        with torch.cuda.graph(self._graph):
            self._one_step()
        torch.cuda.synchronize()

    def _restart(self) -> None:
        """Warm-ups may be more than the positions that a small cache has."""
        self.cache.reset()
        self._end.zero_()
        self._step.zero_()
