"""Every mode and cache of the torch worker on a CUDA device, each in a process of its own; prints a row as each ends.

  python3 workers/torch/tests/cuda_check.py [--models tiny,25m] [--modes eager,default,...] [--jobs 4] [--seconds N]
                                            [--out FOLDER]

Needs torch and transformers, nothing else. A cell that crashes or is refused is a row; the check fails (status 1) if a
cell that must work doesn't, if a cell's tokens aren't eager's, if evidence is missing, or if a worker hangs. The
cheapest cells come first. After `--seconds` no cell is started any more, and those left are named: with that option
the status is 0 if some cells ran and none of them failed, since not to run the others was asked for.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Callable, Iterator

sys.path.insert(0, str(Path(__file__).parent))

from driver import Worker, WorkerDied  # noqa: E402

MODELS = {
    "tiny": {"model_type": "llama", "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "max_position_embeddings": 512, "bos_token_id": 0, "eos_token_id": 0},
    "25m": {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 384, "n_layer": 4, "n_head": 6, "n_positions": 1024,
            "bos_token_id": 50256, "eos_token_id": 50256},
}
# mode, dynamic, further options; the cheapest first
ARMS = [("eager", "", {}), ("manual-cudagraph", "", {}), ("default", "false", {"torch_backend": "aot_eager"}),
        ("default", "false", {"compile_phases": "prefill"}), ("default", "true", {}), ("default", "false", {}),
        ("reduce-overhead", "false", {}), ("reduce-overhead", "false", {"mark_step_begin": True}),
        ("reduce-overhead", "false", {"cudagraph_trees": False}),
        ("max-autotune-no-cudagraphs", "false", {}), ("max-autotune", "false", {})]
Cell = tuple[str, tuple[str, str, dict[str, Any]], str]  # model, arm, cache
MUST_WORK = {"eager", "manual-cudagraph"}
PHASES = (("prefill", 0), ("kv_decode", 24), ("e2e_kv", 24))
LENGTH = 16
REPETITIONS = 5


def name_of(arm: tuple[str, str, dict[str, Any]], cache: str) -> str:
    mode, dynamic, options = arm
    extra = [f"dynamic={dynamic}"] * bool(dynamic) + [f"{key}={value}" for key, value in options.items()]
    return " ".join([mode, cache, *extra])


def expect(reply: dict[str, Any], kind: str) -> dict[str, Any]:
    if reply["type"] != kind:
        raise RefusedCell(reply)
    return reply


class RefusedCell(Exception):
    """The worker answered `error`; the argument is the reply."""


def run_phases(worker: Worker, model: str, arm: tuple[str, str, dict[str, Any]], cache: str, folder: Path,
               row: dict[str, Any]) -> None:
    mode, dynamic, options = arm
    expect(worker.hello(), "hello")
    expect(worker.load(model, mode=mode, cache=cache, dynamic=dynamic, threads=4,
                       options={"device": row["device"], "config": MODELS[model], "seed": 3, "step_times": True,
                                **options}),
           "loaded")
    vocabulary = MODELS[model]["vocab_size"]
    prompt = {"ids": [[0] * 3 + [1 + (37 * i) % (vocabulary - 2) for i in range(LENGTH - 3)]], "pad": [3]}
    for phase, steps in PHASES:
        row["at"] = phase
        shape = {"phase": phase, "batch": 1, "new_tokens": steps, "capacity": LENGTH + steps}
        prepared = expect(worker.ask("prepare", **shape, padded_lens=[LENGTH], padding=True), "prepared")
        done = expect(worker.ask("measure", **shape, prompts=[prompt],
                                 repetitions=[{"repetition": n, "prompt": 0} for n in range(REPETITIONS)]), "done")
        evidence = expect(worker.ask("evidence", phase=phase), "evidence")["evidence"]
        profile = expect(worker.ask("profile", **shape, prompt=prompt, trace_path=str(folder / f"{phase}.json")),
                         "profile")["summary"]
        (folder / f"{phase}-evidence.json").write_text(json.dumps(evidence, indent=1))
        row[phase] = {"samples": done["all"], "evidence": evidence, "profile": profile,
                      "prepare_seconds": prepared["seconds"]}
    row["at"] = "shutdown"
    expect(worker.ask("shutdown"), "bye")
    if worker.process.wait(30) != 0:
        raise WorkerDied(worker.process.returncode)


def run_cell(model: str, arm: tuple[str, str, dict[str, Any]], cache: str, out: Path, limit_s: float,
             device: str) -> dict[str, Any]:
    row: dict[str, Any] = {"device": device, "model": model, "arm": arm, "cache": cache, "outcome": "ok",
                           "at": "load"}
    folder = out / f"{model}-{name_of(arm, cache).replace(' ', '-').replace('=', '-')}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "log", "wb") as log, Worker(log=log) as worker:
        late = threading.Timer(limit_s, worker.process.kill)
        late.start()
        try:
            run_phases(worker, model, arm, cache, folder, row)
        except RefusedCell as refused:
            reply = refused.args[0]
            row["outcome"] = f"error {reply['class']} in {row['at']}"
            row["message"] = reply["message"]
        except WorkerDied as died:
            status = died.args[0]
            timed_out = late.finished.is_set()
            row["outcome"] = ("timeout" if timed_out else signal.Signals(-status).name if status < 0
                              else f"exit {status}") + f" in {row['at']}"
        finally:
            late.cancel()
    (folder / "row.json").write_text(json.dumps(row, default=str))
    return row


def problems(row: dict[str, Any], eager: dict[str, Any]) -> list[str]:
    mode = row["arm"][0]
    if row["outcome"] != "ok":
        return [row["outcome"]] if mode in MUST_WORK or "timeout" in row["outcome"] else []
    found = []
    for phase, _ in PHASES:
        samples, evidence = row[phase]["samples"], row[phase]["evidence"]
        if {one["output_hash"] for one in samples} != {one["output_hash"] for one in eager[phase]["samples"]}:
            found.append(f"{phase}: tokens differ from eager's")
        if row[phase]["profile"].get("kernels_launched", 0) <= 0:
            found.append(f"{phase}: the profile has no kernels")
        if row["device"] != "cuda":
            continue
        if any(one.get("device_ns", 0) <= 0 or one["device_ns"] > 1.2 * one["latency_ns"] for one in samples):
            found.append(f"{phase}: device_ns against latency_ns")
        if "compiler_real" not in evidence or not evidence["toolchain"].get("cuda", {}).get("device"):
            found.append(f"{phase}: evidence incomplete")
        if mode == "manual-cudagraph" and phase == "kv_decode":
            replays = {one["counters"]["graph_replays"] for one in samples}
            if replays != {dict(PHASES)[phase]}:
                found.append(f"{phase}: replays {replays}")
    return found


def line(row: dict[str, Any], bad: list[str]) -> str:
    head = f"{row['model']:5} {name_of(row['arm'], row['cache']):58}"
    if row["outcome"] != "ok":
        first = row.get("message", "").partition("\n")[0][:90]
        return f"{head} {row['outcome']}  {first}" + ("  FAILED" if bad else "")
    cells = []
    for phase, steps in PHASES:
        ms = statistics.median(one["latency_ns"] for one in row[phase]["samples"]) / 1e6
        cells.append(f"{ms / max(1, steps):7.3f}")
    counters = row["e2e_kv"]["evidence"].get("counters", {})
    profile = row["kv_decode"]["profile"]
    numbers = [counters.get(key, 0) for key in ("unique_graphs", "recompiles", "recompile_limit_hits",
                                                "cudagraph_captures", "graph_replays", "cudagraph_skips",
                                                "kernels_compiled", "fallbacks")]
    verdicts = "/".join(row[phase]["evidence"]["compiler_real"] for phase, _ in PHASES)
    busy = 100 * profile.get("gpu_busy_ns", 0) / max(1, profile["wall_ns"])
    return (f"{head} {' '.join(cells)}  {' '.join(f'{n:5}' for n in numbers)}  "
            f"{counters.get('compile_ns', 0) / 1e9:6.1f} {busy:5.1f}  {verdicts}"
            + "".join(f"  FAILED {one}" for one in bad))


def cells_of(models: list[str], modes: list[str]) -> list[Cell]:
    """Eager is always among them: the others' tokens are held against its own. Static caches before growing ones, whose
    steps are all of another shape."""
    return [(model, arm, cache) for arm in ARMS for model in models
            for cache in (("dynamic", "static") if arm[0] == "eager" else ("static", "dynamic"))
            if (not modes or arm[0] in modes or arm[0] == "eager")
            and not (arm[0] == "manual-cudagraph" and cache == "dynamic")]


def run_until(cells: list[Cell], run: Callable[[Cell], dict[str, Any]], jobs: int,
              more: Callable[[], bool]) -> Iterator[tuple[Cell, dict[str, Any] | None]]:
    """Each cell with its row as it ends; None: not started, because `more` said so when its turn came."""
    with ThreadPoolExecutor(jobs) as pool:
        started = {pool.submit(lambda cell=cell: run(cell) if more() else None): cell for cell in cells}
        for done in as_completed(started):
            yield started[done], done.result()


def judged(rows: Iterator[tuple[Cell, dict[str, Any] | None]]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Rows with what is wrong with them, held back until the eager row of their model is there."""
    eager: dict[str, dict[str, Any]] = {}
    waiting: dict[str, list[dict[str, Any]]] = {}
    for (model, arm, cache), row in rows:
        if row is None:
            continue
        waiting.setdefault(model, []).append(row)
        if arm[0] == "eager" and cache == "dynamic":
            eager[model] = row
        if model not in eager:
            continue
        for one in waiting.pop(model):
            outcome = eager[model]["outcome"]
            yield one, problems(one, eager[model]) if outcome == "ok" else ["eager itself: " + outcome]
    for left in waiting.values():
        yield from ((one, ["no eager cell to hold it against"]) for one in left)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="tiny,25m")
    parser.add_argument("--modes", default="")
    parser.add_argument("--jobs", type=int, default=4)
    # max-autotune that compiles anew for each length was still at it after 325 s of an H200.
    parser.add_argument("--limit", type=float, default=900, help="seconds a cell")
    parser.add_argument("--seconds", type=float, default=0, help="start no cell after so many; 0: run all")
    parser.add_argument("--out", default="")
    parser.add_argument("--device", default="cuda", help="cpu: to try the check itself")
    given = parser.parse_args()
    out = Path(given.out or tempfile.mkdtemp(prefix="torch-cuda-check-")).absolute()
    cells = cells_of(given.models.split(","), [one for one in given.modes.split(",") if one])
    print(f"{'':5} {'arm':58} prefill decode  e2e   graphs recom limit capt repla skips kern fallb  comp_s busy%  "
          f"compiler_real\n      (ms; decode and e2e a token)", flush=True)
    end = time.monotonic() + given.seconds
    rows = run_until(cells, lambda cell: run_cell(*cell, out, given.limit, given.device), given.jobs,
                     lambda: not given.seconds or time.monotonic() < end)
    left = set(range(len(cells)))
    ran = failed = 0
    for row, bad in judged(rows):
        ran, failed = ran + 1, failed + bool(bad)
        left.discard(cells.index((row["model"], row["arm"], row["cache"])))
        print(line(row, bad), flush=True)
    for index in sorted(left):
        model, arm, cache = cells[index]
        print(f"{model:5} {name_of(arm, cache):58} not run: {given.seconds:g} s were over")
    print(f"{len(cells)} cells, {ran} run, {failed} failed; logs, evidence and traces in {out}")
    return 0 if ran and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
