"""The table of engine_vs_torch on a GPU: a row for each model and task, with its bar where it has one."""

from dataclasses import dataclass, field

from speed_table import Cell, print_table

COMPILED, EAGER = "engine compiled", "engine eager"
TORCH = ("torch eager", "torch compile")
KINDS = ("decode", "batch8", "prefill")


@dataclass(frozen=True)
class Work:
    """The requests and bars of one row of the table. `bar`: ms that the engine's compiled arm is to stay under; None:
    torch's best of the same run times `of_torch`, or nothing. `eager_aim`: the engine's eager arm is to stay under
    torch's eager one, and aims at these ms. `cold_s`: seconds that the first compiled step may take without kept
    kernels."""

    model: str
    dtype: str
    request: dict = field(hash=False)
    bar: float | None = None
    of_torch: float | None = None
    eager_aim: float | None = None
    cold_s: float | None = None

    def kind(self):
        return "batch8" if self.request.get("batch", 1) == 8 else self.request["do"]

    def name(self):
        if self.request["do"] == "prefill":
            return f"prefill {self.model} {self.dtype}, {self.request['tokens']} tokens"
        batch = self.request.get("batch", 1)
        return f"decode {self.model} {self.dtype}" + (f", batch {batch}" if batch > 1 else "")


def decode(batch=1):
    return {"do": "decode", "prompt": 128, "steps": 128, "batch": batch}


def prefill(tokens):
    """A prefill as peers.py has it: while others are timed an arm idles for seconds, which a first pass pays for."""
    return {"do": "prefill", "tokens": tokens, "timed": 5}


WORK = [
    Work("llama3.2-1b", "bf16", decode(), 0.75, eager_aim=3.0, cold_s=8.0),
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


def verdict(value, bar, found):
    """Nothing to judge where either is None; counts what is missed."""
    if value is None or bar is None:
        return "-"
    found.append(value > bar)
    return f"<= {bar:.3g} {'MISSED' if value > bar else 'ok'}"


def eager_verdict(work, cells, found):
    if work.eager_aim is None:
        return "-"
    eager = cells.get(EAGER, Cell()).at(0.5)
    text = verdict(eager, cells.get("torch eager", Cell()).at(0.5), found)
    aimed = "" if eager is None else f", aim {work.eager_aim:.3g} {'missed' if eager > work.eager_aim else 'ok'}"
    return text + aimed


def first_step(work, compiled, found):
    if compiled.first_ms is None:
        return "-"
    seconds = compiled.first_ms / 1e3
    judged = verdict(seconds, work.cold_s, found)
    return f"{seconds:.1f}" + ("" if judged == "-" else f" ({judged})")


def agreement(cells):
    """The number of the engine's eager tokens that each other arm chose too, up to the first difference."""
    expected = cells.get(EAGER, Cell()).tokens
    if expected is None:
        return "-"
    texts = []
    for arm, cell in cells.items():
        if arm == EAGER or cell.tokens is None:
            continue
        pairs = zip(expected, cell.tokens)
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(expected))
        if same < len(expected):
            texts.append(f"{arm} {same} of {len(expected)}")
    return ", ".join(texts) or "all"


def gpu_table(rows, arms, read_gb_s):
    """`rows`: (work, cells by arm). Returns bars missed."""
    found, lines = [], []
    for work, cells in rows:
        compiled = cells.get(COMPILED, Cell())
        share = "-"
        if compiled.ms and compiled.bytes:
            share = f"{compiled.bytes / compiled.at(0.5) / 1e6 / read_gb_s:.2f}"
        lines.append([work.name()] + [ms_text(cells.get(arm)) for arm in arms] +
                     [verdict(compiled.at(0.5), bar_of(work, cells), found), eager_verdict(work, cells, found), share,
                      first_step(work, compiled, found), agreement(cells)])
    print_table(["ms: median ((p90 - p10) / median)"] + arms +
                ["compiled's bar", "eager's bar", "share of read", "first step, s", "tokens as engine eager's"], lines)
    return sum(found)
