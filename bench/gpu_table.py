"""The table of engine_vs_torch on a GPU: a row for each model and task, with its bar where it has one."""

from dataclasses import dataclass, field

from speed_table import Cell, print_table, same_tokens

COMPILED, EAGER = "engine compiled", "engine eager"
TORCH = ("torch eager", "torch compile")


@dataclass(frozen=True)
class Work:
    """What one row of the table measures. `bar`: ms that the engine's compiled arm is to stay under; None: torch's best
    of the same run times `of_torch`, or nothing."""

    model: str
    dtype: str
    request: dict = field(hash=False)
    bar: float | None = None
    of_torch: float | None = None

    def name(self):
        if self.request["do"] == "prefill":
            return f"prefill {self.model} {self.dtype}, {self.request['tokens']} tokens"
        batch = self.request.get("batch", 1)
        return f"decode {self.model} {self.dtype}" + (f", batch {batch}" if batch > 1 else "")


def decode(batch=1):
    return {"do": "decode", "prompt": 128, "steps": 128, "batch": batch}


def prefill(tokens):
    return {"do": "prefill", "tokens": tokens}


WORK = [
    Work("llama3.2-1b", "bf16", decode(), 0.75),
    Work("llama3.2-1b", "bf16", decode(8), 0.95),
    Work("llama3.2-1b", "bf16", prefill(128), 1.2),
    Work("llama3.2-1b", "bf16", prefill(512), 2.8),
    Work("llama3.2-1b", "bf16", prefill(2048), 9.5),
    Work("qwen2.5-0.5b", "bf16", decode(), 0.50),
    Work("qwen2.5-1.5b", "bf16", decode(), 1.00),
    Work("gpt2-100m", "fp32", decode(), of_torch=0.5),
    Work("llama3.1-8b", "bf16", decode(), 4.0),
    Work("llama2-7b", "bf16", decode(), 3.4),
]


def spread(cell):
    """(p90 - p10) over the median."""
    return (cell.at(0.9) - cell.at(0.1)) / cell.at(0.5)


def ms_text(cell):
    if cell is None or not cell.ms:
        return (cell.failure if cell else "") or "-"
    text = f"{cell.at(0.5):.3g} ({spread(cell):.2f})"
    return f"{text} {cell.note}" if cell.note else text


def bar_of(work, cells):
    """ms to stay under, or None."""
    if work.bar is not None or work.of_torch is None:
        return work.bar
    best = [cells[arm].at(0.5) for arm in TORCH if arm in cells and cells[arm].ms]
    return work.of_torch * min(best) if best else None


def gpu_table(rows, arms, read_gb_s):
    """`rows`: (work, cells by arm). Returns bars missed."""
    missed, lines = 0, []
    for work, cells in rows:
        compiled = cells.get(COMPILED, Cell())
        bar, share, verdict = bar_of(work, cells), "-", "-"
        if compiled.ms and compiled.bytes:
            share = f"{compiled.bytes / compiled.at(0.5) / 1e6 / read_gb_s:.2f}"
        if compiled.ms and bar is not None:
            over = compiled.at(0.5) > bar
            missed += over
            verdict = f"<= {bar:.3g} {'MISSED' if over else 'ok'}"
        first = f"{compiled.first_ms / 1e3:.1f}" if compiled.first_ms is not None else "-"
        lines.append([work.name()] + [ms_text(cells.get(arm)) for arm in arms] +
                     [verdict, share, first, same_tokens(cells.values())])
    print_table(["ms: median ((p90 - p10) / median)"] + arms +
                ["compiled's bar", "share of read", "first step, s", "same tokens"], lines)
    return missed
