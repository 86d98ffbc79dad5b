"""A checkpoint of the Llama or Qwen2 family as the GGUF file that llama.cpp reads: the same weights in the same type, and
no vocabulary, which llama-bench has no use for.

usage: make_gguf.py CHECKPOINT OUT

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; names and keys as convert_hf_to_gguf.py gives them.
"""

import json
import math
import mmap
import os
import re
import struct
import sys

ALIGNMENT = 32
U32, F32, STRING = 4, 6, 8  # types of metadata
TYPES = {"F32": 0, "F16": 1, "BF16": 30}  # of tensors, by safetensors' name
NAMES = [
    (r"model\.embed_tokens\.weight", "token_embd.weight"),
    (r"model\.norm\.weight", "output_norm.weight"),
    (r"lm_head\.weight", "output.weight"),
    (r"model\.layers\.(\d+)\.input_layernorm\.weight", r"blk.\1.attn_norm.weight"),
    (r"model\.layers\.(\d+)\.post_attention_layernorm\.weight", r"blk.\1.ffn_norm.weight"),
    (r"model\.layers\.(\d+)\.self_attn\.([qkv])_proj\.(weight|bias)", r"blk.\1.attn_\2.\3"),
    (r"model\.layers\.(\d+)\.self_attn\.o_proj\.weight", r"blk.\1.attn_output.weight"),
    (r"model\.layers\.(\d+)\.mlp\.(gate|up|down)_proj\.weight", r"blk.\1.ffn_\2.weight"),
]


def gguf_name(name):
    for pattern, to in NAMES:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, to, name)
    raise ValueError(f"tensor: expected one of a Llama or Qwen2, found {name}")


def tensors_of(folder):
    """(name, type, shape, bytes) of every tensor, sorted by file and place."""
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, file), "rb") as opened:
            mapped = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        size = struct.unpack("<Q", mapped[:8])[0]
        for name, entry in json.loads(bytes(mapped[8:8 + size])).items():
            if name != "__metadata__":
                begin, end = (8 + size + at for at in entry["data_offsets"])
                yield name, entry["dtype"], entry["shape"], mapped[begin:end]


def interleaved(data, rows, heads):
    """Rows of a head's two halves in turn: llama.cpp rotates neighbours in this family, transformers halves."""
    row, half = len(data) // rows, rows // heads // 2
    parts = []
    for head in range(heads):
        for i in range(half):
            for row_number in (head * 2 * half + i, head * 2 * half + half + i):
                parts.append(data[row_number * row:(row_number + 1) * row])
    return b"".join(parts)


def as_f32(data, dtype):
    """Small tensors alone: llama.cpp adds biases and multiplies by norms in fp32."""
    if dtype == "F32":
        return bytes(data)
    if dtype == "F16":
        return struct.pack(f"<{len(data) // 2}f", *struct.unpack(f"<{len(data) // 2}e", data))
    return b"".join(b"\0\0" + data[at:at + 2] for at in range(0, len(data), 2))


def rope_factors(scaling, theta, head_dim):
    """Divisors of the rotation's frequencies, as Llama 3 scales them."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    factors = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * theta ** (i / head_dim)
        turns = scaling["original_max_position_embeddings"] / wavelength
        smooth = min(max((turns - low) / (high - low), 0), 1)
        factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return struct.pack(f"<{len(factors)}f", *factors)


def metadata_of(config):
    arch, heads = config["model_type"], config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    return {
        "general.architecture": arch,
        f"{arch}.block_count": config["num_hidden_layers"],
        f"{arch}.context_length": config["max_position_embeddings"],
        f"{arch}.embedding_length": config["hidden_size"],
        f"{arch}.feed_forward_length": config["intermediate_size"],
        f"{arch}.attention.head_count": heads,
        f"{arch}.attention.head_count_kv": config.get("num_key_value_heads") or heads,
        f"{arch}.attention.key_length": head_dim,
        f"{arch}.attention.value_length": head_dim,
        f"{arch}.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        f"{arch}.rope.dimension_count": head_dim,
        f"{arch}.rope.freq_base": float(config.get("rope_theta", 10000.0)),
        f"{arch}.vocab_size": config["vocab_size"],
        "tokenizer.ggml.model": "none",
    }


def gguf_tensors(folder, config):
    """(name, type, shape, bytes) as llama.cpp has them; shapes are the checkpoint's."""
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    for name, dtype, shape, data in tensors_of(folder):
        part = re.search(r"self_attn\.([qk])_proj", name)
        if part and config["model_type"] == "llama":
            data = interleaved(data, shape[0], heads if part[1] == "q" else kv_heads)
        if len(shape) == 1:
            dtype, data = "F32", as_f32(data, dtype)
        yield gguf_name(name), dtype, shape, data
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        head_dim = config.get("head_dim") or config["hidden_size"] // heads
        yield "rope_freqs.weight", "F32", [head_dim // 2], rope_factors(scaling, config["rope_theta"], head_dim)


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", STRING) + text(value)
    return text(key) + (struct.pack("<If", F32, value) if isinstance(value, float) else struct.pack("<II", U32, value))


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def make_gguf(folder, out):
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    if config["model_type"] not in ("llama", "qwen2"):
        raise ValueError(f"model_type: expected llama or qwen2, found {config['model_type']}")
    tensors = list(gguf_tensors(folder, config))
    metadata = metadata_of(config)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    header += b"".join(pair(*one) for one in metadata.items())
    offset = 0
    for name, dtype, shape, data in tensors:  # ggml counts dimensions from the innermost
        header += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        header += struct.pack("<IQ", TYPES[dtype], offset)
        offset += len(data) + -len(data) % ALIGNMENT
    with open(out + ".part", "wb") as file:
        file.write(header + padding(len(header)))
        for _, _, _, data in tensors:
            file.write(data)
            file.write(padding(len(data)))
    os.replace(out + ".part", out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make_gguf(*sys.argv[1:])
