"""The processes that engine_vs_torch times, one an arm: each answers one JSON request a line.

  {"do": "load", "folder": PATH, "dtype": NAME, "threads": N, "arm": "eager" | "compiled", "device"?: NAME}  > {}
  {"do": "decode", "prompt": N, "steps": N, "batch"?: N}
      > {"ms": of one step, "first_ms": of the one before them, "tokens": [...], "bytes"?, "note"?}
  {"do": "prefill", "tokens": N, "timed"?: N}   > {"ms": of the pass, "tokens": [ID], "note"?}
  {"do": "read", "threads": N, "device"?: NAME} > {"gb_s": of one pass}      (the engine's alone)

or {"error": MESSAGE}. All are greedy, and batch 1 unless said; `tokens` are the first row's; loading, the prompt of a decode and its first step are untimed.
A prefill with "timed" is one untimed pass and then the median of so many timed ones, back to back; without it, one pass.
"""

import contextlib
import json
import os
import selectors
import statistics
import subprocess
import time


class PeerFailed(Exception):
    """The peer answered an error, died or took too long; its later answers can't be had."""


def one_turn(request, once):
    """(ms, ...) as `once()` gives it; of a prefill with "timed" the median ms, and the last pass's rest."""
    if "timed" not in request:
        return once()
    once()
    passes = [once() for _ in range(request["timed"])]
    return (statistics.median(one[0] for one in passes), *passes[-1][1:])


class Peer:
    def __init__(self, command, log, **environment):
        self.log = open(log, "ab")
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
                       "PYTHONDONTWRITEBYTECODE": "1", **environment}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        env=environment)
        self.pending = b""

    def answers(self, request, timed):
        """True if this request is one for it."""
        return True

    def ask(self, request, timeout_s):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed("died") from None
        reply = json.loads(self.read_line(time.monotonic() + timeout_s))
        if "error" in reply:
            raise PeerFailed(reply["error"])
        return reply

    def read_line(self, deadline):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.pending:
                if not selector.select(max(0, deadline - time.monotonic())):
                    self.stop()
                    raise PeerFailed("timed out")
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                if not part:
                    raise PeerFailed(f"died with status {self.process.wait()}")
                self.pending += part
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def stop(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # a request that a dead peer never read
            self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()


def available_gib():
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 2**20
    return 0
