#!/usr/bin/env python3
"""Every bar of the engine on one NVIDIA H200 beside what `assay bench` measures there, as a table for docs/engine-figures.md.

Each line of WORK is one `assay bench` as a user types it, which the table's first column repeats; weights are random, in bf16. A
step's ms are those of a repetition over its tokens. Exit 1 where a bar is missed, a row was lost or a run failed. --only leaves out
models and lengths.
"""

import argparse
import dataclasses
import json
import subprocess
import sys

from speed_table import print_table

STEPS = 64


@dataclasses.dataclass(frozen=True)
class Work:
    """A run of `assay bench`, and the bar in ms of each of its tests, by prompt length or by batch."""

    model: str
    bars: dict = dataclasses.field(hash=False)
    depth: int | None = None  # of steps; prompts have none
    repetitions: int = 5

    def arguments(self):
        numbers = ",".join(map(str, self.bars))
        lengths = ["-p", numbers, "-n", "0"] if self.depth is None else \
            ["-p", "0", "-n", str(STEPS), "-d", str(self.depth), "-b", numbers]
        return [self.model, *lengths, "-r", str(self.repetitions)]

    def bar_of(self, row):
        return self.bars.get(row["n_prompt"] if self.depth is None else row["batch"])


WORK = [
    Work("llama3.2-1b", {1: 0.66, 8: 0.85, 12: 0.95, 16: 1.0, 32: 1.05, 64: 1.2, 256: 2.1}, depth=128),
    Work("llama3.2-1b", {1: 0.8, 8: 1.05}, depth=4096),
    Work("llama3.2-1b", {1: 1.05, 8: 3.1}, depth=32768, repetitions=3),
    Work("llama3.2-1b", {128: 1.0, 512: 2.0, 2048: 7.0}, repetitions=10),
    Work("llama3.2-1b", {8192: 36.0, 16384: 95.0, 32768: 270.0}, repetitions=3),
    Work("qwen2.5-0.5b", {1: 0.38}, depth=128),
    Work("qwen2.5-1.5b", {1: 0.88}, depth=128),
    Work("llama3.1-8b", {512: 10.2}),
]
COLUMNS = ["assay bench ...", "test", "ms [95 % interval]", "share of read", "bar", ""]


class RunFailed(Exception):
    pass


def rows_of(program, work, device):
    """The rows of a run, an object a test."""
    command = [program, "bench", *work.arguments(), "--dtype", "bf16", "--device", device, "--arms", "compiled", "-o", "json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):  # 1: rows were lost, which their column says
        said = done.stderr.strip().splitlines()
        raise RunFailed(said[-1] if said else f"exit status {done.returncode}")
    return json.loads(done.stdout)


def verdict(ms, bar, lost):
    if lost:
        return f"LOST {lost} rows"
    return "met" if ms <= bar else f"MISSED by {ms / bar - 1:.1%}"


def line(work, row):
    """A row of the table; its last column is "met" if nothing is wrong."""
    tokens = row["n_gen"] or 1
    ms, low, high = (None if row[name] is None else row[name] / tokens / 1e6 for name in ("avg_ns", "avg_low_ns", "avg_high_ns"))
    interval = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    bar, share = work.bar_of(row), row["limit_share"]
    return [" ".join(work.arguments()), row["test"], "-" if ms is None else f"{ms:.3f}{interval}",
            "-" if share is None else f"{share:.2f}", f"{bar:g}", verdict(ms, bar, row["lost"] or (ms is None and "all"))]


def tell(lines):
    for cells in lines:
        print("  ".join(cells), file=sys.stderr, flush=True)


def measured(program, works, device):
    """The table's rows, and what the runs say of the machine and of the program. Each row is told on stderr as it comes: all
    runs take some six minutes, and those before one that is stopped aren't lost."""
    lines, said = [], set()
    for work in works:
        before = len(lines)
        try:
            rows = [row for row in rows_of(program, work, device) if work.bar_of(row) is not None]
        except RunFailed as failed:
            lines.append([" ".join(work.arguments()), "all", "-", "-", "-", f"FAILED: {failed}"])
            tell(lines[before:])
            continue
        lines += [line(work, row) for row in rows]
        said |= {(row["device"], row["build_commit"], row["test_time"][:10]) for row in rows}
        if len(rows) < len(work.bars):
            lines.append([" ".join(work.arguments()), "others", "-", "-", "-", f"FAILED: {len(rows)} of {len(work.bars)} tests"])
        tell(lines[before:])
    return lines, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="build/release/assay", help="the program")
    parser.add_argument("--device", default="cuda", help="the GPU: cuda or cuda:N")
    parser.add_argument("--only", default="", help="runs whose arguments contain this text alone")
    given = parser.parse_args()
    works = [work for work in WORK if given.only in " ".join(work.arguments())]
    if not works:
        sys.exit(f"gpu_bars: --only {given.only}: expected a part of a run's arguments, found none that has it")
    lines, said = measured(given.assay, works, given.device)
    for device, commit, day in sorted(said):
        print(f"{device}, commit {commit}, {day}")
    print_table(COLUMNS, lines)
    missed = sum(cells[-1] != "met" for cells in lines)
    print(f"{len(lines) - missed} of {len(lines)} bars are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
