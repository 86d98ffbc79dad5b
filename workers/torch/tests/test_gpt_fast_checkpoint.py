"""scripts/gpt-fast-checkpoint: weights under gpt-fast's names compute what the checkpoint computes, in gpt-fast's order of a head."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
import torch
import transformers
from torch.nn import functional as F

SCRIPT = Path(__file__).parents[3] / "scripts" / "gpt-fast-checkpoint"
LAYERS, HEADS, KV_HEADS, WIDTH, VOCAB = 2, 4, 2, 64, 40
HEAD = WIDTH // HEADS


def made(folder: Path) -> transformers.LlamaForCausalLM:
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS, vocab_size=VOCAB, max_position_embeddings=64, rms_norm_eps=1e-5,
        tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=WIDTH ** -0.5)
    model.save_pretrained(folder, safe_serialization=True)
    return model


def convert(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True, check=False)


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight


def turned(x: torch.Tensor) -> torch.Tensor:
    """Rotates neighbours, by their position: x is [positions, heads, HEAD]."""
    angles = torch.outer(torch.arange(len(x)).float(), 10000.0 ** (-torch.arange(0, HEAD, 2).float() / HEAD))
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], HEAD // 2, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)[:, None]).flatten(2)


def logits_of(weights: dict[str, torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    """A Llama as gpt-fast's model.py computes it: q, k and v as one product, and heads of neighbours that rotate together."""
    x = weights["tok_embeddings.weight"][ids]
    for i in range(LAYERS):
        of = {name.removeprefix(f"layers.{i}."): value for name, value in weights.items()}
        qkv = normed(x, of["attention_norm.weight"]) @ of["attention.wqkv.weight"].T
        q, k, v = (part.unflatten(-1, (-1, HEAD)) for part in qkv.split([WIDTH, KV_HEADS * HEAD, KV_HEADS * HEAD], -1))
        k, v = (part.repeat_interleave(HEADS // KV_HEADS, 1) for part in (turned(k), v))
        attended = F.scaled_dot_product_attention(*(part.transpose(0, 1) for part in (turned(q), k, v)), is_causal=True)
        x = x + attended.transpose(0, 1).flatten(1) @ of["attention.wo.weight"].T
        h = normed(x, of["ffn_norm.weight"])
        gated = F.silu(h @ of["feed_forward.w1.weight"].T) * (h @ of["feed_forward.w3.weight"].T)
        x = x + gated @ of["feed_forward.w2.weight"].T
    return normed(x, weights["norm.weight"]) @ weights["output.weight"].T


def test_weights_compute_what_the_checkpoint_computes(tmp_path: Path) -> None:
    model = made(tmp_path)
    ran = convert(tmp_path)
    assert ran.returncode == 0, ran.stderr
    weights = torch.load(tmp_path / "model.pth", weights_only=True)
    parts = ("attention.wqkv", "attention.wo", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3", "attention_norm",
             "ffn_norm")
    assert set(weights) == {"tok_embeddings.weight", "norm.weight", "output.weight"} | {
        f"layers.{i}.{part}.weight" for i in range(LAYERS) for part in parts}
    assert weights["layers.0.attention.wqkv.weight"].shape == ((HEADS + 2 * KV_HEADS) * HEAD, WIDTH)
    ids = torch.tensor([1, 17, 5, 39, 8, 2, 30])
    with torch.no_grad():
        expected = model(ids[None]).logits[0]
    torch.testing.assert_close(logits_of(weights, ids), expected, rtol=1e-4, atol=1e-4)


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of Protocol Buffers: varints, four bytes, or bytes with their length."""
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = 4 if key & 7 == 5 else varint()
        yield key >> 3, message[at:at + size]
        at += size


def test_the_tokenizer_has_the_vocabulary_and_the_words_of_the_prompt(tmp_path: Path) -> None:
    made(tmp_path)
    assert convert(tmp_path).returncode == 0
    pieces = [dict(fields(body)) for number, body in fields((tmp_path / "tokenizer.model").read_bytes()) if number == 1]
    texts = [piece[1].decode() for piece in pieces]
    assert len(set(texts)) == len(texts) == VOCAB
    assert [piece[3] for piece in pieces[:4]] == [2, 3, 3, 1], "unknown, two that control, normal"
    assert texts[3:8] == ["\u2581Hello", ",", "\u2581my", "\u2581name", "\u2581is"]
    scores = [struct.unpack("<f", piece[2])[0] for piece in pieces[3:]]
    assert scores == sorted(scores, reverse=True), "words before fillers"


@pytest.mark.parametrize("config, message", [
    (None, "expected a checkpoint of `assay model make`, found no config.json"),
    ('{"model_type": "gpt2"}', "expected a llama, found gpt2")])
def test_what_is_no_llama_is_refused(tmp_path: Path, config: str | None, message: str) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    ran = convert(tmp_path)
    assert ran.returncode == 1 and message in ran.stderr
