"""GGUF files: a real one and those that `assay model quantize` writes, beside llama.cpp's real server on the same files, which
scripts/server-env and scripts/trained-checkpoint make.

usage: gguf_test.py ASSAY ASSAY_TOKENIZE
"""

import json
import math
import random
import re
import subprocess
import sys
import unittest

from http_test import HERE
from program import made_by, rows_of
from serve_test import ServeTest

TEXTS = ["", " ", "hello", "Hello world", "  two  spaces", "tabs\tand\nlines\n\n", "12345 6.7e-8", "don't I'LL we've", "grüße äöü",
         "日本語のテキスト", "🙂🙃 ok", "a" * 100, "\u0301e", "x = {1: 'two'} # three", "<|im_start|>user\nhi<|im_end|>\n",
         "<|im_start|>", "mixed<|im_end|>in", "\r\n", "end ", "\u00a0nbsp", "É vs É"]
OF_ROUNDING = 0.04  # of activations to 8 bits, on a probability
PROMPTS = ["The capital of France is", "Once upon a time, there was", "def add(a, b):\n    return", "1, 2, 3, 4,"]


class GgufTest(ServeTest):
    def llama_cpp(self, model):
        process = subprocess.Popen([PYTHON, str(HERE / "llama_server.py"), str(model), "2"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        for line in process.stdout:
            if found := re.search(r"listening on (https?://[\d.:]+)$", line.rstrip()):
                return found[1]
        self.fail(f"{model}: expected llama.cpp's server to listen, found its end")

    def tokenize(self, model, texts):
        lines = "".join(json.dumps({"text": text.encode().hex(), "special": False}) + "\n" for text in texts)
        done = subprocess.run([sys.argv[2], model], input=lines, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def asked(self, url, path, body):
        status, answer = self.ask(url, path, body)
        self.assertEqual(status, 200, answer)
        return json.loads(answer)

    def assert_logits_agree(self, model, theirs_model, bound):
        """Each prompt's next token has the probabilities of llama.cpp's four likeliest, where ours computes in fp32."""
        ours, theirs = self.serve("--context", "128", "--mode", "eager", "--dtype", "fp32", model=str(model)), self.llama_cpp(theirs_model)
        for prompt in PROMPTS:
            ids = self.asked(theirs, "/tokenize", {"content": prompt, "add_special": False})["tokens"]
            told = self.asked(theirs, "/completion", {"prompt": ids, "n_predict": 1, "n_probs": 4, "temperature": 0,
                                                      "cache_prompt": False})["completion_probabilities"][0]
            expected = {one["token"]: math.exp(one["logprob"]) for one in told["top_logprobs"]}
            (choice,) = self.asked(ours, "/v1/completions", {"prompt": ids, "max_tokens": 1, "logprobs": 20,
                                                             "temperature": 0, "ignore_eos": True})["choices"]
            (found,) = choice["logprobs"]["top_logprobs"]
            (likeliest, most), (_, second), *_ = sorted(expected.items(), key=lambda one: -one[1])
            if most - second > 2 * bound:
                self.assertEqual(choice["logprobs"]["tokens"], [likeliest], prompt)
            for token, value in expected.items():
                self.assertIn(token, found, prompt)
                self.assertAlmostEqual(math.exp(found[token]), value, delta=bound, msg=f"{model}: {prompt!r}, {token!r}")

    def test_a_real_file_has_the_tokens_of_llama_cpp(self):
        url = self.llama_cpp(MODEL)
        for text, found in zip(TEXTS, self.tokenize(MODEL, TEXTS), strict=True):
            expected = self.asked(url, "/tokenize", {"content": text, "add_special": False, "parse_special": True})["tokens"]
            self.assertEqual(found["ids"], expected, repr(text))
            self.assertEqual(bytes.fromhex(found["decoded"]).decode(), text)
            self.assertEqual(found["streamed"], found["plain"])

    def test_a_real_file_has_the_tokens_of_its_models_tokenizer(self):
        self.assertEqual(self.tokenize(MODEL, TEXTS), self.tokenize(CHECKPOINT, TEXTS))

    def test_a_real_file_gives_the_logits_of_llama_cpp(self):
        self.assert_logits_agree(MODEL, MODEL, OF_ROUNDING)
        shown = json.loads(self.succeed("model", "info", MODEL, "-o", "json"))
        self.assertEqual((shown["architecture"], shown["layers"], shown["tied_embeddings"]), ("llama", 30, True))
        formats = {(one["class"], one["format"]) for one in shown["tensors"]}
        self.assertIn(("mlp", "q4_1"), formats)
        self.assertIn(("norms", "fp32"), formats)
        self.assertEqual(sum(one["bytes"] for one in shown["tensors"]), shown["weight_bytes"])
        self.assertTrue(4 < shown["bits_per_weight"] < 7, shown["bits_per_weight"])

    def test_a_quantised_file_gives_the_same_logits_in_llama_cpp(self):
        """llama.cpp rounds activations to 8 bits, which with weights of 4 bits moved a probability of this model by up to 0.17 where
        its own fp32 of the same weights differs from ours by less than 0.003. So both comparisons are made of each file."""
        sizes = []
        for kind, of_rounding in (("q8_0", OF_ROUNDING), ("q4_0", 0.2), ("q4_k_m", 0.2)):
            with self.subTest(kind):
                file, wide = self.folder / f"{kind}.gguf", self.folder / "fp32.gguf"
                self.succeed("model", "quantize", CHECKPOINT, "-t", kind, "-o", file)
                sizes.append(file.stat().st_size)
                self.assert_logits_agree(file, file, of_rounding)
                self.succeed("model", "quantize", file, "-t", "fp32", "-o", wide)
                self.assert_logits_agree(file, wide, 0.004)
                self.assertEqual(self.tokenize(str(file), TEXTS), self.tokenize(CHECKPOINT, TEXTS))
        self.assertGreater(sizes[0], 1.4 * sizes[1], "8 bits and some 4")

    def test_a_file_is_a_model_wherever_one_is_asked_for(self):
        self.succeed("model", "make", "tiny-llama", "-o", "tiny")
        made = self.succeed("model", "quantize", "tiny", "-t", "q8_0", "-o", "tiny.gguf")
        self.assertRegex(made, r"^tiny\.gguf: q8_0, .* parameters in .*, [89]\.\d+ bits a weight\n$")
        self.succeed("model", "quantize", "tiny.gguf", "-t", "q4_0", "-o", "tiny4.gguf")
        self.assertLess((self.folder / "tiny4.gguf").stat().st_size, (self.folder / "tiny.gguf").stat().st_size)
        self.assertEqual(self.assay("generate", "tiny.gguf", "one two", "-n", "4").returncode, 0)
        self.assertIn("tg4", self.succeed("bench", "tiny.gguf", "-p", "16", "-n", "4", "-r", "2"))
        self.write_study(models=[{"path": "tiny.gguf"}])
        self.succeed("run", "study.yaml", "-o", "bundle")
        rows = rows_of(self.folder / "bundle")
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertEqual({row["quantization"] for row in rows}, {"Q8_0"})
        self.succeed("verify", "bundle")
        (self.folder / "taken.txt").write_text("mine")
        self.assert_refused(["model", "quantize", "tiny", "-t", "q8_0", "-o", "taken.txt"], "taken.txt")

    def test_a_changed_file_ends_in_one_line(self):
        self.succeed("model", "make", "tiny-llama", "-o", "tiny")
        self.succeed("model", "quantize", "tiny", "-t", "q8_0", "-o", "tiny.gguf")
        whole = (self.folder / "tiny.gguf").read_bytes()
        rng = random.Random(1)
        for _ in range(20):
            (self.folder / "cut.gguf").write_bytes(whole[:rng.randrange(4, len(whole) - 4096)])
            self.assert_refused(["model", "info", "cut.gguf"], "cut.gguf: expected")
        (self.folder / "other.gguf").write_bytes(b"nothing of the kind")
        self.assert_refused(["generate", "other.gguf", "1", "--ids"], "expected a GGUF file")


if __name__ == "__main__":
    PYTHON, MODEL = made_by("server-env")[-2:]
    CHECKPOINT = made_by("trained-checkpoint")[-1]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
