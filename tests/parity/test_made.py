"""transformers reads what `assay model make` writes, its tokenizer too, and computes the same from it."""

import json
import subprocess

import pytest
from transformers import AutoTokenizer

from test_model import BUILD, engine, greedy, load, relative_error, teacher_forced

@pytest.mark.parametrize("architecture", ["tiny-gpt2", "tiny-llama", "tiny-qwen2"])
def test_made_by_assay(tmp_path, architecture):
    folder = tmp_path / "model"
    subprocess.run([BUILD / "assay", "model", "make", architecture, "-o", folder], check=True, capture_output=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = load(folder)
    text = "The cache isn't cold: compiled prefill takes 24-82 % less time than eager \u4e16\u754c \U0001f600.\n"
    expected = tokenizer(text)["input_ids"]
    assert len(tokenizer) == model.config.vocab_size
    assert max(expected) < model.config.vocab_size
    reply = subprocess.run([BUILD / "assay_tokenize", folder], capture_output=True, text=True, check=True,
                           input=json.dumps({"text": text.encode().hex(), "special": True}) + "\n")
    assert json.loads(reply.stdout)["ids"] == expected
    prompts = [expected[:40], expected[:3], expected[:11]]
    steps = 32
    tokens = greedy(model, prompts, steps)
    found, logits = engine(folder, "static", prompts, steps=steps, dtype="fp32")
    assert relative_error(logits[0], teacher_forced(model, prompts, tokens)[0]) < 1e-4
    assert found == tokens
