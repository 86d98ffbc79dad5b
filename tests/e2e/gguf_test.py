"""GGUF files: a real one and those that `assay model quantize` writes, beside llama.cpp's real server on the same files, which
scripts/server-env and scripts/trained-checkpoint make.

usage: gguf_test.py ASSAY ASSAY_TOKENIZE
"""

import json
import math
import random
import subprocess
import sys
import unittest

from http_test import HERE, listening
from program import made_by, rows_of
from serve_test import ServeTest

TEXTS = ["", " ", "hello", "Hello world", "  two  spaces", "tabs\tand\nlines\n\n", "12345 6.7e-8", "don't I'LL we've", "grüße äöü",
         "日本語のテキスト", "🙂🙃 ok", "a" * 100, "\u0301e", "x = {1: 'two'} # three", "<|im_start|>user\nhi<|im_end|>\n",
         "<|im_start|>", "mixed<|im_end|>in", "\r\n", "end ", "\u00a0nbsp", "É vs É"]
NEW_TOKENS = 4
OF_SUMS = 0.004    # a probability's distance where both compute in fp32: other orders of sums, and llama.cpp's cache in fp16
OF_BF16 = 0.02     # where prompts round activations and decoded weights to bf16, and steps activations to 16 bits
OF_BYTES = 0.03    # the mean distance where llama.cpp rounds activations to 8 bits; a single one reached 0.17
PROMPTS = ["The capital of France is", "Once upon a time, there was", "def add(a, b):\n    return", "1, 2, 3, 4,"]


class GgufTest(ServeTest):
    def llama_cpp(self, model):
        process, url = listening([PYTHON, HERE / "llama_server.py", model, "1"])
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        return url

    def tokenize(self, model, texts):
        lines = "".join(json.dumps({"text": text.encode().hex(), "special": False}) + "\n" for text in texts)
        done = subprocess.run([sys.argv[2], model], input=lines, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def asked(self, url, path, body):
        status, answer = self.ask(url, path, body)
        self.assertEqual(status, 200, answer)
        return json.loads(answer)

    def our_choices(self, model, *options):
        """A function from a prompt's ids to the probabilities of 20 tokens behind it, and behind each of its greedy tokens. (llama.cpp
        shows special tokens without a text: they are left out.)"""
        url = self.serve("--context", "128", *options, model=str(model))

        def choices(ids):
            (choice,) = self.asked(url, "/v1/completions", {"prompt": ids, "max_tokens": NEW_TOKENS, "logprobs": 20, "temperature": 0,
                                                            "ignore_eos": True})["choices"]
            likeliest = [{token: math.exp(value) for token, value in one.items()} for one in choice["logprobs"]["top_logprobs"]]
            return choice["logprobs"]["tokens"], likeliest
        return choices

    def their_choices(self, model):
        url = self.llama_cpp(model)

        def choices(ids):
            told = self.asked(url, "/completion", {"prompt": ids, "n_predict": NEW_TOKENS, "n_probs": 20, "temperature": 0,
                                                   "cache_prompt": False, "ignore_eos": True})["completion_probabilities"]
            likeliest = [{other["token"]: math.exp(other["logprob"]) for other in one["top_logprobs"] if other["token"]} for one in told]
            return [one["token"] for one in told], likeliest
        return choices, lambda text: self.asked(url, "/tokenize", {"content": text, "add_special": False})["tokens"]

    def distances(self, prompts, found, expected, bound):
        """|difference| of the probabilities of the four likeliest tokens behind each prompt, and behind the new ones as long as both
        chose the same. They do, unless two tokens are nearly as likely."""
        differences = []
        for ids in prompts:
            (ours, our_likeliest), (theirs, their_likeliest) = found(ids), expected(ids)
            for at, (one, other) in enumerate(zip(our_likeliest, their_likeliest, strict=True)):
                values = sorted(other.items(), key=lambda item: -item[1])[:4]
                differences += [abs(one.get(token, 0) - value) for token, value in values]
                if ours[at] != theirs[at]:
                    self.assertLessEqual(other[theirs[at]] - other.get(ours[at], 0), 2 * bound, (ids, at))
                    break
        return differences

    def assert_logits_agree(self, model):
        """Its weights as fp32 in llama.cpp are the reference: llama.cpp rounds activations to 8 bits where weights are in blocks."""
        wide = self.folder / "fp32.gguf"
        self.succeed("model", "quantize", model, "-t", "fp32", "-o", wide)
        expected, ids_of = self.their_choices(wide)
        prompts = [ids_of(text) for text in PROMPTS]
        for name, bound, options in (("fp32", OF_SUMS, ["--mode", "eager", "--dtype", "fp32"]), ("eager", OF_BF16, ["--mode", "eager"]),
                                     ("compiled", OF_BF16, ["--mode", "compiled"])):
            most = max(self.distances(prompts, self.our_choices(model, *options), expected, bound))
            self.assertLess(most, bound, f"{model}, {name}")
        theirs = self.distances(prompts, self.their_choices(model)[0], expected, 0.2)
        self.assertLess(sum(theirs) / len(theirs), OF_BYTES, f"{model} in llama.cpp, so its blocks mean the same there")

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
        self.assert_logits_agree(MODEL)
        shown = json.loads(self.succeed("model", "info", MODEL, "-o", "json"))
        self.assertEqual((shown["architecture"], shown["layers"], shown["tied_embeddings"]), ("llama", 30, True))
        formats = {(one["class"], one["format"]) for one in shown["tensors"]}
        self.assertIn(("mlp", "q4_1"), formats)
        self.assertIn(("norms", "fp32"), formats)
        self.assertEqual(sum(one["bytes"] for one in shown["tensors"]), shown["weight_bytes"])
        self.assertTrue(4 < shown["bits_per_weight"] < 7, shown["bits_per_weight"])

    def test_a_quantised_file_gives_the_same_logits_in_llama_cpp(self):
        sizes = []
        for kind in ("q8_0", "q4_0", "q4_k_m", "iq4_nl"):
            with self.subTest(kind):
                file = self.folder / f"{kind}.gguf"
                self.succeed("model", "quantize", CHECKPOINT, "-t", kind, "-o", file)
                sizes.append(file.stat().st_size)
                self.assert_logits_agree(file)
                self.assertEqual(self.tokenize(str(file), TEXTS), self.tokenize(CHECKPOINT, TEXTS))
        self.assertGreater(sizes[0], 1.4 * sizes[1], "8 bits and some 4")

    def test_bench_compares_eager_with_compiled(self):
        """Whose last bits of x differ: rounded to 8 bits, they chose other tokens."""
        shown = self.succeed("bench", MODEL, "-p", "16", "-n", "32", "-r", "2", "--save", "saved")
        self.assertNotIn("not comparable", shown)
        self.assertRegex(shown, r"(?m)^SmolLM2-135M-Instruct\.Q4_1\.gguf Q4_1, ")
        parities = [json.loads(file.read_text()) for file in (self.folder / "saved" / "cells").glob("*/parity.json")]
        self.assertEqual({one["passed"] for one in parities}, {True})
        for stats in (stats for one in parities for stats in one["logit_stats"].values()):
            self.assertLess(stats[0]["eps"], 0.002)
            self.assertGreater(len(stats[0]["steps"]["margins"][0]), 1)

    def test_a_real_files_chat_template_gives_the_prompts_of_llama_cpp(self):
        ours, theirs = self.serve("--context", "256", model=MODEL), self.llama_cpp(MODEL)
        user, answer = {"role": "user", "content": "Name a colour."}, {"role": "assistant", "content": "Blue."}
        system = {"role": "system", "content": "Be brief."}
        lengths = []
        for messages in ([user], [system, user], [system, user, answer, user]):
            prompt = self.asked(theirs, "/apply-template", {"messages": messages})["prompt"]
            self.assertIn(user["content"], prompt)
            expected = self.asked(theirs, "/tokenize", {"content": prompt, "add_special": False, "parse_special": True})["tokens"]
            said = self.asked(ours, "/v1/chat/completions", {"messages": messages, "max_tokens": 4, "temperature": 0})
            self.assertEqual(said["usage"]["prompt_tokens"], len(expected), prompt)
            same = self.asked(ours, "/v1/completions", {"prompt": expected, "max_tokens": 4, "temperature": 0})
            self.assertEqual(said["choices"][0]["message"]["content"], same["choices"][0]["text"], prompt)
            lengths.append(len(expected))
        self.assertEqual(len(set(lengths)), 3)

    def test_a_folder_in_fp8_is_a_model_too(self):
        self.succeed("model", "make", "tiny-llama", "-o", "tiny")
        made = self.succeed("model", "quantize", "tiny", "-t", "fp8", "-o", "tiny8")
        self.assertRegex(made, r"^tiny8: fp8, .* parameters in .* bits a weight\n$")
        shown = json.loads(self.succeed("model", "info", "tiny8", "-o", "json"))
        formats = {one["class"]: one["format"] for one in shown["tensors"]}
        self.assertRegex(formats["mlp"], "^fp8_g")
        self.assertRegex(formats["attention"], "^fp8_g")
        self.assertNotIn("fp8", formats["embeddings"] + formats["norms"])
        self.assertIn("tg4", self.succeed("bench", "tiny8", "-p", "16", "-n", "4", "-r", "2"))
        self.succeed("model", "quantize", "tiny8", "-t", "q8_0", "-o", "tiny8.gguf")
        self.assertEqual(self.assay("generate", "tiny8.gguf", "one two", "-n", "4").returncode, 0)
        self.assert_refused(["model", "quantize", "tiny", "-t", "fp8", "-o", "tiny8"], "tiny8")
        config = json.loads((self.folder / "tiny8" / "config.json").read_text())
        config["quantization_config"]["format"] = "naive-quantized"
        (self.folder / "tiny8" / "config.json").write_text(json.dumps(config))
        self.assert_refused(["model", "info", "tiny8"], "naive-quantized")

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
