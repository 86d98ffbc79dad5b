#!/usr/bin/env python3
"""Runs every command of a document's ```sh blocks, in order, in an empty folder: docs_commands.py DOCUMENT ASSAY PAGE [full].

A command is a line that starts with "$ ". Each must exit 0, or with N where the line ends in "# exit N". `make test`
is left to whoever runs this test; other `make` commands run in the source tree. PAGE: where the demo's page is kept.
Without `full` the demo is a short one.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time


def commands(text):
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield line[2:]


def short_demo(source, folder):
    """The demo's study with a quarter of its processes and of their repetitions: its page has all figures and intervals."""
    text = (source / "studies/demo.yaml").read_text()
    for member, whole, short in [("repetitions", 144, 12), ("processes", 16, 4)]:
        text, replaced = re.subn(rf"^{member}: {whole}\b", f"{member}: {short}", text, flags=re.M)
        assert replaced == 1, f"studies/demo.yaml: expected {member}: {whole}"
    path = pathlib.Path(folder) / "short-demo.yaml"
    path.write_text(text)
    return str(path)


def main():
    document, assay = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    source = pathlib.Path(__file__).resolve().parent.parent
    page, full = pathlib.Path(sys.argv[3]), sys.argv[4:] == ["full"]
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PATH=f"{assay.parent}:{os.environ['PATH']}")
        environment["DEMO_BUNDLE"] = f"{folder}/demo"
        if not full:
            environment["DEMO_STUDY"] = short_demo(source, folder)
        (pathlib.Path(folder) / "studies").symlink_to(source / "studies")
        for command in commands(document.read_text()):
            if command.startswith(("make test", "git clone", "cd ")):
                continue
            wanted = re.search(r"# exit (\d+)$", command)
            wanted = int(wanted.group(1)) if wanted else 0
            where = source if command.startswith("make ") else folder
            start = time.monotonic()
            done = subprocess.run(["bash", "-c", command], cwd=where, env=environment, text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            ran += 1
            if done.returncode != wanted:
                print(f"{document.name}: `{command}`: expected exit {wanted}, found {done.returncode}\n"
                      f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
                return 1
            print(f"ok, {time.monotonic() - start:.0f} s: {command}")
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"{folder}/demo/report.html", page)
    if ran == 0:
        print(f"{document.name}: expected commands, found none")
        return 1
    return 0


sys.exit(main())
