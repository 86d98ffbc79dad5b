"""`assay serve`: requests side by side, bad ones, and a server that ends as it should.

usage: serve_test.py ASSAY
"""

import concurrent.futures
import http.client
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from program import ProgramTest


class ServeTest(ProgramTest):
    def setUp(self):
        self.program = pathlib.Path(sys.argv[1]).resolve()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def serve(self, *arguments, model="tiny-llama"):
        self.process = subprocess.Popen([self.program, "serve", model, "--port", "0", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

        def end():
            self.process.kill()
            self.process.communicate()
        self.addCleanup(end)
        line = self.process.stdout.readline()
        self.assertIn(" at http://", line, line or self.process.stderr.read())
        return line.split()[-1]

    def ask(self, url, path, body=None, headers=()):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(url + path, data, dict(headers))
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def completion(self, url, prompt, tokens, **options):
        status, body = self.ask(url, "/v1/completions", {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True} | options)
        self.assertEqual(status, 200, body)
        return json.loads(body)


class Serve(ServeTest):
    def test_tokens_are_the_engines_own_alone_and_beside_others(self):
        url = self.serve("--slots", "3", "--chunk", "5")
        prompts = [[7 + i] * (3 + 4 * i) for i in range(8)]
        alone = [self.completion(url, prompt, 12)["choices"][0]["text"] for prompt in prompts]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            beside = list(pool.map(lambda prompt: self.completion(url, prompt, 12)["choices"][0]["text"], prompts))
        self.assertEqual(alone, beside)
        tokenized = json.loads(self.ask(url, "/tokenize", {"content": "one two three", "add_special": True})[1])["tokens"]
        text = self.succeed("generate", "tiny-llama", "one two three", "-n", "12", "--ignore-eos")
        self.assertEqual(self.completion(url, tokenized, 12)["choices"][0]["text"], text.rstrip("\n"))

    def test_a_seed_gives_its_text_whoever_else_is_served(self):
        url = self.serve()
        hot = {"temperature": 1.5, "seed": 11}
        alone = self.completion(url, [5, 6, 7], 10, **hot)["choices"][0]["text"]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            texts = list(pool.map(lambda i: self.completion(url, [5, 6, 7] if i == 2 else [9 + i], 10, **hot)["choices"][0]["text"],
                                  range(4)))
        self.assertEqual(texts[2], alone)
        self.assertNotEqual(self.completion(url, [5, 6, 7], 10, temperature=1.5, seed=12)["choices"][0]["text"], alone)

    def test_assay_measures_it(self):
        url = self.serve()
        shown = self.succeed("bench", "--server", url, "--api", "openai", "-p", "16", "-n", "8", "-r", "2")
        self.assertRegex(shown, r"openai +pp16 ")
        self.assertRegex(shown, r"openai +tg8 ")
        shown = self.succeed("bench", "--server", url, "--api", "openai", "--concurrency", "4", "--requests", "40", "-p", "16", "-n", "8",
                             "-r", "2")
        self.assertRegex(shown, r"Successful requests +\d\d")
        metrics = self.ask(url, "/metrics")[1]
        self.assertIn('assay_requests_total{outcome="failed"} 0', metrics)

    def test_bad_requests_have_an_error_and_the_server_stays(self):
        url = self.serve()
        for path, body, status in (("/v1/completions", b"{", 400), ("/v1/completions", b"\xff\xfe", 400),
                                   ("/v1/completions", b"[" * 100_000, 400), ("/v1/completions", {"prompt": [1e300]}, 400),
                                   ("/v1/completions", {"prompt": "x", "max_tokens": 10**9}, 400),
                                   ("/api/generate", {"model": "other", "prompt": "x"}, 404), ("/nowhere", None, 404)):
            found, answer = self.ask(url, path, body)
            self.assertEqual(found, status, answer)
            self.assertIn("error", json.loads(answer))
        self.assertEqual(self.ask(url, "/health")[0], 200)
        self.assertEqual(self.ask(url, "/health", headers={"Host": "evil.example"})[0], 403)

    def test_a_client_that_goes_frees_its_slot(self):
        url = self.serve("--slots", "1")
        host = http.client.HTTPConnection(url.split("/")[2])
        host.request("POST", "/v1/completions", json.dumps({"prompt": [5], "max_tokens": 100, "ignore_eos": True, "stream": True}))
        host.sock.close()
        self.assertEqual(self.completion(url, [6], 2)["usage"]["completion_tokens"], 2)

    def test_a_signal_drains_and_a_second_one_ends(self):
        url = self.serve("--slots", "1")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.completion, url, [5], 100)
            while "assay_requests_running 1" not in self.ask(url, "/metrics")[1] and not answer.done():
                time.sleep(0.001)
            self.process.send_signal(signal.SIGTERM)
            self.assertEqual(answer.result()["usage"]["completion_tokens"], 100)
        self.assertEqual(self.process.wait(timeout=60), 0)

    def test_a_key_comes_from_a_file_or_a_variable(self):
        (self.folder / "key").write_text("secret\n")
        url = self.serve("--api-key-file", str(self.folder / "key"))
        self.assertEqual(self.ask(url, "/v1/models")[0], 401)
        self.assertEqual(self.ask(url, "/v1/models", headers={"Authorization": "Bearer secret"})[0], 200)
        self.assertEqual(self.ask(url, "/health")[0], 200)

    def test_what_cant_be_served_is_refused_in_one_line(self):
        self.assert_refused(["serve", "nowhere"], "nowhere")
        self.assert_refused(["serve", "tiny-llama", "--port", "0", "--address", "here"], "expected an IP address")
        self.assert_refused(["serve", "tiny-llama", "--port", "0", "--context", "100000"], "--context: expected at most")
        self.assert_refused(["serve", "tiny-llama", "--port", "0", "--api-key-env", "NO_SUCH"], "NO_SUCH")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
