#!/usr/bin/env python3
"""Runs every command of a document's ```sh blocks, in order, in an empty folder: docs_commands.py DOCUMENT ASSAY PAGE [full].

A command is a line that starts with "$ ". Each must exit 0, or with N where the line ends in "# exit N". `make test`
is left to whoever runs this test, and `assay serve` with its `curl` lines to e2e.serve; other `make` commands run in the source tree. PAGE: where the demo's page is kept, if the document has the demo.
Without `full` the demo is a short one of a tiny model, whose kernels the compiler doesn't optimise, and studies/tiny.yaml has
fewer repetitions.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "e2e"))
from program import quick_compiler  # noqa: E402


def commands(text):
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                yield line[2:]


def shortened(study, *changes):
    text = study.read_text()
    for whole, short in changes:
        assert text.count(whole) == 1, f"{study}: expected {whole} once"
        text = text.replace(whole, short)
    return text


def short_demo(source, assay, folder):
    """The demo's study of a tiny model with a quarter of the processes and of their repetitions: its page has all figures and
    intervals."""
    model = folder / "demo-model"
    subprocess.run([assay, "model", "make", "tiny-gpt2", "-o", model], check=True, capture_output=True)
    path = folder / "short-demo.yaml"
    path.write_text(shortened(source / "studies/demo.yaml", ("repetitions: 144", "repetitions: 12"),
                              ("processes: 16", "processes: 4"), ("path: models/gpt2-25m", f"path: {model}")))
    return str(path)


def ready_studies(source, folder, full):
    """`studies/` as a user finds it, but without `full` the one that runs three times has the repetitions of walk.yaml."""
    if full:
        (folder / "studies").symlink_to(source / "studies")
        return
    (folder / "studies").mkdir()
    for path in (source / "studies").iterdir():
        if path.name != "tiny.yaml":
            (folder / "studies" / path.name).symlink_to(path)
    (folder / "studies/tiny.yaml").write_text(shortened(source / "studies/tiny.yaml", ("repetitions: 800", "repetitions: 100"),
                                                        ("processes: 20", "processes: 10")))


def main():
    document, assay = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    source = pathlib.Path(__file__).resolve().parent.parent
    page, full = pathlib.Path(sys.argv[3]), sys.argv[4:] == ["full"]
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PATH=f"{assay.parent}:{os.environ['PATH']}")
        environment["DEMO_BUNDLE"], quick = f"{folder}/demo", {}
        if not full:
            environment["DEMO_STUDY"] = short_demo(source, assay, pathlib.Path(folder))
            quick = {"ASSAY_CXX": quick_compiler(pathlib.Path(folder)), "ASSAY_KERNEL_CACHE": f"{folder}/kernels"}
        ready_studies(source, pathlib.Path(folder), full)
        for command in commands(document.read_text()):
            if command.startswith(("make test", "git clone", "cd ", "assay serve", "curl ")):
                continue
            wanted = re.search(r"# exit (\d+)$", command)
            wanted = int(wanted.group(1)) if wanted else 0
            where = source if command.startswith("make ") else folder
            # Other commands than the demo judge what compiled arms gain, so their kernels are as anybody's.
            start = time.monotonic()
            done = subprocess.run(["bash", "-c", command], cwd=where, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  env=environment | (quick if command == "make demo" else {}))
            ran += 1
            if done.returncode != wanted:
                print(f"{document.name}: `{command}`: expected exit {wanted}, found {done.returncode}\n"
                      f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
                return 1
            print(f"ok, {time.monotonic() - start:.0f} s: {command}")
        if (pathlib.Path(folder) / "demo").exists():
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(f"{folder}/demo/report.html", page)
    if ran == 0:
        print(f"{document.name}: expected commands, found none")
        return 1
    return 0


sys.exit(main())
