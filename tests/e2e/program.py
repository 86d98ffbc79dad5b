"""Helpers of the end-to-end tests: calls of the built program, small checkpoints and studies."""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

# True for the registrations in tests/CMakeLists.txt that run more cases of a kind, minutes long.
SOAK = bool(os.environ.get("ASSAY_SOAK"))

STUDY = {
    "name": "e2e",
    "models": [{"path": "model", "dtype": "fp32"}],
    "arms": [{"name": "eager", "backend": "native", "mode": "eager", "cache": ["dynamic", "static"], "threads": 1}],
    "phases": ["prefill", "kv_decode", "e2e_kv"],
    "scenarios": [{"name": "short", "prompt_tokens": [7]}],
    "token_lengths": [4],
    "repetitions": 2,
    "processes": 1,
    "warmup": 1,
    "timeout_s": 120,
}


SKIPPED = 77  # ctest shows a test that ends with it as skipped


def made_by(script):
    """The lines that a script of scripts/ prints. Where it can't make its things here, which it says by the same exit status,
    this process ends as skipped, before any test: a single test that is skipped beside others looks like one that passed."""
    done = subprocess.run([pathlib.Path(__file__).parents[2] / "scripts" / script], capture_output=True, text=True)
    if done.returncode == SKIPPED:
        print(done.stderr)
        sys.exit(SKIPPED)
    if done.returncode != 0:
        raise AssertionError(f"{script}: {done.stderr}")
    return done.stdout.strip().splitlines()


def only_where(condition):
    """Leaves a test out of a registration that isn't to have it (ASSAY_SOAK): another one has it."""
    return lambda test: test if condition else None


def quick_compiler(folder):
    """A C++ compiler for ASSAY_CXX that doesn't optimise: for tests of what compiled arms report, whatever their speed. An
    ASSAY_KERNEL_CACHE of their own keeps its kernels out of the user's."""
    path = folder / "quick-c++"
    path.write_text('#!/bin/sh\nexec c++ "$@" -O0\n')
    path.chmod(0o755)
    return str(path)


def rows_of(bundle, **wanted):
    """The rows of all phases whose columns hold the wanted texts."""
    found = []
    for path in sorted(bundle.glob("*/metrics.csv")):
        with path.open(newline="") as file:
            found += [row for row in csv.DictReader(file) if all(row[key] == text for key, text in wanted.items())]
    return found


def lives(pid):
    """True if there is such a process, also one that has ended and wasn't waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(reached, seconds=60):
    """Waits for what another process brings about."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            raise AssertionError(f"it doesn't come about within {seconds} s")
        time.sleep(0.05)


def recompile_tail(tail):
    """Findings due on the tail of an arm with recompiles, by its own figures (src/analysis/describe/tails.h): none where the
    machine stalled a call without one for as long as half a recompile."""
    high, rest, p50 = tail["high_ms"], tail["high_without_recompiled_ms"], tail["p50_ms"]
    stands_out = tail["slow_recompiled"] > 0 and rest is not None and high >= 3 * p50 and rest - p50 <= (high - p50) / 2
    return {"recompile_tail"} if stands_out else set()


class ProgramTest(unittest.TestCase):
    """A test in a scratch folder, which is the program's working directory."""

    program: pathlib.Path
    folder: pathlib.Path

    def assay(self, *arguments, cwd=None):
        return subprocess.run(
            [str(self.program), *map(str, arguments)],
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def succeed(self, *arguments):
        done = self.assay(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_refused(self, arguments, *words):
        """Exit 2, nothing on stdout, and one line on stderr: object, expected, found."""
        done = self.assay(*arguments)
        self.assertEqual(done.returncode, 2, f"{arguments}: {done.stderr or done.stdout}")
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Aassay: [^\n]+\n\Z", "exactly one line")
        self.assertRegex(done.stderr, r"expected .*found|unknown key|did you mean", done.stderr)
        for word in words:
            self.assertRegex(done.stderr, re.escape(str(word)))
        return done.stderr

    def write_study(self, name="study.yaml", **changes):
        """JSON is YAML: a study with some keys replaced (None: left out)."""
        study = {key: value for key, value in {**STUDY, **changes}.items() if value is not None}
        path = self.folder / name
        path.write_text(json.dumps(study, indent=1) + "\n")
        return path
