"""bf16 and fp16 against fp32 on a real trained model: is the engine as near to the fp32 run as transformers is?

half_precision.py BUILD_FOLDER CHECKPOINT [--device cuda] [--tokens 256] [--dtypes bf16,fp16]

Every arm is fed with the same real text and gives logits for each of its tokens, by two paths: prompts (a prompt of its
own for every prefix of the text) and decode (the text fed token by token over a cache). An arm's error is taken against
transformers in fp32 with the same weights: KL, the mean divergence of the fp32 model's distribution from the arm's; NLL,
the mean absolute error of a token's negative log-likelihood; mean NLL, the error of the text's, in which the tokens' errors
cancel as chance has it: it is printed, not judged. Exit status 1 if the engine's KL or NLL is larger than transformers'
in the same type and path, the smaller of its two attentions.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
ATTENTIONS = ["sdpa", "eager"]
ENGINE_ARMS = [("eager", "dynamic"), ("eager", "static"), ("compiled", "dynamic"), ("compiled", "static")]
TEXT = """
The harbour at Saltwick had been silting up for longer than anyone could remember, and by the spring of that year only the
smallest boats could reach the quay at low water. Martha Ferris, who kept the ledger for the fishing company, noticed it
first in the numbers: the catches were as good as ever, but they were landed later each week, because the crews had to wait
outside the bar for the tide to lift them over. She wrote a letter to the county engineer, and when no answer came she wrote
another. In the end she walked the nine miles to the county town, sat down in his office, and refused to leave until he had
looked at her figures. He was a tired man with ink on his cuffs, and he read them slowly. Then he unrolled a chart on the
table and showed her where the river had changed its course after the great flood. The sand, he said, was only going where
the water told it to go. If they built a low wall of stone from the point to the old wreck, the current would turn again and
carry the sand out to sea by itself. It would cost less than a dredger, and it would not have to be done twice. Martha asked
him how certain he was. He thought about it for a while. Nine parts in ten, he said, and the tenth part was the weather. She
folded up her papers, thanked him, and walked home in the rain to tell the others that they would have to learn to build.
"""


def forward(model, ids):
    """Logits behind every token of the text, by one run over it all."""
    return model(ids[None, :-1]).logits[0].float()


def fed(model, ids):
    """The same, a token a run."""
    cache = DynamicCache(config=model.config)
    steps = [model(ids[None, i:i + 1], past_key_values=cache, use_cache=True).logits[0] for i in range(len(ids) - 1)]
    return torch.cat(steps).float()


def load(folder, dtype, attention, device):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=attention)
    return model.eval().to(device)


class Engine:
    def __init__(self, build, folder, ids, device, scratch):
        self.folder, self.ids, self.device, self.scratch = folder, ids, device, Path(scratch)
        self.process = subprocess.Popen([build / "assay_engine_run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def logits(self, dtype, mode, cache, prompts):
        """Behind every token of the text, on the device."""
        path = self.scratch / "logits.bin"
        ids = self.ids.tolist()
        steps = len(ids) - 1
        request = {"folder": str(self.folder), "cache": cache, "dtype": dtype, "steps": steps, "threads": os.cpu_count(),
                   "logits": str(path), "prefixes": prompts, "prompts": [ids[:-1] if prompts else ids[:1]]}
        if not prompts:
            request["feed"] = [ids[1:]]
        if mode == "compiled":
            request["kernels"] = str(self.scratch / "kernels")
        if self.device == "cuda":
            request["gpu"] = 0
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        assert "error" not in reply, reply["error"]
        assert reply["fallbacks"] == 0 and reply["compiled"] == (steps if mode == "compiled" else 0), reply
        return torch.from_numpy(np.fromfile(path, dtype=np.float32).reshape(steps, -1)).to(self.device)


def errors(logits, expected, tokens):
    """KL and NLL a token, and of the text's mean."""
    p, q = torch.log_softmax(expected.double(), -1), torch.log_softmax(logits.double(), -1)
    chosen = (q - p).gather(1, tokens[:, None])[:, 0]
    return (p.exp() * (p - q)).sum(-1).mean().item(), chosen.abs().mean().item(), abs(chosen.mean().item())


def measure(arguments, engine, ids):
    """Rows of (type, path, arm, errors), theirs and ours."""
    folder, device = arguments.checkpoint, arguments.device
    reference = load(folder, torch.float32, "sdpa", device)
    expected, rows = forward(reference, ids), []
    assert expected.isfinite().all() and errors(fed(reference, ids), expected, ids[1:])[0] < 1e-7, "no reference"
    del reference
    for name in arguments.dtypes:
        for attention in ATTENTIONS:
            model = load(folder, DTYPES[name], attention, device)
            for path, logits in [("prompts", forward(model, ids)), ("decode", fed(model, ids))]:
                rows.append((name, path, f"transformers {attention}", errors(logits, expected, ids[1:])))
        for mode, cache in ENGINE_ARMS:
            for path in ["prompts", "decode"]:
                logits = engine.logits(name, mode, cache, path == "prompts")
                rows.append((name, path, f"assay {mode} {cache}", errors(logits, expected, ids[1:])))
    return rows


def worse(rows):
    """The engine's rows whose KL or NLL is larger than both of transformers'."""
    found = []
    for name, path, arm, (kl, nll, _) in rows:
        theirs = [error for n, p, a, error in rows if (n, p) == (name, path) and a.startswith("transformers")]
        if arm.startswith("assay") and (kl > min(e[0] for e in theirs) or nll > min(e[1] for e in theirs)):
            found.append((name, path, arm))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=list(DTYPES))
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    ids = torch.tensor(Tokenizer.from_file(str(arguments.checkpoint / "tokenizer.json")).encode(TEXT.replace("\n", " ").strip()).ids)
    assert len(ids) > arguments.tokens, f"the text has {len(ids)} tokens"
    ids = ids[:arguments.tokens + 1].to(arguments.device)
    with tempfile.TemporaryDirectory() as scratch, torch.inference_mode():
        rows = measure(arguments, Engine(arguments.build, arguments.checkpoint, ids, arguments.device, scratch), ids)
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else "the processor"
    print(f"{arguments.tokens} tokens of text on {where}, against transformers in fp32")
    print(f"{'type':5} {'path':8} {'arm':25} {'KL':>10} {'NLL':>10} {'mean NLL':>10}")
    failed = worse(rows)
    for name, path, arm, found in rows:
        bad = "  larger than transformers'" if (name, path, arm) in failed else ""
        print(f"{name:5} {path:8} {arm:25} " + " ".join(f"{value:10.2e}" for value in found) + bad)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
