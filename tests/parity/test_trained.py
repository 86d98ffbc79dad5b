"""The engine against transformers on a real trained model, SmolLM2-135M-Instruct, and real sentences.

Random checkpoints (test_model.py) have logits that no training has shaped: here the margins between tokens, the outliers
of the activations and the text are a language model's. ASSAY_SOAK=1: with twice as many steps, each mode with each cache.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

import strings
from test_model import BUILD, divergence, engine, greedy, load, relative_error, teacher_forced
from test_tokenizer import ASSIGNED, ask, compare

torch.set_num_threads(2)

FOLDER = Path(os.environ["ASSAY_TRAINED"])
SOAK = bool(os.environ.get("ASSAY_SOAK"))
STEPS = 24 if SOAK else 12
SENTENCES = [
    "The compiler lowers each graph into kernels, and the kernels are timed between two device synchronisations. That is",
    "Water boils at",
    "Once upon a time, in a small village by the sea, there lived an old",
]
ARMS = [("eager", "dynamic"), ("compiled", "static")]
if SOAK:
    ARMS += [("eager", "static"), ("compiled", "dynamic")]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def kernel_cache(tmp_path_factory):
    """One for all arms, and none that this machine has kept."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def prompts():
    return [reply["ids"] for reply in ask(FOLDER, [{"text": text.encode().hex(), "special": True} for text in SENTENCES])]


@pytest.fixture(scope="module")
def reference(prompts):
    """transformers in fp32: its choices after the sentences, and the logits behind them."""
    model = load(FOLDER)
    tokens = greedy(model, prompts, STEPS)
    return model, tokens, teacher_forced(model, prompts, tokens)


@pytest.fixture(scope="module")
def theirs(prompts, reference):
    """The logits of transformers in bf16, fed with the same tokens."""
    return teacher_forced(load(FOLDER, torch.bfloat16), prompts, reference[1])


@pytest.fixture(scope="module")
def logits_of(prompts, reference):
    """transformers' fp32 logits behind the tokens that an arm chose; most arms choose the same."""
    known = {}

    def compute(tokens):
        key = str(tokens)
        if key not in known:
            known[key] = teacher_forced(reference[0], prompts, tokens)
        return known[key]

    return compute


def run(mode, cache, prompts, kernel_cache, tmp_path, **options):
    return engine(FOLDER, cache, prompts, steps=STEPS, threads=2, kernels=kernel_cache if mode == "compiled" else None,
                  logits_path=tmp_path / "logits.bin", **options)


def test_tokenizer(tokenizer, prompts):
    """Its own tokenizer.json, as transformers converts it: bytes without a token, a decoder of the whole text."""
    assert prompts == [tokenizer.encode(text).ids for text in SENTENCES]
    texts = strings.texts(seed=135, count=60, assigned=ASSIGNED, tokens=["<|im_start|>", "<|im_end|>", "<repo_name>"])
    raw = [text.encode("utf-8", errors="replace") for text in texts] + strings.byte_strings(seed=135, count=60)
    compare(tokenizer, FOLDER, raw, special=True)


def test_text(tokenizer, reference, prompts):
    """The continuations are sentences, not one word for ever, and read the same by either tokenizer."""
    tokens = reference[1]
    for row, reply in zip(tokens, ask(FOLDER, [{"ids": row} for row in tokens])):
        assert len(set(row)) >= 8, row
        assert bytes.fromhex(reply["streamed"]).decode() == tokenizer.decode(row, skip_special_tokens=True)


def test_generate(tokenizer, reference):
    """The program itself, from text to text."""
    command = [BUILD / "assay", "generate", FOLDER, SENTENCES[0], "-n", "8", "--dtype", "fp32", "--threads", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == tokenizer.decode(reference[1][0][:8], skip_special_tokens=True) + "\n"


@pytest.mark.parametrize("mode,cache", ARMS)
def test_full_precision(tmp_path, prompts, reference, kernel_cache, mode, cache):
    """bf16 weights widened to fp32: the same tokens, each fed back, and the logits behind them; fed with transformers'
    tokens, too, for one sentence alone and for three together."""
    _, tokens, expected = reference
    found, logits = run(mode, cache, prompts, kernel_cache, tmp_path, dtype="fp32")
    assert found == tokens
    assert relative_error(logits, expected) < 1e-4
    found, logits = run(mode, cache, prompts[:1], kernel_cache, tmp_path, dtype="fp32", feed=tokens[:1])
    assert found == tokens[:1]
    assert relative_error(logits, expected[:, :1]) < 1e-4


@pytest.mark.parametrize("mode,cache", ARMS)
def test_half_precision(tmp_path, prompts, reference, theirs, kernel_cache, mode, cache):
    """In bf16, fed with transformers' tokens: as near to its fp32 run as its own bf16 run, or nearer."""
    _, tokens, expected = reference
    _, ours = run(mode, cache, prompts, kernel_cache, tmp_path, feed=tokens)
    assert divergence(ours, expected) <= divergence(theirs, expected)


@pytest.mark.parametrize("mode,cache", ARMS)
def test_half_precision_greedy(tmp_path, prompts, reference, theirs, logits_of, kernel_cache, mode, cache):
    """In bf16, left to its own choices: each is the fp32 model's first after the same text, or so near to it that the
    rounding of transformers' bf16 run could turn them."""
    expected = reference[2]
    found, _ = run(mode, cache, prompts, kernel_cache, tmp_path)
    logits = logits_of(found)
    chosen = np.take_along_axis(logits, np.array(found).T[:, :, None], axis=-1)[:, :, 0]
    # Two logits may err by this each, in opposite directions.
    rounding = 2 * np.abs(theirs - expected).max()
    assert (logits.max(-1) - chosen).max() <= rounding
