"""llama.cpp as one arm of engine_vs_torch: an invocation of its llama-bench for each answer, on the same weights
(make_gguf.py). It loads the model and warms up in each, and tells no tokens."""

import json
import os
import statistics
import subprocess
import tempfile

from make_gguf import make_gguf
from peers import PeerFailed

ARM = "llama.cpp"
MICRO_BATCH = 512  # llama-bench's own; longer prompts are given as one


def command(program, model, gpu, request):
    """None where llama-bench has no such work: it decodes one row alone. Each has an untimed pass of llama-bench's own."""
    always = [program, "-m", model, "-ngl", "99", "-sm", "none", "-mg", gpu, "-fa", "1", "-r", str(request.get("timed", 1)), "-o", "json"]
    if request["do"] == "prefill":
        batch = str(max(request["tokens"], MICRO_BATCH))
        return always + ["-p", str(request["tokens"]), "-n", "0", "-b", batch, "-ub", batch]
    if request["do"] == "decode" and request.get("batch", 1) == 1:
        return always + ["-p", "0", "-n", str(request["steps"]), "-d", str(request["prompt"])]
    return None


class LlamaBench:
    """A Peer that runs llama-bench. The GGUF file is gone with stop()."""

    def __init__(self, program, checkpoint, log, gpu):
        self.program = program
        self.gpu = gpu
        self.log = log
        self.folder = tempfile.TemporaryDirectory(prefix="gguf-", dir=os.path.dirname(checkpoint))
        self.model = os.path.join(self.folder.name, "model.gguf")
        try:
            make_gguf(checkpoint, self.model)
        except (ValueError, OSError) as error:
            self.folder.cleanup()
            raise PeerFailed(str(error)) from None

    def answers(self, request, timed):
        """No warm-ups: its processes share nothing that one could warm."""
        return timed and command(self.program, self.model, self.gpu, request) is not None

    def ask(self, request, timeout_s):
        called = command(self.program, self.model, self.gpu, request)
        try:
            with open(self.log, "ab") as log:
                done = subprocess.run(called, stdout=subprocess.PIPE, stderr=log, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise PeerFailed("timed out") from None
        except OSError as error:
            raise PeerFailed(str(error)) from None
        if done.returncode != 0:
            raise PeerFailed(f"llama-bench: status {done.returncode}")
        (answer,) = json.loads(done.stdout)
        return {"ms": statistics.median(answer["samples_ns"]) / 1e6 / (answer["n_gen"] or 1), "tokens": None}

    def stop(self):
        self.folder.cleanup()
