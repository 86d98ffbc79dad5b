"""The GGUF file of a checkpoint, read back here, and the arm on a llama-bench that is a script."""

import json
import os
import struct
import sys
import tempfile
import unittest

from llama_bench import LlamaBench
from make_gguf import make_gguf
from peers import PeerFailed

CONFIG = {"model_type": "llama", "num_hidden_layers": 1, "max_position_embeddings": 64, "hidden_size": 8,
          "intermediate_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5,
          "rope_theta": 500000.0, "vocab_size": 3,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 8192}}
TENSORS = {  # by name: type, shape, bytes
    "model.embed_tokens.weight": ("BF16", [3, 8], bytes(range(48))),
    "model.norm.weight": ("BF16", [8], struct.pack("<8H", *[0x3F80] * 8)),  # ones
    "model.layers.0.self_attn.q_proj.weight": ("F16", [8, 2], bytes(row for row in range(8) for _ in range(4))),
    "model.layers.0.self_attn.v_proj.weight": ("F16", [4, 2], bytes(row for row in range(4) for _ in range(4))),
}


def write_checkpoint(folder, config, tensors):
    entries, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    header = json.dumps({"__metadata__": {}, **entries}).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)


def read_gguf(path):
    """(metadata, {name: (dimensions, type, bytes from its offset on)})."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0

    def take(format):
        nonlocal at
        values = struct.unpack_from("<" + format, data, at)
        at += struct.calcsize("<" + format)
        return values[0] if len(values) == 1 else values

    def take_text():
        return take(f"{take('Q')}s").decode()

    magic, version, tensors, pairs = take("4sIQQ")
    assert (magic, version) == (b"GGUF", 3)
    metadata = {}
    for _ in range(pairs):
        key, kind = take_text(), take("I")
        metadata[key] = take_text() if kind == 8 else take({4: "I", 6: "f"}[kind])
    found = {}
    for _ in range(tensors):
        name, rank = take_text(), take("I")
        dimensions = [take("Q") for _ in range(rank)]
        found[name] = (dimensions, *take("IQ"))
    begin = at + -at % 32
    for name, (dimensions, dtype, offset) in found.items():
        assert offset % 32 == 0
        found[name] = (dimensions, dtype, data[begin + offset:])
    return metadata, found


class Gguf(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def made(self, config=CONFIG):
        write_checkpoint(self.folder, config, TENSORS)
        path = os.path.join(self.folder, "out.gguf")
        make_gguf(self.folder, path)
        return read_gguf(path)

    def test_metadata_and_tensors(self):
        metadata, tensors = self.made()
        self.assertEqual((metadata["general.architecture"], metadata["llama.rope.dimension_count"],
                          metadata["llama.rope.freq_base"], metadata["llama.vocab_size"]), ("llama", 4, 500000.0, 3))
        self.assertEqual(set(tensors), {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight",
                                        "blk.0.attn_v.weight", "rope_freqs.weight"})
        dimensions, dtype, data = tensors["token_embd.weight"]
        self.assertEqual((dimensions, dtype, data[:48]), ([8, 3], 30, bytes(range(48))))
        dimensions, dtype, data = tensors["output_norm.weight"]
        self.assertEqual((dimensions, dtype, struct.unpack("<8f", data[:32])), ([8], 0, (1.0,) * 8))

    def test_rows_of_heads_are_interleaved_in_llama_alone(self):
        tensors = self.made()[1]
        self.assertEqual(tensors["blk.0.attn_q.weight"][2][:32:4], bytes([0, 2, 1, 3, 4, 6, 5, 7]))
        self.assertEqual(tensors["blk.0.attn_v.weight"][2][:16:4], bytes([0, 1, 2, 3]))
        tensors = self.made({**CONFIG, "model_type": "qwen2", "rope_scaling": None})[1]
        self.assertEqual(tensors["blk.0.attn_q.weight"][2][:32:4], bytes(range(8)))
        self.assertNotIn("rope_freqs.weight", tensors)

    def test_slow_rotations_are_slowed_by_the_factor(self):
        # The second rotation turns positions / (2 pi 500000^(1/2)) times.
        for positions, factor in [(64, 8.0), (8192, 2.6945298), (1 << 20, 1.0)]:
            scaling = {**CONFIG["rope_scaling"], "original_max_position_embeddings": positions}
            data = self.made({**CONFIG, "rope_scaling": scaling})[1]["rope_freqs.weight"][2]
            found = struct.unpack("<2f", data[:8])
            self.assertEqual(found[0], 1)
            self.assertAlmostEqual(found[1], factor, places=6)


class Arm(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.checkpoint = os.path.join(self.folder, "checkpoint")
        os.mkdir(self.checkpoint)

    def arm(self, body, config=CONFIG):
        write_checkpoint(self.checkpoint, config, TENSORS)
        program = os.path.join(self.folder, "llama-bench")
        with open(program, "w") as file:
            file.write(f"#!{sys.executable}\nimport sys, os\n{body}\n")
        os.chmod(program, 0o755)
        arm = LlamaBench(program, self.checkpoint, os.path.join(self.folder, "log"), "0")
        self.addCleanup(arm.stop)
        return arm

    def test_an_answer_is_of_one_step_or_prompt(self):
        body = """model = sys.argv[sys.argv.index('-m') + 1]
assert os.path.getsize(model) > 0
assert '--no-warmup' not in sys.argv
n = sys.argv[sys.argv.index('-n') + 1]
samples = [256000000, 900000000, 1, 255000000, 257000000][:int(sys.argv[sys.argv.index('-r') + 1])]
print('[{"n_gen": ' + n + ', "samples_ns": ' + str(samples) + '}]')"""
        arm = self.arm(body)
        self.assertEqual(arm.ask({"do": "decode", "prompt": 128, "steps": 128}, 60)["ms"], 2)
        self.assertEqual(arm.ask({"do": "prefill", "tokens": 2048}, 60)["ms"], 256)
        self.assertEqual(arm.ask({"do": "prefill", "tokens": 2048, "timed": 5}, 60)["ms"], 256)
        self.assertEqual(arm.ask({"do": "prefill", "tokens": 2048, "timed": 2}, 60)["ms"], 578)
        arm.stop()
        self.assertEqual(os.listdir(self.folder).count("checkpoint"), 1)
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("gguf-")])

    def test_it_has_no_batches_and_no_warm_ups(self):
        arm = self.arm("")
        self.assertTrue(arm.answers({"do": "decode", "prompt": 1, "steps": 1}, timed=True))
        self.assertFalse(arm.answers({"do": "decode", "prompt": 1, "steps": 1, "batch": 8}, timed=True))
        self.assertFalse(arm.answers({"do": "prefill", "tokens": 1}, timed=False))

    def test_failures(self):
        with self.assertRaisesRegex(PeerFailed, "status 3"):
            self.arm("sys.exit(3)").ask({"do": "prefill", "tokens": 1}, 60)
        with self.assertRaisesRegex(PeerFailed, "timed out"):
            self.arm("import time; time.sleep(600)").ask({"do": "prefill", "tokens": 1}, 0.1)
        with self.assertRaisesRegex(PeerFailed, "expected llama or qwen2, found gpt2"):
            self.arm("", {**CONFIG, "model_type": "gpt2"})


if __name__ == "__main__":
    unittest.main()
