"""llama.cpp's real server with a trained model, which scripts/server-env installs: started for an arm, under load, and
running already.

usage: llama_cpp_test.py ASSAY
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from http_test import HERE, listening, study
from load_test import requests_of
from program import ProgramTest, made_by, rows_of


class LlamaCpp(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.program = pathlib.Path(sys.argv[1]).resolve()
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)

    def command(self, *arguments):
        return [PYTHON, str(HERE / "llama_server.py"), MODEL, *map(str, arguments)]

    def run_study(self, name, text):
        (self.folder / f"{name}.yaml").write_text(json.dumps(text))
        return self.assay("run", f"{name}.yaml", "-o", name)

    def test_it_is_started_measured_and_ended(self):
        arm = {"name": "llama.cpp", "backend": "http", "start": self.command(1)}
        done = self.run_study("real", study([arm], phases=["prefill", "kv_decode", "e2e_kv"], repetitions=2, timeout_s=300))
        rows = rows_of(self.folder / "real")
        self.assertEqual({row["status"] for row in rows}, {"ok"}, done.stderr)
        self.assertEqual({row["quantization"] for row in rows}, {"Q4_1"})
        self.assertEqual({row["cached_tokens_delta"] for row in rows}, {"0"}, "nothing comes from its cache")
        self.assertEqual(len(rows), 6)
        for row in rows:
            own, client = float(row["server_ms"]), float(row["client_ms"])
            self.assertGreater(own, 0, row["phase"])
            self.assertEqual(float(row["latency_ms"]), client if row["phase"] == "e2e_kv" else own)
            if row["phase"] == "e2e_kv":
                self.assertLess(own, client, "the request's way and its tokenizer are the client's alone")
                self.assertLess(float(row["ttft_ms"]), client)
        (evidence, *_) = (self.folder / "real" / "cells").glob("*/evidence.json")
        actual = json.loads(evidence.read_text())["reported"]["actual"]
        self.assertEqual((actual["api"], actual["prompts"], actual["server"]["vocab_size"]), ("llama_server", "ids", 49152))
        self.succeed("verify", "real")
        running = subprocess.run(["pgrep", "-f", f"{' '.join(self.command(1))}$"], capture_output=True, text=True).stdout
        self.assertEqual(running, "", "every server has ended")

    def under_load(self, name, **load):
        """The requests of a study of this load."""
        done = self.run_study(name, {
            "name": name, "models": [{"path": "served", "name": "served"}], "repetitions": 1, "timeout_s": 300,
            "arms": [{"name": "llama.cpp", "backend": "http", "start": self.command(1, 2)}],
            "load": {"requests": 8, "prompt_tokens": 16, "new_tokens": 8} | load})
        requests = requests_of(self.folder / name)
        self.assertEqual({one["status"] for one in requests}, {"ok"}, done.stderr)
        return requests

    def test_it_is_measured_under_load(self):
        requests = self.under_load("load", concurrency=[1, 2])
        self.assertEqual({(one["tokens"], one["cached_tokens"]) for one in requests}, {("8", "0")})
        self.assertEqual(len(requests), 16)
        self.succeed("verify", "load")

    def test_its_cache_helps_the_second_turn_of_a_conversation_alone(self):
        turns = [(int(one["number"]) % 2, int(one["cached_tokens"]) > 16, int(one["prompt_tokens"]) > 32)
                 for one in self.under_load("talk", concurrency=1, turns=2)]
        self.assertEqual(sorted(turns), [(0, False, False)] * 4 + [(1, True, True)] * 4)

    def test_a_new_user_measures_one_that_runs(self):
        server, url = listening([HERE.parents[1] / "scripts" / "llama-server", MODEL, "1"])
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stdout.close()))
        shown = self.succeed("bench", "--server", url, "-p", "16", "-n", "4", "-r", "5")
        self.assertRegex(shown, r"(?m)^SmolLM2-135M-Instruct\.Q4_1\.gguf Q4_1, ")
        self.assertRegex(shown, r"llama_server +pp16 ")
        chat = self.succeed("bench", "--server", url, "--api", "openai", "--chat", "-p", "64", "-n", "0", "-r", "5")
        self.assertRegex(chat, r"openai +pp64 ")
        self.assertIn("Q4_1", self.succeed("probe", "--server", f"{url}/v1"), "as OpenAI's clients are told it")
        self.assert_refused(["bench", "--server", url, "--model", "other"], "SmolLM2-135M-Instruct.Q4_1.gguf", "--model")
        self.assert_refused(["bench", "--server", url.replace("http:", "https:")], "TLS", "http://")


if __name__ == "__main__":
    PYTHON, MODEL = made_by("server-env")[-2:]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
