"""`assay serve` with the clients that people have, and with a trained model, which scripts/server-env and
scripts/trained-checkpoint make.

usage: serve_clients_test.py ASSAY
"""

import json
import subprocess
import sys
import unittest

from program import made_by
from serve_test import ServeTest

CLIENTS = '''
import json, sys
import ollama, openai
url, model = sys.argv[1:]
client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
told = {"models": [one.id for one in client.models.list()]}
whole = client.completions.create(model=model, prompt="one two three", max_tokens=6)
told["completion"] = [whole.choices[0].text, whole.choices[0].finish_reason, whole.usage.prompt_tokens, whole.usage.completion_tokens]
pieces = list(client.completions.create(model=model, prompt="one two three", max_tokens=6, stream=True,
                                        stream_options={"include_usage": True}))
told["streamed"] = ["".join(one.choices[0].text for one in pieces if one.choices), pieces[-1].usage.completion_tokens]
told_of = client.completions.create(model=model, prompt=["one two three", [5, 6]], max_tokens=6, n=2, logprobs=2)
told["several"] = [[one.index, one.text, len(one.logprobs.tokens), max(map(len, one.logprobs.top_logprobs))] for one in told_of.choices]
pieces = list(client.completions.create(model=model, prompt="one two three", max_tokens=6, n=2, logprobs=2, stream=True))
told["both"] = ["".join(one.choices[0].text for one in pieces if one.choices[0].index == index) for index in (0, 1)]
told["tokens"] = [token for one in pieces if one.choices[0].index == 1 and one.choices[0].logprobs for token in one.choices[0].logprobs.tokens]
try:
    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
except openai.BadRequestError as error:
    told["chat"] = error.message
try:
    client.completions.create(model="other", prompt="x")
except openai.NotFoundError as error:
    told["other"] = error.message
host = ollama.Client(host=url)
told["list"] = [one.model for one in host.list().models]
told["running"] = [one.model for one in host.ps().models]
told["context"] = host.show(model).modelinfo["llama.context_length"]
answer = host.generate(model=model, prompt="one two three", raw=True, options={"num_predict": 6})
told["generate"] = [answer.response, answer.done_reason, answer.prompt_eval_count, answer.eval_count]
told["lines"] = "".join(one.response for one in host.generate(model=model, prompt="one two three", raw=True, stream=True,
                                                              options={"num_predict": 6}))
print(json.dumps(told))
'''


class Clients(ServeTest):
    def test_the_clients_of_openai_and_ollama_are_served(self):
        url = self.serve()
        done = subprocess.run([PYTHON, "-c", CLIENTS, url, "tiny-llama"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["models"], told["list"], told["running"]), (["tiny-llama"],) * 3)
        text, finish, prompt_tokens, new_tokens = told["completion"]
        self.assertEqual((finish, new_tokens), ("length", 6))
        self.assertEqual(told["streamed"], [text, 6])
        self.assertEqual([one[0] for one in told["several"]], [0, 1, 2, 3])
        self.assertEqual([one[1] for one in told["several"][:2]], [text, text])
        self.assertTrue(all(tokens == 6 and top in (2, 3) for _, _, tokens, top in told["several"]), told["several"])
        self.assertEqual(told["both"], [text, text])
        self.assertEqual(len(told["tokens"]), 6)
        self.assertEqual(told["generate"], [text, "length", prompt_tokens, 6])
        self.assertEqual(told["lines"], text)
        self.assertIn("expected a model with a chat template", told["chat"])
        self.assertIn("expected \"tiny-llama\"", told["other"])
        self.assertGreater(told["context"], 0)

    def test_a_trained_model_answers_by_its_template(self):
        url = self.serve("--context", "256", model=CHECKPOINT)
        messages = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
        status, body = self.ask(url, "/v1/chat/completions", {"messages": messages, "max_tokens": 16})
        self.assertEqual(status, 200, body)
        self.assertIn("Paris", json.loads(body)["choices"][0]["message"]["content"])
        (model,) = json.loads(self.ask(url, "/v1/models")[1])["data"]
        status, body = self.ask(url, "/api/chat", {"model": model["id"], "messages": messages, "options": {"num_predict": 16}})
        lines = [json.loads(line) for line in body.splitlines()]
        self.assertIn("Paris", "".join(one["message"]["content"] for one in lines))
        self.assertEqual([one["done"] for one in lines], [False] * (len(lines) - 1) + [True])
        shown = self.succeed("bench", "--server", url, "--api", "ollama", "-p", "16", "-n", "4", "-r", "2")
        self.assertRegex(shown, r"ollama +pp16 ")


if __name__ == "__main__":
    PYTHON = made_by("server-env")[-2]
    CHECKPOINT = made_by("trained-checkpoint")[-1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
