"""PyTorch as one arm of engine_vs_torch: a transformers model that answers one JSON request a line on stdin.

The protocol is that of peers.py. torch gets what serves it best: inference mode, logits of the last position alone,
the greedy choice inside the compiled function, StaticCache where it is compiled, warm-ups outside what is timed.
"""

import json
import os
import sys
import time

import torch
from peers import one_turn
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Arm:
    def __init__(self, request):
        torch.set_num_threads(request["threads"])
        self.compiled = request["arm"] == "compiled"
        self.device = torch.device(request.get("device", "cpu"))
        self.model = AutoModelForCausalLM.from_pretrained(request["folder"], dtype=DTYPES[request["dtype"]]).eval()
        self.model.to(self.device)
        on_gpu = self.device.type == "cuda"
        self.wait = torch.cuda.synchronize if on_gpu else lambda: None
        self.run = self.greedy
        if self.compiled and on_gpu:
            replayed = torch.compile(self.greedy, dynamic=False, mode="reduce-overhead")

            def run(ids, cache):
                torch.compiler.cudagraph_mark_step_begin()
                return replayed(ids, cache).clone()  # the next replay writes over what this one gave
            self.run = run
        elif self.compiled:
            self.run = torch.compile(self.greedy, dynamic=False)
        self.cache_kind = {}  # by request: for eager the faster of the two, once it is known
        self.caches = {}

    def greedy(self, ids, cache):
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits[:, -1:].argmax(-1)

    def cache(self, capacity, batch, kind):
        """A static cache is allocated once a shape, as a server would; a dynamic one starts anew each time."""
        if kind == "dynamic":
            return DynamicCache(config=self.model.config)
        if (capacity, batch) not in self.caches:
            # Caches of one shape at a time: a GPU's memory is not the host's.
            self.caches = {(capacity, batch): StaticCache(config=self.model.config, max_cache_len=capacity)}
        cache = self.caches[capacity, batch]
        cache.reset()
        return cache

    def decode_once(self, prompt, steps, kind, batch):
        cache = self.cache(prompt + steps + 1, batch, kind)
        token = self.greedy(self.prompt(prompt, batch), cache)
        self.wait()
        start = time.perf_counter_ns()
        token = self.run(token, cache)  # the first step after a prefill is nobody's steady state
        self.wait()
        first = time.perf_counter_ns() - start
        tokens = [token]
        start = time.perf_counter_ns()
        for _ in range(steps):
            token = self.run(token, cache)
            tokens.append(token)
        self.wait()
        ns = time.perf_counter_ns() - start
        return ns / 1e6 / steps, [int(token[0]) for token in tokens], first / 1e6

    def prompt(self, tokens, batch=1):
        return torch.tensor([[100 + 7 * i for i in range(tokens)]] * batch, device=self.device)

    def prefill_once(self, tokens, kind):
        cache = self.cache(tokens, 1, kind)
        ids = self.prompt(tokens)
        self.wait()
        start = time.perf_counter_ns()
        token = self.run(ids, cache)
        self.wait()
        ns = time.perf_counter_ns() - start
        return ns / 1e6, [int(token)], None

    def measure(self, request, once):
        """For eager the first calls decide between the caches, by the better of two each."""
        key = json.dumps(request)
        if key not in self.cache_kind and not self.compiled:
            best = {kind: min(once(kind)[0] for _ in range(2)) for kind in ("dynamic", "static")}
            self.cache_kind[key] = min(best, key=best.get)
        kind = self.cache_kind.setdefault(key, "static")
        ms, tokens, first_ms = one_turn(request, lambda: once(kind))
        reply = {"ms": ms, "tokens": tokens, "note": f"{kind} cache"}
        return reply if first_ms is None else {**reply, "first_ms": first_ms}


def answer(arm, request):
    if request["do"] == "decode":
        return arm.measure(request, lambda kind: arm.decode_once(request["prompt"], request["steps"], kind,
                                                                 request.get("batch", 1)))
    if request["do"] == "prefill":
        return arm.measure(request, lambda kind: arm.prefill_once(request["tokens"], kind))
    raise ValueError(f"do: expected load, decode or prefill, found {request['do']}")


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print to stdout
    arm = None
    with torch.inference_mode():
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if request["do"] == "load":
                    arm = Arm(request)
                    reply = {"version": f"torch {torch.__version__}"}
                else:
                    reply = answer(arm, request)
            except Exception as error:  # a peer's failure is a cell of the table
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
