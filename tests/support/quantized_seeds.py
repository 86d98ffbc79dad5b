"""Small checkpoints of every quantised layout, a config.json, a zero byte and the weights each: seeds of safetensors_fuzz.

usage: quantized_seeds.py FOLDER
"""

import json
import pathlib
import struct
import sys

WIDTH, MIDDLE, VOCAB = 32, 64, 8
CONFIG = {"model_type": "llama", "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": MIDDLE,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16,
          "tie_word_embeddings": True}
PRODUCTS = {"self_attn.q_proj": (32, 32), "self_attn.k_proj": (16, 32), "self_attn.v_proj": (16, 32), "self_attn.o_proj": (32, 32),
            "mlp.gate_proj": (64, 32), "mlp.up_proj": (64, 32), "mlp.down_proj": (32, 64)}  # outputs, inputs
SIZES = {"F16": 2, "BF16": 2, "F32": 4, "I32": 4, "I64": 8, "F8_E4M3": 1}


def compressed(kind, weights, activations=None):
    return {"quant_method": "compressed-tensors", "format": kind, "ignore": ["lm_head"], "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": weights, "input_activations": activations}}}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "sym": True}
INT4 = {"num_bits": 4, "type": "int", "symmetric": False, "strategy": "group", "group_size": 32, "actorder": "group"}
FP8 = {"num_bits": 8, "type": "float", "strategy": "channel"}
LAYOUTS = {"awq": {"quant_method": "awq", "bits": 4, "group_size": 32}, "gptq": GPTQ, "packed": compressed("pack-quantized", INT4),
           "fp8": compressed("float-quantized", FP8, FP8 | {"strategy": "token", "dynamic": True})}


def parts(layout, outputs, inputs):
    """Suffix, type, shape and bytes of each part of a weight."""
    groups = inputs // 32
    ordered = b"".join(struct.pack("<i", i % groups) for i in range(inputs))
    if layout in ("awq", "gptq"):
        yield "qweight", "I32", [inputs, outputs // 8] if layout == "awq" else [inputs // 8, outputs], None
        yield "qzeros", "I32", [groups, outputs // 8], b"w" * (groups * outputs // 2)
        yield "scales", "F16", [groups, outputs], None
        if layout == "gptq":
            yield "g_idx", "I32", [inputs], ordered
    elif layout == "packed":
        yield "weight_packed", "I32", [outputs, inputs // 8], None
        yield "weight_scale", "F16", [outputs, groups], None
        yield "weight_zero_point", "I32", [outputs // 8, groups], None
        yield "weight_shape", "I64", [2], struct.pack("<qq", outputs, inputs)
        yield "weight_g_idx", "I32", [inputs], ordered
    else:
        yield "weight", "F8_E4M3", [outputs, inputs], None
        yield "weight_scale", "F16", [outputs, 1], None


def seed(layout):
    tensors = [("model.embed_tokens.weight", "F16", [VOCAB, WIDTH], None), ("model.norm.weight", "F16", [WIDTH], None)]
    for norm in ("input_layernorm", "post_attention_layernorm"):
        tensors.append((f"model.layers.0.{norm}.weight", "F16", [WIDTH], None))
    for name, (outputs, inputs) in PRODUCTS.items():
        tensors += [(f"model.layers.0.{name}.{part}", *rest) for part, *rest in parts(layout, outputs, inputs)]
    header, data = {}, b""
    for name, dtype, shape, content in tensors:
        size = SIZES[dtype]
        for dim in shape:
            size *= dim
        content = content or bytes(i * 37 % 120 for i in range(size))
        assert len(content) == size, name
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    config = json.dumps(CONFIG | {"quantization_config": LAYOUTS[layout]}).encode()
    return config + b"\0" + struct.pack("<Q", len(text)) + text + data


if __name__ == "__main__":
    for layout in LAYOUTS:
        (pathlib.Path(sys.argv[1]) / f"seed-{layout}").write_bytes(seed(layout))
