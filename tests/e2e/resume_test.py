"""Kills runs at random moments and resumes them until they are done.

Each trial starts a small study, kills it with SIGKILL after a random time (the whole run, or its
worker alone), resumes it, perhaps kills that too, and then checks the finished bundle against a run
that nobody disturbed: every committed row is still there byte for byte, no row is missing or there
twice, and `assay verify` finds nothing.

usage: resume_test.py ASSAY TRIALS [SEED] [torch]      torch: with PyTorch's worker; exit 77 where there is none
"""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program import made_by, rows_of

STUDY = """
name: resume
models: [{path: MODEL, dtype: fp32}]
arms:
  - {name: eager, backend: native, mode: eager, cache: [dynamic, static], threads: 1}
phases: [prefill, kv_decode]
scenarios: [{name: tiny, prompt_tokens: [5, 7]}]
token_lengths: [4]
repetitions: 8
warmup: 1
processes: 2
order: interleaved
timeout_s: 60
"""
TORCH_ARMS = """  - {name: eager, backend: torch, mode: eager, cache: static, device: cpu}
  - {name: graphs, backend: torch, mode: default, torch_backend: aot_eager, cache: static, device: cpu, explain: false}
"""
NATIVE_ARMS = "  - {name: eager, backend: native, mode: eager, cache: [dynamic, static], threads: 1}\n"


def write_checkpoint(folder: Path, seed: int) -> None:
    """A GPT-2 of a few thousand random weights."""
    width, vocabulary, positions = 16, 64, 32
    folder.mkdir(parents=True)
    config = {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": vocabulary,
        "n_embd": width, "n_layer": 1, "n_head": 2, "n_positions": positions,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "bos_token_id": 0,
        "eos_token_id": 0, "tie_word_embeddings": True, "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config))
    block = "transformer.h.0."
    shapes = {"transformer.wte.weight": [vocabulary, width],
              "transformer.wpe.weight": [positions, width],
              block + "attn.c_attn.weight": [width, 3 * width], block + "attn.c_attn.bias": [3 * width],
              block + "attn.c_proj.weight": [width, width], block + "attn.c_proj.bias": [width],
              block + "mlp.c_fc.weight": [width, 4 * width], block + "mlp.c_fc.bias": [4 * width],
              block + "mlp.c_proj.weight": [4 * width, width], block + "mlp.c_proj.bias": [width]}
    for norm in [block + "ln_1", block + "ln_2", "transformer.ln_f"]:
        shapes[norm + ".weight"] = shapes[norm + ".bias"] = [width]
    draw = random.Random(seed)
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(draw.gauss(0, 0.3) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def committed(bundle: Path) -> dict[str, bytes]:
    """The bytes that are safe by the commit records: the metrics files up to the last whole record."""
    try:
        lines = (bundle / "commits.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    ends: dict[str, int] = {}
    for line in lines:
        for name, added in json.loads(line)["files"].items():
            ends[name] = added["bytes"]
    return {name: (bundle / name).read_bytes()[:end] for name, end in ends.items()}


def complete(bundle: Path) -> bool:
    """True if the bundle is sealed; a run may be killed between that and its exit."""
    try:
        return json.loads((bundle / "manifest.json").read_text())["complete"]
    except FileNotFoundError:
        return False


def rows(bundle: Path) -> list[tuple[str, str]]:
    return sorted((row["cell_id"], row["repetition"]) for row in rows_of(bundle))


class Trials:
    def __init__(self, assay: str, scratch: Path, seed: int, torch: bool = False):
        self.assay, self.scratch, self.seed = assay, scratch, seed
        write_checkpoint(scratch / "model", seed)
        self.study = scratch / "study.yaml"
        study, processes = STUDY, 2
        if torch:  # takes seconds to start
            study, processes = STUDY.replace(NATIVE_ARMS, TORCH_ARMS).replace("processes: 2\n", "processes: 1\n"), 1
        assert torch == ("backend: torch" in study)
        self.study.write_text(study.replace("MODEL", str(scratch / "model")))
        start = time.monotonic()
        self.finish(scratch / "undisturbed", resume=False)
        self.whole_run_s = time.monotonic() - start
        self.expected = rows(scratch / "undisturbed")
        assert len(self.expected) == len(set(self.expected)) == 4 * (8 + processes), self.expected

    def command(self, bundle: Path, resume: bool) -> list[str]:
        return [self.assay, "run", str(self.study), "-o", str(bundle)] + ["--resume"] * resume

    def finish(self, bundle: Path, resume: bool) -> None:
        done = subprocess.run(self.command(bundle, resume), capture_output=True, text=True)
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"

    def verify(self, bundle: Path) -> None:
        verified = subprocess.run([self.assay, "verify", str(bundle)], capture_output=True, text=True)
        assert verified.returncode == 0, verified.stdout + verified.stderr

    def disturb(self, bundle: Path, resume: bool, draw: random.Random) -> bool:
        """Starts a run and kills it, or its workers alone; whether it came to its end anyway."""
        run = subprocess.Popen(self.command(bundle, resume), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
        try:
            run.wait(timeout=draw.uniform(0, 1.1 * self.whole_run_s))
        except subprocess.TimeoutExpired:
            if draw.random() < 0.3:
                for child in children(run.pid):
                    try:
                        os.kill(child, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            else:
                run.kill()
        stderr = run.communicate()[1]
        assert run.returncode in (0, -signal.SIGKILL), f"exit {run.returncode}: {stderr}"
        return run.returncode == 0

    def trial(self, number: int) -> int:
        """Disturbs a run until it is done, at most 4 times, and gives the number of disturbances."""
        draw = random.Random(f"{self.seed}/{number}")
        bundle = self.scratch / f"trial-{number}"
        kills, done, safe = 0, False, {}
        while not done and kills < 4:
            done = self.disturb(bundle, kills > 0, draw) or complete(bundle)
            before, safe = safe, committed(bundle)
            for name, content in before.items():
                assert safe[name].startswith(content), f"{name} lost committed rows"
            kills += 1
        if not done:
            self.finish(bundle, resume=True)
        assert complete(bundle)
        self.verify(bundle)
        for name, content in safe.items():
            assert (bundle / name).read_bytes().startswith(content), f"{name} lost committed rows"
        found = rows(bundle)
        assert found == self.expected, f"expected {len(self.expected)} rows, found {len(found)}"
        shutil.rmtree(bundle)
        return kills


def main() -> None:
    torch = sys.argv[-1] == "torch"
    if torch:
        sys.argv.pop()
        os.environ["ASSAY_TORCH_PYTHON"] = made_by("torch-env")[-1]
    assay, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
    with tempfile.TemporaryDirectory(prefix="assay-resume-") as folder:
        trials = Trials(assay, Path(folder), seed, torch)
        kills = 0
        for number in range(count):
            try:
                kills += trials.trial(number)
            except AssertionError as error:
                sys.exit(f"trial {number} of seed {seed}: {error}")
        print(f"{count} trials, {kills} runs disturbed, {len(trials.expected)} rows each time, "
              f"{trials.whole_run_s:.2f} s undisturbed, seed {seed}")


if __name__ == "__main__":
    main()
