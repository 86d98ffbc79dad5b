"""Holds docs/reading-results.md against the words that the sources can print: each word of a verdict or state, each named
finding and each column title of a table stands in the first cell of one of its tables, beside a meaning and an example.
And it explains no word that no source has.

usage: reading_words.py SOURCE_ROOT
"""

import pathlib
import re
import sys

DOCUMENT = "docs/reading-results.md"
LITERAL = r'"((?:[^"\\]|\\.)*)"'
# Functions whose results are words of verdicts and states, and the folders of src/ that have them.
WORD_FOLDERS = ("analysis", "portability", "gates", "routing", "report", "artifact", "identity", "backend", "harness", "stats",
                "cli")
WORD_FUNCTION = r"\w+_(?:name|word)|gate_verdict_text|gate_title|status_text|screen_verdict|combined_verdict"
# Names of files, cells and members of findings.json, which no screen shows as a word of its own.
NOT_WORDS = {"metrics_name", "plot_name", "cell_name", "test_name", "pair_name", "column_name", "sitting_name",
             "block_state_name", "device_name", "framework_name", "facts_name"}
# Functions and files of tables that are written as data alone: their columns are members of findings.json.
DATA_TABLES = {"flat_table.cc": None, "bench_rows.cc": None, "bench_data.cc": None,
               "compare_report.cc": "flat_cells", "gate_report.cc": "flat_checks"}
# The fewest words of a kind that the sources had on 2026-11-26, rounded down: fewer mean that the patterns below no
# longer fit the sources.
LEAST = {"word": 95, "finding": 35, "column": 190}


def sources(root, *folders):
    for folder in folders:
        for path in sorted((root / "src" / folder).rglob("*.cc")):
            if not path.stem.endswith(("_test", "_fuzz")):
                yield path, re.sub(r"(?m)^\s*//.*$", "", path.read_text())


def body_of(text, begin):
    """The text within the braces that open at or behind `begin`."""
    depth, first = 0, text.index("{", begin)
    for i in range(first, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[first + 1 : i]
    raise ValueError("a brace that never closes")


def literals(text):
    return [word for word in re.findall(LITERAL, text) if re.search("[a-zA-Z]", word)]


def verdict_words(root):
    """Words that the functions of WORD_FUNCTION return, also by constants of their files."""
    for path, text in sources(root, *WORD_FOLDERS):
        head = rf"(?m)^(?:std::string(?:_view)?|const char\*) ({WORD_FUNCTION})\([^;{{]*(?={{)"
        for match in re.finditer(head, text):
            where = f"{path.name}, {match[1]}"
            if NOT_WORDS & {match[1], where}:
                continue
            parts = [body_of(text, match.end())]
            for constant in set(re.findall(r"\bk[A-Z]\w*", parts[0])):
                table = re.search(rf"constexpr[^;={{}}]*\b{constant} = ([{{\"][^;]*);", text)
                parts += [table[1]] if table else []
            for word in literals(" ".join(parts)):
                if "{" not in word:
                    yield word.strip(), where


def finding_kinds(root):
    """First arguments of the functions that make a finding of a kind, and what is assigned to one."""
    all_sources = list(sources(root, "analysis/named"))
    makers = set()
    for _, text in all_sources:
        makers.update(re.findall(r"(?m)^Finding (\w+)\(std::string kind", text))
    for path, text in all_sources:
        for arguments in re.findall(rf"\b(?:{'|'.join(makers)})\(((?:[^,;]|\n)*)", text):
            for kind in literals(arguments):
                yield kind, path.name
        for kind in re.findall(rf"\bkind = {LITERAL}", text):
            yield kind, path.name


def column_titles(root):
    """Names that columns_of() splits, titles within braces, with an alignment or alone, and lists of names that become columns."""
    for path, text in sources(root, "report", "cli"):
        if path.name in DATA_TABLES:
            if DATA_TABLES[path.name] is None:
                continue
            begin = text.index(f"Table {DATA_TABLES[path.name]}(")
            text = text.replace(body_of(text, begin), "")
        titles = re.findall(rf"(?<!lines = )(?<!figures = ){{{LITERAL}(?:, Align::k\w+)?(?:, true)?}}", text)
        titles += re.findall(rf"{{{LITERAL}, Counter::", text)
        for call in re.findall(r"\bcolumns_of\(([^;]*?)\)[;,}]", text):
            for names in re.findall(LITERAL, re.sub(r'"\s*"', "", call)):
                titles += [name.lstrip("<=") for name in names.split("|")]
        for names in re.findall(r"for \(const char\*(?: const)? name\s*:\s*{([^}]*)}", text):
            titles += literals(names)
        for expression in re.findall(r"columns\.push_back\({([^}]*)}", text) + re.findall(
            r"of_conditions = ([^;]*);", text
        ):
            titles += literals(expression)
            for constant in re.findall(r"\bk[A-Z]\w*", expression):
                titles += re.findall(rf"\b{constant} = {LITERAL}", text)
        for title in titles:
            sentence = " " in title and title.endswith(".")
            if re.fullmatch(r"[\w%./ ,:()-]*[\w%.)]", title) and not sentence and not title.startswith("--"):
                yield title, path.name


def explained(document):
    """Words in the first cells of the tables with three columns, and lines whose other cells are empty."""
    words, empty = {}, []
    for number, line in enumerate(document.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("| ") or len(cells) != 3:
            continue
        for word in re.findall(r"`([^`]+)`", cells[0]):
            words.setdefault(word, number)
            if not cells[1] or not cells[2]:
                empty.append(f"{DOCUMENT}:{number}: expected a meaning and an example of {word}, found an empty cell")
    return words, empty


def main():
    root = pathlib.Path(sys.argv[1])
    words, problems = explained((root / DOCUMENT).read_text())
    for what, found in (("word", verdict_words), ("finding", finding_kinds), ("column", column_titles)):
        printed = {}
        for word, where in found(root):
            printed.setdefault(word, where)
        if len(printed) < LEAST[what]:
            problems.append(f"src: expected at least {LEAST[what]} {what}s, found {len(printed)}: the patterns of this "
                            "test don't fit the sources any more")
        for word, where in sorted(printed.items()):
            if word not in words:
                problems.append(f"{DOCUMENT}: expected the {what} `{word}` ({where}) in a table's first cell, found none")
    code = "\n".join(path.read_text() for suffix in ("*.cc", "*.h") for path in sorted((root / "src").rglob(suffix)))
    code = re.sub(r'"\n\s*"', "", code)
    for word, number in words.items():  # "..." stands for a figure or a name
        if not all(part in code for part in word.split("...")):
            problems.append(f"{DOCUMENT}:{number}: expected a word that some source has, found `{word}`")
    print("\n".join(problems) if problems else "reading-results.md explains every word")
    return 1 if problems else 0


sys.exit(main())
