"""`assay serve` under load generators of others, unchanged, which scripts/load-clients-env makes.

usage: serve_load_clients_test.py ASSAY
"""

import json
import subprocess
import sys
import unittest

from program import made_by, rows_of
from serve_test import ServeTest


class LoadClients(ServeTest):
    def serve_made_model(self):
        """A tiny Llama whose tokenizer the load generator reads too: its folder and the server's address."""
        self.succeed("model", "make", "tiny-llama", "-o", "model")
        return self.folder / "model", self.serve("--context", "200", model=str(self.folder / "model"))

    def run_client(self, *arguments):
        done = subprocess.run([PYTHON, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}")

    def expect_counted(self, url, requests, prompt_tokens, new_tokens):
        """The server counts what the client does."""
        metrics = self.ask(url, "/metrics")[1]
        for line in (f'assay_requests_total{{outcome="ok"}} {requests}', 'assay_requests_total{outcome="failed"} 0',
                     f"assay_prompt_tokens_total {prompt_tokens}", f"assay_new_tokens_total {new_tokens}"):
            self.assertIn(line + "\n", metrics)

    def test_guidellm(self):
        model, url = self.serve_made_model()
        self.run_client("-m", "guidellm", "run", "--backend", f"kind=openai_http,target={url},request_format=/v1/completions",
                        "--profile", "kind=concurrent,streams=2", "--constraint", "kind=max_requests,count=12",
                        "--tokenizer", f"kind=huggingface_auto,model={model}", "--data", "kind=synthetic_text,prompt_tokens=16,output_tokens=8",
                        "--output", "kind=json,path=guidellm.json", "--disable-console")
        (benchmark,) = json.loads((self.folder / "guidellm.json").read_text())["benchmarks"]
        self.assertEqual({kind: len(requests or []) for kind, requests in benchmark["requests"].items()},
                         {"successful": 12, "errored": 0, "incomplete": 0, "total": 0})
        self.expect_counted(url, 12, 12 * 16, 12 * 8)
        self.succeed("import", "guidellm.json", "-o", "imported")
        self.assertIn("16 prompt tokens, 36 rows", self.succeed("analyze", "imported"), "three phases of 12 requests")

    def test_vllms_benchmark(self):
        model, url = self.serve_made_model()
        self.run_client("-m", "vllm.entrypoints.cli.main", "bench", "serve", "--base-url", url, "--model", model, "--served-model-name", "model",
                        "--dataset-name", "random", "--random-input-len", "16", "--random-output-len", "8", "--random-range-ratio", "0",
                        "--num-prompts", "12", "--max-concurrency", "2", "--ignore-eos", "--disable-tqdm", "--save-result", "--save-detailed",
                        "--result-filename", "vllm.json")
        found = json.loads((self.folder / "vllm.json").read_text())
        self.assertEqual([found[key] for key in ("completed", "failed", "total_input_tokens", "total_output_tokens")], [12, 0, 12 * 16, 12 * 8])
        self.assertEqual(found["output_lens"], [8] * 12)
        self.expect_counted(url, 12, 12 * 16, 12 * 8)
        self.succeed("import", "vllm.json", "-o", "imported")
        self.assertEqual(len(rows_of(self.folder / "imported", phase="prefill", prompt_tokens="16")), 12)


if __name__ == "__main__":
    PYTHON = made_by("load-clients-env")[-1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
