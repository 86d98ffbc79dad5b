"""The engine against transformers, on random checkpoints made there. ASSAY_SOAK=1: with twice as many steps."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

import checkpoints

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)

BUILD = Path(os.environ["ASSAY_BUILD"])
STEPS = 128 if os.environ.get("ASSAY_SOAK") else 64
LENGTHS = [17, 1, 6]  # of the three prompts of a batch


def load(folder, dtype=torch.float32):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def make_prompts(vocab_size, lengths=tuple(LENGTHS)):
    rng = np.random.default_rng(11)
    return [rng.integers(0, vocab_size, n).tolist() for n in lengths]


def greedy(model, prompts, steps=STEPS):
    """transformers' own greedy tokens of the left-padded batch."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    out = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=steps, min_new_tokens=steps,
                         eos_token_id=None, pad_token_id=0)
    return out[:, width:].tolist()


def teacher_forced(model, prompts, tokens):
    """Logits behind each of `tokens`, a row at a time without padding: [steps, batch, vocab]."""
    rows = []
    with torch.no_grad():
        for prompt, row in zip(prompts, tokens):
            logits = model(torch.tensor([prompt + row])).logits[0]
            rows.append(logits[len(prompt) - 1:-1].float().numpy())
    return np.stack(rows, axis=1)


def engine(folder, cache, prompts, *, steps=STEPS, dtype=None, feed=None, pad_to=0, threads=1, kernels=None,
           logits_path=None):
    """The engine's greedy tokens, and its logits [steps, batch, vocab]; prompts are padded to the longest, or pad_to.

    With `kernels`, a folder to keep them in, both phases are compiled, and every run of them must be.
    """
    path = logits_path or Path(folder) / "logits.bin"
    request = {"folder": str(folder), "cache": cache, "dtype": dtype, "prompts": prompts, "steps": steps,
               "pad_to": pad_to, "threads": threads, "feed": feed, "logits": str(path),
               "kernels": str(kernels) if kernels else None}
    done = subprocess.run([BUILD / "assay_engine_run"], input=json.dumps(request) + "\n", capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    reply = json.loads(done.stdout)
    assert "error" not in reply, reply["error"]
    assert reply["compiled"] == (steps if kernels else 0), reply
    assert reply["fallbacks"] == 0, reply
    return reply["tokens"], np.fromfile(path, dtype=np.float32).reshape(steps, len(prompts), -1)


def relative_error(found, expected):
    """The largest over all positions of |found - expected| / |expected|, over the vocabulary."""
    difference = np.linalg.norm(found.astype(np.float64) - expected, axis=-1)
    return float((difference / np.linalg.norm(expected.astype(np.float64), axis=-1)).max())


def log_softmax(logits):
    return torch.log_softmax(torch.from_numpy(logits.astype(np.float64)), dim=-1).numpy()


def divergence(found, expected):
    """Mean KL of the expected distribution from the found one."""
    p, q = log_softmax(expected), log_softmax(found)
    return float((np.exp(p) * (p - q)).sum(-1).mean())


def token_nll(logits, tokens):
    return -np.take_along_axis(log_softmax(logits), np.array(tokens).T[:, :, None], axis=-1)


def nll_error(logits, exact, tokens):
    """Mean over tokens of the error's size. Errors of the mean cancel by chance, in either of two programs."""
    return float(np.abs(token_nll(logits, tokens) - token_nll(exact, tokens)).mean())


def check_full_precision(model, folder, prompts, *, dtype=None):
    """Tokens and logits in fp32 arithmetic: both caches, one prompt and three, padding of several widths."""
    tokens = greedy(model, prompts)
    for row in tokens:
        assert len(set(row)) >= 16, f"a degenerate model proves nothing: {row}"
    expected = teacher_forced(model, prompts, tokens)
    for cache in ["dynamic", "static"]:
        for rows, pad_to in [(slice(0, 1), 0), (slice(1, 2), 8), (slice(0, 3), 0), (slice(1, 3), 24)]:
            case = f"{cache} cache, prompts {rows}, padded to {pad_to}"
            found, logits = engine(folder, cache, prompts[rows], dtype=dtype, pad_to=pad_to)
            error = relative_error(logits[:1], expected[:1, rows])
            assert error < 1e-4, f"{case}: prefill, relative error {error:.2e}"
            assert found == tokens[rows], case
            error = relative_error(logits, expected[:, rows])
            assert error < 1e-4, f"{case}: relative error {error:.2e}"


@pytest.mark.parametrize("name", checkpoints.FULL)
def test_full_precision(tmp_path, name):
    config = checkpoints.FULL[name]()
    checkpoints.make(config, torch.float32, tmp_path)
    check_full_precision(load(tmp_path), tmp_path, make_prompts(config.vocab_size))


def test_two_threads(tmp_path):
    """The cases above have one thread each: it is quick for models as small as theirs, on a busy machine too."""
    config = checkpoints.FULL["llama_gqa_tied"]()
    checkpoints.make(config, torch.float32, tmp_path)
    prompts = make_prompts(config.vocab_size)
    tokens = greedy(load(tmp_path), prompts, 16)
    assert engine(tmp_path, "static", prompts, steps=16, threads=2)[0] == tokens


@pytest.mark.parametrize("name", checkpoints.HALF)
def test_half_precision(tmp_path, name):
    """Our error against the fp32 run of these weights is at most that of transformers' own run in the stored type."""
    config, dtype = checkpoints.HALF[name]
    checkpoints.make(config(), dtype, tmp_path)
    prompts = make_prompts(config().vocab_size)
    reference = load(tmp_path)
    tokens = greedy(reference, prompts)
    expected = teacher_forced(reference, prompts, tokens)
    theirs = teacher_forced(load(tmp_path, dtype), prompts, tokens)
    for cache in ["dynamic", "static"]:
        for rows in [slice(0, 1), slice(0, 3)]:
            _, ours = engine(tmp_path, cache, prompts[rows], feed=tokens[rows])
            assert ours.shape == expected[:, rows].shape
            their_kl = divergence(theirs[:, rows], expected[:, rows])
            our_kl = divergence(ours, expected[:, rows])
            assert our_kl <= their_kl, f"{cache} cache, prompts {rows}: KL {our_kl:.3e}, transformers' {their_kl:.3e}"
            their_nll = nll_error(theirs[:, rows], expected[:, rows], tokens[rows])
            our_nll = nll_error(ours, expected[:, rows], tokens[rows])
            assert our_nll <= their_nll, f"{cache} cache, prompts {rows}: NLL {our_nll:.3e}, transformers' {their_nll:.3e}"


@pytest.mark.parametrize("name", ["gpt2_bf16", "llama_bf16", "llama_fp16"])
def test_widened_at_load(tmp_path, name):
    config, dtype = checkpoints.HALF[name]
    checkpoints.make(config(), dtype, tmp_path)
    check_full_precision(load(tmp_path), tmp_path, make_prompts(config().vocab_size), dtype="fp32")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrowed_at_load(tmp_path, dtype):
    """Weights are rounded as torch rounds them: what torch has stored in the type gives the same, bit by bit."""
    config = checkpoints.FULL["qwen2_gqa_tied"]()
    checkpoints.make(config, torch.float32, tmp_path / "wide")
    load(tmp_path / "wide", dtype).save_pretrained(tmp_path / "narrow")
    prompts = make_prompts(config.vocab_size)
    for cache in ["dynamic", "static"]:
        tokens, logits = engine(tmp_path / "wide", cache, prompts, dtype=str(dtype).removeprefix("torch."))
        expected_tokens, expected = engine(tmp_path / "narrow", cache, prompts)
        assert tokens == expected_tokens
        assert np.array_equal(logits, expected)
