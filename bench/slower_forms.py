#!/usr/bin/env python3
"""No compiled form takes more than a quarter longer than eager, on whatever machine this runs.

Each form (a type of the weights, a phase, a length, a batch) is measured by `assay bench`, whose arms take turns within rounds
of processes of their own and whose ratios are paired by them; the weights are random. A ratio above the bar whose interval
reaches below it is measured again, with more repetitions, before it counts. Exit 1 where a form is above the bar or lost a
row. `make bench` runs it; --models and --quick change what is measured.
"""

import argparse
import dataclasses
import json
import subprocess
import sys

BAR = 1.25  # compiled / eager
TRIES = 3   # of a form whose interval has the bar inside
TYPES = ["fp32", "bf16", "fp16"]
# Rows of a product are tokens times sequences: few ones are read-bound, and a kernel's own; many go through panels.
PROMPTS, NEW_TOKENS, BATCHES = [4, 16, 128, 512], [16], [1, 4, 16]
QUICK = {"prompts": [16, 128], "new_tokens": [8], "batches": [1, 4]}


@dataclasses.dataclass
class Form:
    model: str
    dtype: str
    phase: str  # "pp" or "tg"
    tokens: int
    batch: int
    eager_ms: float = 0
    compiled_ms: float = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    lost: int = 0

    def name(self):
        return f"{self.phase}{self.tokens}" + (f" b{self.batch}" if self.batch > 1 else "")


def verdict(form):
    """PASS, SLOWER, LOST, or OPEN: the ratio is above the bar, and the interval isn't."""
    if form.lost > 0 or form.ratio is None:
        return "LOST"
    if form.ratio <= BAR:
        return "PASS"
    return "SLOWER" if form.low is not None and form.low > BAR else "OPEN"


def forms_of(model, dtype, rows):
    """The rows that `assay bench -o json` printed, an object a test and arm, as forms."""
    forms = {}
    for row in rows:
        phase, tokens = ("tg", row["n_gen"]) if row["n_gen"] else ("pp", row["n_prompt"])
        form = forms.setdefault((phase, tokens, row["batch"]), Form(model, dtype, phase, tokens, row["batch"]))
        form.lost += row["lost"]
        mean_ms = (row["avg_ns"] or 0) / 1e6
        if row["arm"] == "eager":
            form.eager_ms = mean_ms
        else:
            form.compiled_ms, form.ratio = mean_ms, row["ratio"]
            form.low, form.high = row["ratio_low"], row["ratio_high"]
    return list(forms.values())


def measure(program, model, dtype, prompts, new_tokens, batches, repetitions):
    numbers = lambda values: ",".join(map(str, values)) or "0"  # noqa: E731
    command = [program, "bench", model, "--dtype", dtype, "-p", numbers(prompts), "-n", numbers(new_tokens),
               "-b", numbers(batches), "-r", str(repetitions), "--arms", "eager,compiled", "-o", "json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):  # 1: rows were lost, which their column says
        sys.exit(f"slower_forms: {' '.join(command)}: expected rows, found exit status {done.returncode}")
    return forms_of(model, dtype, json.loads(done.stdout))


def settled(program, form, repetitions):
    """The form, measured again while it is open."""
    for attempt in range(1, TRIES):
        if verdict(form) != "OPEN":
            break
        prompts, new_tokens = ([form.tokens], []) if form.phase == "pp" else ([], [form.tokens])
        (form,) = measure(program, form.model, form.dtype, prompts, new_tokens, [form.batch], repetitions * 3 ** attempt)
    return form


def line(form):
    interval = "-" if form.low is None else f"[{form.low:.3f}, {form.high:.3f}]"
    ratio = "-" if form.ratio is None else f"{form.ratio:.3f}"
    return (f"{form.model:<14} {form.dtype:<5} {form.name():<10} {form.eager_ms:>10.3f} {form.compiled_ms:>12.3f} {ratio:>7} "
            f"{interval:<16} {BAR:>8.2f}  {verdict(form)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="folder of the built program")
    parser.add_argument("--models", default="tiny-llama,gpt2-25m", help="architectures of `assay model make`, apart by commas")
    parser.add_argument("--types", default=",".join(TYPES), help="types of the weights, apart by commas")
    parser.add_argument("--repetitions", type=int, default=10, help="repetitions of a form and arm")
    parser.add_argument("--quick", action="store_true", help="fewer lengths and batches")
    given = parser.parse_args()
    chosen = QUICK if given.quick else {"prompts": PROMPTS, "new_tokens": NEW_TOKENS, "batches": BATCHES}
    program = f"{given.build}/assay"
    print(f"{'model':<14} {'type':<5} {'form':<10} {'eager ms':>10} {'compiled ms':>12} {'ratio':>7} {'95 % interval':<16} "
          f"{'at most':>8}")
    failed = 0
    for model in given.models.split(","):
        for dtype in given.types.split(","):
            for form in measure(program, model, dtype, repetitions=given.repetitions, **chosen):
                form = settled(program, form, given.repetitions)
                print(line(form), flush=True)
                failed += verdict(form) != "PASS"
    print("PASS" if failed == 0 else f"BELOW: {failed} forms")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
