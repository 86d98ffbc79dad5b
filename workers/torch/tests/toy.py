"""A language model of one attention layer: the compiler traces it in a fraction of a second, a Llama in two.

Its caches, shapes and masks are those of a model of transformers, so that graphs are kept, compiled anew and given up as
they are there. Tests of what is counted use it; tests of what a model computes don't.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import LlamaConfig
from transformers.modeling_outputs import CausalLMOutputWithPast

from assay_torch.models import Model

NAME = "toy"
WIDTH, HEADS, VOCABULARY, POSITIONS = 16, 2, 256, 256


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.project = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.norm = nn.Identity()  # a module of its own, which a test breaks the graph at

    def forward(self, input_ids: torch.Tensor, cache: Any, mask: torch.Tensor | None) -> torch.Tensor:
        batch, length = input_ids.shape
        hidden = self.embed(input_ids)  # [batch, length, width]
        if mask is not None:
            hidden = hidden * mask[:, -length:, None]
        query, key, value = (one.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                             for one in self.project(hidden).split(WIDTH, dim=-1))
        if cache is not None:
            key, value = cache.update(key, value, 0)
        mixed = (query @ key.transpose(-1, -2) @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        return self.norm(hidden + mixed)


class Toy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Body()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed

    def forward(self, input_ids: torch.Tensor, past_key_values: Any = None, attention_mask: torch.Tensor | None = None,
                position_ids: torch.Tensor | None = None, use_cache: bool = True, logits_to_keep: int = 0) -> Any:
        hidden = self.model(input_ids, past_key_values if use_cache else None, attention_mask)
        return CausalLMOutputWithPast(logits=self.head(hidden[:, -logits_to_keep:]))


def make() -> Model:
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=HEADS, num_key_value_heads=HEADS,
                         vocab_size=VOCABULARY, max_position_embeddings=POSITIONS)
    return Model(Toy().eval().requires_grad_(False), config, torch.device("cpu"), "fp32")
