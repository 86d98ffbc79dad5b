#!/usr/bin/env python3
"""Holds what two builds of the program find in the same bundles equal, to the last digit:

    tests/same_findings.py OLD_PROGRAM NEW_PROGRAM BUNDLE_OR_ROWS...

Each argument is a bundle, or a folder of docs/results with the rows of one. Members of findings are compared by name,
whatever their order: an element of a list is told by its words, not by its place. Prints each difference on a line;
exits with 1 if there is one."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Members that tell an element of a list from its neighbours.
NAMES = ("name", "kind", "stratum", "arm", "other", "against", "baseline", "phase", "scenario", "model", "batch", "cell_id", "process",
         "new_tokens", "prompt_tokens")
# Members that differ between builds of one program by themselves.
IGNORED = {"assay_version", "schema_version", "commit"}


def name_of(element):
    if not isinstance(element, dict):
        return None
    name = [f"{key}={element[key]}" for key in NAMES if isinstance(element.get(key), (str, int))]
    return ",".join(name) or None


def flat(value, path=""):
    """Every number, text and flag below `value`, by its path."""
    if isinstance(value, dict):
        for key, member in value.items():
            if key not in IGNORED:
                yield from flat(member, f"{path}.{key}")
        return
    if not isinstance(value, list):
        yield path, value
        return
    met = {}
    for i, element in enumerate(value):
        name = name_of(element)
        if name is None:
            name = str(i)
        else:  # several of one name are told by their order
            met[name] = met.get(name, 0) + 1
            name += f"#{met[name]}" if met[name] > 1 else ""
        yield from flat(element, f"{path}[{name}]")


def findings(program, bundle):
    """The findings of a copy of the bundle, because `analyze` writes into the folder that it reads."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / pathlib.Path(bundle).name
        shutil.copytree(bundle, copy)
        done = subprocess.run([program, "analyze", "-o", "json", copy], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} analyze {bundle}: expected exit status 0, found {done.returncode}: {done.stderr.strip()}")
    return dict(flat(json.loads(done.stdout)))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    old_program, new_program, *bundles = sys.argv[1:]
    differences = members = 0
    for bundle in bundles:
        old, new = findings(old_program, bundle), findings(new_program, bundle)
        members += len(old)
        for path in sorted(old.keys() | new.keys()):
            a, b = old.get(path, "nothing"), new.get(path, "nothing")
            if a != b:
                differences += 1
                print(f"{pathlib.Path(bundle).name}{path}: {a} before, {b} after")
    print(f"{len(bundles)} bundles, {members} members, {differences} differences", file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
