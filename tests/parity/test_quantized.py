"""The engine on checkpoints that llm-compressor wrote, against torch with the weights that its own library decodes.

scripts/quantizers-env makes the environment in which ASSAY_QUANTIZERS, its interpreter, writes them. ASSAY_SOAK=1: all compiled too.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from test_model import engine, greedy, make_prompts, relative_error, teacher_forced

STEPS = 12
HERE = Path(__file__).parent
FAMILIES = ["llama", "qwen2"]
SCHEMES = ["W4A16", "W4A16_ASYM", "GPTQ", "FP8_DYNAMIC"]
# Compiled too: a model's first kernels take the compiler's time.
COMPILED = [(family, scheme) for family in FAMILIES for scheme in SCHEMES] if os.environ.get("ASSAY_SOAK") else [
    ("llama", "W4A16"), ("qwen2", "FP8_DYNAMIC")]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantized")
    subprocess.run([os.environ["ASSAY_QUANTIZERS"], HERE / "quantized_checkpoints.py", folder], check=True,
                   env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    return folder


def codes(words, outputs):
    """4-bit codes of int32 words, the first in the lowest bits, along the last dimension."""
    shifts = torch.arange(0, 32, 4, dtype=torch.int32)
    return ((words[..., None] >> shifts) & 15).reshape(*words.shape[:-1], -1)[..., :outputs].to(torch.float32)


def decoded(folder):
    """The checkpoint's weights in fp32, by the documents of compressed-tensors: not as assay or that library reads them."""
    stored = load_file(folder / "model.safetensors")
    weights = {}
    for name, tensor in stored.items():
        module, _, part = name.rpartition(".")
        if part == "weight_packed":
            scale = stored[module + ".weight_scale"].float()
            outputs, inputs = stored[module + ".weight_shape"].tolist()
            zero = torch.full_like(scale, 8)
            if module + ".weight_zero_point" in stored:
                zero = codes(stored[module + ".weight_zero_point"].T.contiguous(), outputs).T
            group = inputs // scale.shape[1]
            code = codes(tensor, inputs)
            weights[module + ".weight"] = ((code - zero.repeat_interleave(group, 1)) * scale.repeat_interleave(group, 1))
        elif part == "weight" and tensor.dtype == torch.float8_e4m3fn:
            weights[name] = tensor.float() * stored[module + ".weight_scale"].float()
        elif not part.startswith("weight_"):
            weights[name] = tensor.float()
    return weights


def reference(folder):
    config = AutoConfig.from_pretrained(folder)
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    missing, unexpected = model.load_state_dict(decoded(folder), strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_decoded_weights(written, tmp_path, family, scheme):
    folder = written / f"{family}-{scheme}"
    assert "quantization_config" in json.loads((folder / "config.json").read_text())
    model = reference(folder)
    prompts = make_prompts(211)
    tokens = greedy(model, prompts, STEPS)
    expected = teacher_forced(model, prompts, tokens)
    _, wide = engine(folder, "static", prompts, steps=STEPS, dtype="fp32", feed=tokens, logits_path=tmp_path / "logits")
    assert relative_error(wide, expected) < 1e-4
    for kernels in (None, tmp_path / "kernels") if (family, scheme) in COMPILED else (None,):
        _, blocks = engine(folder, "static", prompts, steps=STEPS, feed=tokens, kernels=kernels,
                           logits_path=tmp_path / "logits")
        error = relative_error(blocks, expected)
        assert error < 0.06, error  # of prompts' activations to bf16, in models that no training has made robust
