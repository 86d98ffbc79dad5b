"""Holds that what documents and comments refer to exists: each relative link of a Markdown file names a file, and its
anchor a heading there; each `docs/NAME.md, "Section"` in a document, a source or a test names a heading of that file, or
a paragraph or list entry that opens with this name in bold.

usage: doc_links.py SOURCE_ROOT
"""

import functools
import pathlib
import re
import subprocess
import sys

REFERENCE = re.compile(r'\b((?:docs/)?[\w-]+\.md)(?:\s+\(|, )"([^"]+)"')
LINK = re.compile(r"\]\(([^()\s]+)\)")
# Files whose references are read. Texts that other programs wrote (reports of past runs) aren't this project's prose.
SUFFIXES = {".md", ".cc", ".h", ".py", ".c", ".txt", ".yaml"}
NOT_PROSE = re.compile(r"docs/results/[^/]+/report\.md|tests/golden/|issues/")


def without_fences(text):
    return re.sub(r"(?ms)^```.*?^```$", "", text)


@functools.cache
def headings(path):
    return [match.strip() for match in re.findall(r"(?m)^#+ (.*)$", without_fences(path.read_text()))]


@functools.cache
def sections(path):
    return headings(path) + re.findall(r"(?m)^(?:- )?\*\*([^*]*)\*\*", without_fences(path.read_text()))


def anchor(heading):
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


@functools.cache
def anchors(path):
    return {anchor(heading) for heading in headings(path)}


def broken_links(root, path, text):
    for target in LINK.findall(without_fences(text)):
        if re.match(r"\w+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = (path.parent / name).resolve() if name else path.resolve()
        if not file.exists():
            yield f"{path.relative_to(root)}: expected the file of a link, found none: {target}"
        elif fragment and file.suffix == ".md" and fragment not in anchors(file):
            yield f"{path.relative_to(root)}: expected a heading of {name or path.name}, found no anchor: #{fragment}"


def broken_references(root, path, text):
    # A comment's lines are joined, so that a reference may break.
    joined = re.sub(r"\n\s*(?://|#)?\s*", " ", text)
    for name, section in REFERENCE.findall(joined):
        file = root / (name if "/" in name else f"docs/{name}")
        if not file.exists():
            file = root / name
        if not file.exists():
            yield f"{path.relative_to(root)}: expected the file of a reference, found none: {name}"
        elif not any(one.startswith(section) for one in sections(file)):
            yield f"{path.relative_to(root)}: expected a heading of {name}, found none: \"{section}\""


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [
        str(path.relative_to(root)) for path in root.rglob("*") if "build" not in path.parts]
    problems, checked = [], 0
    for name in sorted(filter(None, names)):
        path = root / name
        if path.suffix not in SUFFIXES or NOT_PROSE.search(name) or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        checked += len(LINK.findall(text)) + len(REFERENCE.findall(text))
        if path.suffix == ".md":
            problems += broken_links(root, path, text)
        if name != "tests/doc_links.py":
            problems += broken_references(root, path, text)
    if checked < 100:
        problems.append(f"expected at least 100 links and references, found {checked}")
    print("\n".join(problems) if problems else f"{checked} links and references resolve")
    return 1 if problems else 0


sys.exit(main())
