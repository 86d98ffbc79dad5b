"""`assay serve`: requests side by side, bad ones, and a server that ends as it should.

usage: serve_test.py ASSAY
"""

import concurrent.futures
import http.client
import json
import math
import pathlib
import re
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
        place = [] if "--port" in arguments else ["--port", "0"]
        # A model of this test alone leaves no packed weights with the user.
        place += ["--no-weight-cache"] if pathlib.Path(model).exists() else []
        self.process = subprocess.Popen([self.program, "serve", model, *place, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

        def end(process):
            process.kill()
            process.communicate()
        self.addCleanup(end, self.process)
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

    def test_probabilities_are_the_models(self):
        url = self.serve()
        hot = self.completion(url, [5, 6, 7], 8, temperature=5, seed=3, logprobs=20)["choices"][0]["logprobs"]
        self.assertEqual([len(hot[key]) for key in ("tokens", "token_logprobs", "top_logprobs")], [8, 8, 8])
        greedy = self.completion(url, [5, 6, 7], 8, logprobs=2)["choices"][0]
        for token, logprob, top in zip(*(greedy["logprobs"][key] for key in ("tokens", "token_logprobs", "top_logprobs"))):
            self.assertEqual(max(top.values()), logprob, "the likeliest token is taken")
            self.assertEqual(top[token], logprob)
            self.assertLess(sum(math.exp(one) for one in top.values()), 1 + 1e-6)
        # The same distribution follows the prompt whichever token is drawn of it.
        first = greedy["logprobs"]["top_logprobs"][0]
        for token, logprob in first.items():
            self.assertAlmostEqual(hot["top_logprobs"][0][token], logprob, delta=1e-5)
        status, body = self.ask(url, "/v1/completions", {"prompt": [5, 6, 7], "max_tokens": 8, "ignore_eos": True, "logprobs": 2,
                                                         "stream": True})
        self.assertEqual(status, 200)
        events = [json.loads(line[6:])["choices"][0] for line in body.splitlines() if line.startswith("data: {")]
        streamed = [one for event in events if event["logprobs"] for one in event["logprobs"]["token_logprobs"]]
        self.assertEqual(streamed, greedy["logprobs"]["token_logprobs"])

    def test_several_answers_to_a_request_are_those_of_the_seeds_behind_its_own(self):
        url = self.serve()
        hot = {"temperature": 1.5}
        several = self.completion(url, [[5, 6, 7], [9]], 10, n=2, seed=11, **hot)
        alone = [self.completion(url, prompt, 10, seed=seed, **hot)["choices"][0]["text"] for prompt in ([5, 6, 7], [9]) for seed in (11, 12)]
        self.assertEqual([one["text"] for one in several["choices"]], alone)
        self.assertEqual(several["usage"] | {"prompt_tokens_details": None},
                         {"prompt_tokens": 4, "completion_tokens": 40, "total_tokens": 44, "prompt_tokens_details": None})

    def test_a_shared_beginning_is_computed_once_where_that_is_asked_for(self):
        prompts = [list(range(10, 40)), list(range(10, 40)), list(range(10, 25)) + [99, 98]]
        answers = {}
        for options in ([], ["--prefix-reuse"]):
            url = self.serve("--slots", "1", *options)
            answers[bool(options)] = [self.completion(url, prompt, 12) for prompt in prompts]
            models = json.loads(self.ask(url, "/v1/models")[1])["data"]
            self.assertEqual(models[0]["prefix_reuse"], bool(options))
        texts = {reuses: [one["choices"][0]["text"] for one in all_] for reuses, all_ in answers.items()}
        self.assertEqual(texts[True], texts[False])
        cached = {reuses: [one["usage"]["prompt_tokens_details"]["cached_tokens"] for one in all_] for reuses, all_ in answers.items()}
        self.assertEqual(cached, {False: [0, 0, 0], True: [0, 29, 15]})
        self.assertEqual([one["timings"]["prompt_n"] for one in answers[True]], [30, 1, 2])

    def test_the_lines_of_the_readme_do_as_they_stand(self):
        lines = re.findall(r"^\$ (assay serve .*|curl .*)$", (pathlib.Path(__file__).parents[2] / "README.md").read_text(), re.M)
        self.assertGreater(len(lines), 2)
        url = self.serve(model=lines[0].split()[2])
        for line in lines[1:]:
            self.assertIn("http://127.0.0.1:8080/", line)
            done = subprocess.run(["bash", "-c", line.replace("http://127.0.0.1:8080", url) + " -sS --fail-with-body"],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, f"{line}: {done.stderr}{done.stdout}")
            self.assertIsInstance([json.loads(one) for one in done.stdout.splitlines()][-1], dict)

    def test_assay_measures_it(self):
        url = self.serve()
        shown = self.succeed("bench", "--server", url, "-p", "16", "-n", "8", "-r", "2")
        self.assertRegex(shown, r"openai +pp16 ")
        self.assertRegex(shown, r"openai +tg8 ")
        shown = self.succeed("bench", "--server", url, "--concurrency", "4", "--requests", "40", "-p", "16", "-n", "8", "-r", "2")
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

    def test_a_server_that_is_killed_leaves_a_broken_stream_and_its_place(self):
        url = self.serve("--mode", "eager", "--threads", "1", model="gpt2-25m")
        host = http.client.HTTPConnection(url.split("/")[2], timeout=60)
        host.request("POST", "/v1/completions", json.dumps({"prompt": [5], "max_tokens": 1000, "ignore_eos": True, "stream": True}))
        answer = host.getresponse()
        self.assertIn(b"data: ", answer.read(100))
        self.process.kill()
        self.process.wait()
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)) as broken:
            answer.read()
        self.assertNotIn(b"[DONE]", getattr(broken.exception, "partial", b""))
        self.serve("--port", url.rsplit(":", 1)[1])
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
