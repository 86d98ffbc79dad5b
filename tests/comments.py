"""Holds that no sentence of a comment begins with a headless Of, What, Whether, How or By: a comment
names its subject first, then what holds for it.

A comment is a run of full lines of one column, or one behind code with the full lines below it that
begin in its column. Python's docstrings are comments too; CMake, YAML, make and the shell have theirs
behind #. Texts in string literals are not: a printed kernel's comments belong to its text. Questions may
begin so, quotations in "" and PHRASES.

usage: comments.py SOURCE_ROOT
"""

import ast
import io
import pathlib
import re
import sys
import tokenize
from typing import NamedTuple

FOLDERS = (".ci", "bench", "cmake", "scripts", "src", "studies", "tests", "workers")
PHRASES = ("By default",)

HEADLESS = re.compile(r"(?:Of|What|Whether|How|By)\b")
# Literals are matched to be skipped; 1'000 is a number, not the begin of a character.
CPP = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\(?s:.))*|/\*(?s:.)*?\*/)"""
    r"""|\b(?:u8|u|U|L)?R"(?P<mark>[^()\s\\]{0,16})\((?s:.)*?\)(?P=mark)\""""
    r"""|"(?:[^"\\\n]|\\(?s:.))*"|\b[0-9][\w.']*|'(?:[^'\\\n]|\\.)+'"""
)
SENTENCE_END = re.compile(r"[.!?][')\]]*\s+(?=[A-Z_'`(\[])")


class Line(NamedTuple):
    number: int  # of the file, from 1
    column: int
    alone: bool  # no code stands before it
    text: str


class Sentence(NamedTuple):
    number: int  # the line that it begins in
    text: str


def cpp_lines(text):
    """The lines of a C++ file's comments, without their marks."""
    for found in CPP.finditer(text):
        if not found["comment"]:
            continue
        begin = text.rfind("\n", 0, found.start()) + 1
        first = text.count("\n", 0, found.start()) + 1
        column, alone = found.start() - begin, not text[begin : found.start()].strip()
        for offset, line in enumerate(found["comment"].removesuffix("*/").split("\n")):
            stripped = re.sub(r"^\s*(?://+[/!<]*|/\*+|\*(?!\*))", "", line).strip()
            yield Line(first + offset, column, alone or offset > 0, stripped)


def python_lines(text):
    """The lines of a Python file's comments and docstrings, without their marks."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            yield Line(row, column, not lines[row - 1][:column].strip(), token.string.lstrip("#! ").strip())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node) is None:
                continue
            string = node.body[0].value
            for number in range(string.lineno, string.end_lineno + 1):
                yield Line(number, string.col_offset, True, lines[number - 1].strip().strip('"').strip())


def hash_lines(text):
    """The lines of the comments of CMake, YAML, make and the shell, without their marks."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"(?:^|\s)#+(?!!)(.*)", re.sub(r""""[^"]*"|(?<!\w)'[^']*'""", lambda quoted: "_" * len(quoted[0]), line))
        if found:
            column = line.index("#", found.start())
            yield Line(number, column, not line[:column].strip(), found[1].strip())


def reader_of(path):
    """The function that finds the comments of this file, or None."""
    by_suffix = {".py": python_lines, ".cc": cpp_lines, ".h": cpp_lines, ".c": cpp_lines, ".cu": cpp_lines, ".cmake": hash_lines,
                 ".yaml": hash_lines, ".sh": hash_lines}
    if path.name in ("CMakeLists.txt", "Makefile"):
        return hash_lines
    if path.suffix in by_suffix or path.suffix or not path.is_file():
        return by_suffix.get(path.suffix)
    with path.open("rb") as file:  # a script without a suffix
        first = file.readline()
    return (python_lines if b"python" in first else hash_lines) if first.startswith(b"#!") else None


def sentences(lines):
    """The sentences of a file's comments: an empty line, another column or code ends a comment."""
    comment, last = [], None
    for line in sorted(lines):
        joined = last and line.number == last.number + 1 and line.column == last.column and line.alone
        if not line.text or not joined:
            yield from split(comment)
            comment = []
        if line.text:
            comment.append(line)
        last = line
    yield from split(comment)


def split(comment):
    """The sentences of one comment; a line that begins with a dash begins one too."""
    text, begins = "", []
    for line in comment:
        begins.append((len(text), line.number))
        text += line.text + " "
    unquoted = re.sub(r'"[^"]*"', lambda quoted: "_" * len(quoted[0]), text)
    starts = {0} | {found.end() for found in SENTENCE_END.finditer(unquoted)}
    starts |= {begin for begin, _ in begins if re.match(r"[-*] ", text[begin:])}
    starts = sorted(starts)
    for start, end in zip(starts, starts[1:] + [len(text)]):
        number = max(line for begin, line in begins if begin <= start) if begins else 0
        stripped = text[start:end].strip().lstrip("-*(['`").strip()
        if stripped:
            yield Sentence(number, stripped)


def headless(all_sentences):
    for sentence in all_sentences:
        asks = sentence.text.rstrip("\"')`").endswith("?")
        if HEADLESS.match(sentence.text) and not asks and not sentence.text.startswith(PHRASES):
            yield sentence


def check_parser():
    """The cases that the check lives by."""

    def found(text, lines_of=cpp_lines):
        return [(one.number, one.text) for one in headless(sentences(lines_of(text)))]

    assert found("// Of a tile.\nint a;\n") == [(1, "Of a tile.")]
    assert found("int a;  // What it is\n") == [(1, "What it is")]
    assert found("// Size. Whether it\n// fits.\n") == [(1, "Whether it fits.")]
    assert found("// A. B. How many.\n") == [(1, "How many.")]
    assert found("// Rows (all).\n// By hand.\n") == [(2, "By hand.")]
    assert found("// Rows:\n// - Of one.\n") == [(2, "Of one.")]
    assert found("/* Of a tile. */\n/**\n * What it is.\n */\n") == [(1, "Of a tile."), (3, "What it is.")]
    assert found("int a = 1'000;  // Of 'a'.\n") == [(1, "Of 'a'.")]
    assert found("int a;  // size\nint b;  // Of b.\n") == [(2, "Of b.")]
    # A sentence that goes on in the next line begins where its first word stands.
    assert not found("// The number\n// Of a tile.\n")
    assert not found("int a;  // the size, and\n        // What follows.\n")
    assert not found("// How many are there? By default, one.\n")
    assert not found("// Offset of a tile. Whatever. Bytes.\n")
    assert not found('// "By p50 it is A. By p99\n// it is B" or "What".\n')
    assert found('// "A" is a. Of "B. C" too.\n') == [(1, 'Of "B. C" too.')]
    assert not found('auto a = "// Of a";\nauto b = R"x(\n// Of a\n)x";\nchar c = \'"\';  // Size.\n')
    python = 'def f():\n    """Gives one.\n\n    Of a tile.\n    """\n    return "# What"  # How.\n'
    assert found(python, python_lines) == [(4, "Of a tile."), (6, "How.")], found(python, python_lines)
    assert not found('"""Size."""\n\nx = """\nOf a tile."""\n', python_lines)
    shell = '#!/bin/sh\n# Size.\n# How many.\necho "# What" # Of it.\na: 1  # a number.\n'
    assert found(shell, hash_lines) == [(3, "How many."), (4, "Of it.")], found(shell, hash_lines)


def main():
    check_parser()
    root = pathlib.Path(sys.argv[1]).resolve()
    wrong, count = [], 0
    here = [root / "CMakeLists.txt", root / "Makefile"]
    for path in sorted(here + [path for folder in FOLDERS for path in (root / folder).rglob("*")]):
        where = path.relative_to(root).as_posix()
        lines_of = reader_of(path)
        if lines_of is None:
            continue
        count += 1
        text = path.read_text()
        # Few files have one of the words anywhere, and parsing is most of the work.
        if HEADLESS.search(text):
            wrong += [f"{where}:{one.number}: {one.text}" for one in headless(sentences(lines_of(text)))]
    if count < 1000:
        wrong.append(f"found {count} files: the search for them is at fault")
    print("\n".join(wrong) or f"{count} files, each sentence of their comments with its subject first")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
