"""Checkpoints of two families as llm-compressor writes them, without data and, for GPTQ, with some.

usage: quantized_checkpoints.py FOLDER   makes FOLDER/FAMILY-SCHEME for each
"""

import sys
from pathlib import Path

import torch
from datasets import Dataset
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

import checkpoints

FAMILIES = {  # groups of 128, and rows that aren't whole ones of them
    "llama": (lambda: checkpoints.llama(hidden_size=256, intermediate_size=384, num_attention_heads=4,
                                        num_key_value_heads=2), torch.bfloat16),
    "qwen2": (lambda: checkpoints.qwen2(hidden_size=128, intermediate_size=256, num_attention_heads=4,
                                        num_key_value_heads=2, tie_word_embeddings=True), torch.float16),
}
SCHEMES = ["W4A16", "W4A16_ASYM", "FP8_DYNAMIC"]


def recipes():
    for scheme in SCHEMES:
        yield scheme, QuantizationModifier(targets="Linear", scheme=scheme, ignore=["lm_head"]), {}
    random = torch.Generator().manual_seed(3)
    data = Dataset.from_dict({"input_ids": torch.randint(0, 211, (32, 64), generator=random).tolist(),
                              "attention_mask": [[1] * 64] * 32})
    yield "GPTQ", GPTQModifier(targets="Linear", scheme="W4A16", ignore=["lm_head"]), {
        "dataset": data, "max_seq_length": 64, "num_calibration_samples": 32, "processor": processor()}


def processor():
    """One that nothing is asked of: the data are tokens already."""
    words = Tokenizer(models.WordLevel({"w": 0}, unk_token="w"))
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w", pad_token="w")


def main(folder):
    for family, (config, dtype) in FAMILIES.items():
        checkpoints.make(config(), dtype, folder / family)
        for name, recipe, options in recipes():
            model = AutoModelForCausalLM.from_pretrained(folder / family, dtype=dtype)
            oneshot(model=model, recipe=recipe, **options)
            model.save_pretrained(folder / f"{family}-{name}", save_compressed=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
