"""Drives `assay generate` on a tiny random checkpoint: what it prints, and how it refuses.

usage: generate_test.py ASSAY
"""

import hashlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ASSAY = sys.argv.pop(1)


def assay(*arguments):
    return subprocess.run([ASSAY, *map(str, arguments)], capture_output=True, text=True)


def output_hash(done):
    return re.search(r"output +(\d+) tokens, hash ([0-9a-f]{16})", done.stderr).groups()


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = Path(cls.folder.name) / "tiny"
        made = assay("model", "make", "tiny-qwen2", "-o", cls.model)
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def generate(self, *arguments):
        done = assay("generate", self.model, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refuse(self, message, *arguments):
        done = assay("generate", *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertRegex(done.stderr, message)

    def test_both_caches_print_the_same_text_and_figures(self):
        fixed = self.generate("Hello there", "-n", 20, "--ignore-eos", "--dtype", "fp32")
        growing = self.generate("Hello there", "-n", 20, "--ignore-eos", "--dtype", "fp32", "--cache", "dynamic",
                                "--threads", 1)
        self.assertEqual(fixed.stdout, growing.stdout)
        self.assertEqual(output_hash(fixed), output_hash(growing))
        self.assertEqual(output_hash(fixed)[0], "20")
        self.assertRegex(fixed.stderr, r"prompt +\d+ tokens, prefill ")
        self.assertRegex(fixed.stderr, r"decode +[\d.]+ tokens/s, [\d.]+ GB/s: ")
        if any(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")):
            self.assertRegex(fixed.stderr, r"GB/s: the [\d.]+ [kM]B of a step fit the last-level cache \([\d.]+ MB\)")
            self.assertNotIn("% of", fixed.stderr, "of memory's bandwidth, which so small a model doesn't need")

    def test_ids_in_and_out_and_their_hash(self):
        done = self.generate("1,2 3", "--ids", "-n", 6, "--ignore-eos")
        ids = [int(word) for word in done.stdout.split()]
        self.assertEqual(len(ids), 6)
        expected = hashlib.sha256(struct.pack("<6i", *ids)).hexdigest()[:16]
        self.assertEqual(output_hash(done), ("6", expected))

    def test_one_token_has_no_decode_speed(self):
        done = self.generate("1 2", "--ids", "-n", 1)
        self.assertNotIn("tokens/s", done.stderr)

    def test_stops_where_the_positions_end(self):
        info = assay("model", "info", self.model, "-o", "json").stdout
        positions = int(re.search(r'"max_positions": *(\d+)', info).group(1))
        prompt = " ".join(["5"] * (positions - 2))
        done = self.generate(prompt, "--ids", "-n", 50, "--ignore-eos")
        self.assertEqual(output_hash(done)[0], "3")
        self.assertIn(f"stopped at the model's {positions} positions", done.stderr)
        self.refuse(rf"prompt: expected at most {positions} tokens \(the model's positions\), found {positions + 1}$",
                    self.model, " ".join(["5"] * (positions + 1)), "--ids")

    def test_an_architecture_is_made_once(self):
        kept = Path(self.folder.name) / "kept"
        command = ["env", f"ASSAY_MODEL_CACHE={kept}", ASSAY, "generate", "tiny-llama", "1 2", "--ids", "-n", "3"]
        first, again = (subprocess.run(command, capture_output=True, text=True) for _ in range(2))
        self.assertEqual((first.returncode, len(first.stdout.split())), (0, 3), first.stderr)
        self.assertEqual(again.stdout, first.stdout)
        self.assertTrue((kept / "tiny-llama").is_dir())

    def test_refusals(self):
        self.refuse("prompt: expected at least one token, found none$", self.model, "")
        self.refuse(r'--tokens: expected an integer from 1 to 1000000000, found "0"$', self.model, "x", "-n", 0)
        self.refuse('--cache: expected one of static, dynamic, found "fixed"$', self.model, "x", "--cache", "fixed")
        self.refuse('--dtype: expected fp32, fp16 or bf16, found "int8"$', self.model, "x", "--dtype", "int8")
        self.refuse('prompt: expected token ids .*found "x"$', self.model, "1 x", "--ids")
        self.refuse(r"tokens: expected ids from 0 to \d+, found 99999999$", self.model, "99999999", "--ids")
        self.refuse("none", Path(self.folder.name) / "none", "x")

    def test_a_missing_tokenizer_is_named_and_ids_need_none(self):
        bare = Path(self.folder.name) / "bare"
        bare.mkdir()
        for file in ["config.json", "model.safetensors"]:
            (bare / file).write_bytes((self.model / file).read_bytes())
        self.refuse("tokenizer.json", bare, "x")
        self.assertEqual(assay("generate", bare, "1 2", "--ids", "-n", 2).returncode, 0)


if __name__ == "__main__":
    unittest.main()
