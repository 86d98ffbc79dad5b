"""The tables of engine_vs_torch: one row a model and type, bars beside what was measured."""

DECODE_BAR = 0.85  # of the read bandwidth, compiled
EAGER, COMPILED, TORCH = "engine eager", "engine compiled", ("torch eager", "torch compile")


class Cell:
    """One arm's answers to one request."""

    def __init__(self):
        self.ms = []
        self.tokens = None
        self.bytes = None
        self.note = ""
        self.failure = ""
        self.first_ms = None  # of the first answer's first step: what compiles, compiles there

    def add(self, reply):
        self.ms.append(reply["ms"])
        self.tokens = reply["tokens"]
        self.bytes = reply.get("bytes")
        self.note = reply.get("note", "")

    def note_first(self, reply):
        if self.first_ms is None:
            self.first_ms = reply.get("first_ms")

    def at(self, share):
        """Quantile of type 7; None without answers."""
        ms = sorted(self.ms)
        if not ms:
            return None
        place = share * (len(ms) - 1)
        low = int(place)
        high = min(low + 1, len(ms) - 1)
        return ms[low] + (place - low) * (ms[high] - ms[low])

    def text(self):
        if not self.ms:
            return self.failure or "-"
        text = f"{self.at(0.5):.1f} [{self.at(0.1):.1f}, {self.at(0.9):.1f}]"
        return f"{text} ({self.note})" if self.note else text


def judged(value, bar, digits=2):
    """The measured value beside its bar; and whether the bar was missed."""
    missed = value < bar
    return f"{value:.{digits}f} (>= {bar:.{digits}f} {'MISSED' if missed else 'ok'})", missed


def ratio(slow, fast):
    """Ratio of the medians: how many times as fast; None if an arm has none."""
    return slow.at(0.5) / fast.at(0.5) if slow.ms and fast.ms else None


def same_tokens(cells):
    """Says if all arms that answered chose the same ids: only fp32 has to agree, bf16 rounds elsewhere."""
    answers = [cell.tokens for cell in cells if cell.tokens is not None]
    return "yes" if all(tokens == answers[0] for tokens in answers) else "no"


def print_table(columns, rows):
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def comparisons(cells, found):
    """Compiled against the engine's eager and against the faster torch arm; counts the misses."""
    texts = []
    torch = [cells[name] for name in TORCH if name in cells and cells[name].ms]
    others = [cells.get(EAGER), min(torch, key=lambda cell: cell.at(0.5), default=None)]
    for other in others:
        value = ratio(other, cells[COMPILED]) if other and COMPILED in cells else None
        if value is None:
            texts.append("-")
            continue
        text, missed = judged(value, 1)
        found.append(missed)
        texts.append(text)
    return texts


def rows_of(rows, arms, request):
    for row in rows:
        yield row, {arm: row["cells"][arm, str(request)] for arm in arms}


def decode_table(rows, arms, request):
    """ms a token, GB/s of what a step has to read, and its share of the read bandwidth. Returns bars missed."""
    lines, found = [], []
    for row, cells in rows_of(rows, arms, request):
        line = [row["model"], row["dtype"]] + [cells[arm].text() for arm in arms]
        compiled = cells.get(COMPILED)
        read = row["read_gb_s"]
        share = "-"
        gb_s = "-"
        if compiled and compiled.ms and compiled.bytes and read:
            value = compiled.bytes / compiled.at(0.5) / 1e6
            gb_s = f"{value:.1f} of {read:.1f}"
            share, missed = judged(value / read, DECODE_BAR)
            found.append(missed)
        line += [gb_s, share] + comparisons(cells, found) + [same_tokens(cells.values())]
        line[0] += "" if row["by_turns"] else " (not by turns)"
        lines.append(line)
    print("Decode, batch 1, ms a token:\n")
    print_table(["model", "weights"] + arms + ["compiled GB/s", "share of read", "eager/compiled",
                                               "best torch/compiled", "same tokens"], lines)
    return sum(found)


def prefill_table(rows, arms, request):
    """ms a prompt. Returns bars missed."""
    lines, found = [], []
    for row, cells in rows_of(rows, arms, request):
        lines.append([row["model"], row["dtype"]] + [cells[arm].text() for arm in arms] +
                     comparisons(cells, found) + [same_tokens(cells.values())])
    print(f"Prefill of {request['tokens']} tokens, batch 1, ms:\n")
    print_table(["model", "weights"] + arms + ["eager/compiled", "best torch/compiled", "same token"], lines)
    return sum(found)
