"""Holds that a type's name is unique in its namespace over the whole program: two structs of one
qualified name are one symbol to the linker, which keeps the members of either (a violation of C++'s
one-definition rule).

A type outside an unnamed namespace, in a header or not, shares its name with no other type of its
namespace, not even with one of a file's own (an unnamed namespace): a reader would take one for the
other, and the day that the file includes the header it no longer compiles. Types of two files' own
may have one name, and so may those of a unit test.

usage: unique_names.py SOURCE_ROOT
"""

import pathlib
import re
import sys
from typing import NamedTuple

KEYWORD = r"(?:struct|class|union|enum(?:\s+(?:class|struct))?)"
TYPE = re.compile(
    rf"^(?:template\s*<.*>\s*)?{KEYWORD}\s+(?:alignas\([^)]*\)\s*)?(?:\[\[[^\]]*\]\]\s*)?(\w+)(.*)$"
)
OPEN = re.compile(r"^(?:inline\s+)?namespace\s*([\w:]*)\s*\{$")
CLOSE = re.compile(r"^\}\s*//\s*namespace\b")


class Definition(NamedTuple):
    name: str
    namespace: str  # "assay::stats", an unnamed one left out
    local: bool  # in an unnamed namespace
    where: str


def definitions(text, where):
    """The types that a file defines at namespace level, which clang-format puts at the line's start."""
    stack = []
    for number, line in enumerate(text.splitlines(), 1):
        opened = OPEN.match(line)
        if opened:
            stack.append(opened[1])
            continue
        if CLOSE.match(line):
            if not stack:
                raise ValueError(f"{where}:{number}: closes a namespace that it didn't open")
            stack.pop()
            continue
        found = TYPE.match(line)
        if found:
            rest = found[2].strip()
            nested = rest.startswith("::")  # Outer::Impl is a name within Outer
            specialized = rest.startswith("<")
            declared = rest.endswith(";") and "{" not in rest
            if nested or specialized or declared:
                continue
            namespace = "::".join(name for name in stack if name)
            yield Definition(found[1], namespace, "" in stack, f"{where}:{number}")
    if stack:
        raise ValueError(f"{where}: expected every namespace to end in `}}  // namespace`, found {stack}")


def problems(all_definitions):
    by_name = {}
    for definition in all_definitions:
        by_name.setdefault((definition.namespace, definition.name), []).append(definition)
    for (namespace, name), group in sorted(by_name.items()):
        shared = [one for one in group if not one.local]
        places = ", ".join(one.where for one in shared)
        if len(shared) > 1:
            yield f"{namespace}::{name}: expected one type of this name, found {len(shared)}: {places}"
        for one in group:
            if shared and one.local and "_test.cc:" not in one.where:
                yield f"{namespace}::{name} of {places}: expected no other type of this name, found {one.where}"


def check_parser():
    """The cases that the check lives by."""
    text = """namespace assay {
struct A {
class B;
struct A::Impl {
namespace {
struct C {
}  // namespace
namespace inner {
enum class D { kOne };
}  // namespace inner
}  // namespace assay
"""
    found = [(one.name, one.namespace, one.local) for one in definitions(text, "x.h")]
    assert found == [("A", "assay", False), ("C", "assay", True), ("D", "assay::inner", False)], found
    seen, other = Definition("A", "assay", False, "a.h:1"), Definition("A", "assay::b", False, "b.h:1")
    own, of_test = Definition("A", "assay", True, "c.cc:1"), Definition("A", "assay", True, "c_test.cc:1")
    assert len(list(problems([seen, seen]))) == 1
    assert len(list(problems([seen, own, of_test]))) == 1
    assert not list(problems([own, own, other]))


def main():
    check_parser()
    src = pathlib.Path(sys.argv[1]).resolve() / "src"
    found = []
    for path in sorted(src.rglob("*")):
        if path.suffix in (".h", ".cc"):
            found += definitions(path.read_text(), str(path.relative_to(src.parent)))
    wrong = list(problems(found))
    if len(found) < 300:
        wrong.append(f"found {len(found)} types: the parser is at fault")
    print("\n".join(wrong) or f"{len(found)} types, each of a name of its own")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
