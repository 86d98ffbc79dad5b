"""The torch worker, but each arm's process is killed once, at a random point of its handling one kind of message.

Put by torch_loss_test.py in the worker's place in a copy of its folder. An arm says its kind by the number of its
`threads`: the kind's place in ASSAY_LOSS_KINDS, from 1 on. No reply goes out once death is certain. ASSAY_LOSS_NOOP, if not
empty, puts the worker's empty model in the model's place.
"""

import os
import random
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from assay_torch import serve  # noqa: E402

KINDS = os.environ["ASSAY_LOSS_KINDS"].split()
MARKS = os.environ["ASSAY_LOSS_MARKS"]
NOOP = bool(os.environ["ASSAY_LOSS_NOOP"])
NTH = {"measure": 7}  # of the process's messages of that kind the one that is its last
MOST_SECONDS = {"load": 1.0}  # of others 0.05


class DoomedLoop(serve.Loop):
    kind = ""
    seen = 0
    doomed = False

    def _serve(self, request_id, message):
        if message.get("type") == "load":
            self.kind = KINDS[message["threads"] - 1]
            message["options"] = message.get("options", {}) | ({"noop": True} if NOOP else {})
        if message.get("type") == self.kind:
            self.seen += 1
            if self.seen == NTH.get(self.kind, 1) and first_time(self.kind):
                self.doomed = True
                threading.Timer(random.uniform(0, MOST_SECONDS.get(self.kind, 0.05)), die).start()
        super()._serve(request_id, message)

    def _reply(self, request_id, kind, body):
        while self.doomed:
            signal.pause()
        super()._reply(request_id, kind, body)


def first_time(kind):
    try:
        os.close(os.open(os.path.join(MARKS, kind), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def die():
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve.Loop = DoomedLoop
    os._exit(serve.serve_descriptors(request_descriptor=3, reply_descriptor=4))
