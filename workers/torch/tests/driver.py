"""Drives a worker process as the harness does: descriptors 3 and 4, one request at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[1] / "worker.py"


class WorkerDied(Exception):
    """The worker's exit status, or the negative signal, is the argument."""


class Worker:
    def __init__(self, environment: dict[str, str] | None = None, log: Any = subprocess.DEVNULL) -> None:
        request_read, self._requests = os.pipe()
        reply_read, reply_write = os.pipe()
        self.replies = os.fdopen(reply_read, "rb")

        def connect() -> None:
            # Duplicated to high numbers first: the pipes' own may be 3 or 4.
            high_request, high_reply = os.dup2(request_read, 100), os.dup2(reply_write, 101)
            os.dup2(high_request, 3)
            os.dup2(high_reply, 4)
            os.closerange(5, 256)

        self.process = subprocess.Popen([sys.executable, "-B", str(PROGRAM)], preexec_fn=connect, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                        start_new_session=True)
        os.close(request_read)
        os.close(reply_write)
        self.last_id = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait()
        self.replies.close()
        self.close_requests()

    def send(self, line: bytes) -> None:
        """May be refused halfway by a worker that has gone."""
        try:
            os.write(self._requests, line)
        except BrokenPipeError:
            pass

    def close_requests(self) -> None:
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1

    def read(self) -> dict[str, Any]:
        line = self.replies.readline()
        if not line:
            raise WorkerDied(self.process.wait())
        return json.loads(line)

    def ask(self, kind: str, **members: Any) -> dict[str, Any]:
        """The reply; of `measure` {"type": "done", "all": samples}, or the error that ended it."""
        self.last_id += 1
        self.send(json.dumps({"id": self.last_id, "type": kind, **members}).encode() + b"\n")
        samples = []
        while (reply := self.read())["type"] == "sample":
            assert reply["id"] == self.last_id
            samples.append(reply)
        assert reply["id"] == self.last_id, reply
        return {**reply, "all": samples} if samples else reply

    def hello(self) -> dict[str, Any]:
        return self.ask("hello", protocol_min=1, protocol_max=1, harness="test")

    def load(self, model: str = "noop", **members: Any) -> dict[str, Any]:
        given = {"dtype": "fp32", "mode": "eager", "cache": "dynamic", "dynamic": "", "threads": 1,
                 "want_model_hash": False, "options": {}, **members}
        return self.ask("load", model=model, **given)
