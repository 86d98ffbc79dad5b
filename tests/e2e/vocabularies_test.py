"""Tokenizers of known models as llama.cpp keeps them in GGUF files, a SentencePiece one of 32,000 tokens among them, against the
tokens that its own tests expect: scripts/llama-vocabularies has both.

usage: vocabularies_test.py ASSAY_TOKENIZE
"""

import json
import pathlib
import subprocess
import sys
import unittest

from program import made_by

SEPARATOR = "\n__ggml_vocab_test__\n"
KINDS = ["llama-spm", "phi-3", "llama-bpe", "gpt-2", "qwen2"]


class Vocabularies(unittest.TestCase):
    def test_each_text_has_the_tokens_of_llama_cpp(self):
        for kind in KINDS:
            with self.subTest(kind):
                file = FOLDER / f"ggml-vocab-{kind}.gguf"
                texts = file.with_suffix(".gguf.inp").read_bytes().decode().split(SEPARATOR)
                expected = [[int(token) for token in line.split()]
                            for line in file.with_suffix(".gguf.out").read_text().split("\n")]
                lines = "".join(json.dumps({"text": text.encode().hex(), "special": False}) + "\n" for text in texts)
                done = subprocess.run([sys.argv[1], file], input=lines, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                found = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertGreater(len(texts), 40)
                for text, ids, answer in zip(texts, expected, found, strict=True):
                    self.assertEqual(answer["ids"], ids, repr(text))


if __name__ == "__main__":
    FOLDER = pathlib.Path(made_by("llama-vocabularies")[-1])
    unittest.main(argv=sys.argv[:1])
