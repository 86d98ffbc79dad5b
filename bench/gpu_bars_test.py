"""The table of gpu_bars on a program made up here: what it asks, bars by batch and by length, and what fails."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import gpu_bars
from gpu_bars import Work, line, measured

# Answers with the rows that it finds in a file beside it, by its arguments, and keeps these.
PROGRAM = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "asked", "a") as asked: asked.write(" ".join(sys.argv[1:]) + "\\n")
for part, answer in json.loads((here / "answers").read_text()):
    if part in " ".join(sys.argv[1:]):
        print(answer["out"]); print(answer.get("err", ""), file=sys.stderr); sys.exit(answer.get("status", 0))
"""


def row(test, ms, batch=1, prompt=0, tokens=64, lost=0, share=None):
    nanoseconds = None if ms is None else ms * tokens * 1e6
    return {"test": test, "n_prompt": prompt, "n_gen": 0 if prompt else tokens, "batch": batch, "lost": lost,
            "avg_ns": nanoseconds, "avg_low_ns": nanoseconds and nanoseconds * 0.99, "avg_high_ns": nanoseconds and nanoseconds * 1.01,
            "limit_share": share, "device": "NVIDIA H200", "build_commit": "abc", "test_time": "2026-11-27T06:00:00Z"}


class GpuBars(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = pathlib.Path(self.folder.name) / "assay"
        self.program.write_text(PROGRAM.format(python=sys.executable))
        os.chmod(self.program, 0o755)

    def answer(self, *answers):
        (self.program.parent / "answers").write_text(json.dumps(
            [(part, {"out": json.dumps(out)} if isinstance(out, list) else out) for part, out in answers]))

    def asked(self):
        return (self.program.parent / "asked").read_text().splitlines()

    def test_steps_have_bars_by_batch_and_ms_of_one_token(self):
        work = Work("m", {1: 0.66, 8: 0.85}, depth=128)
        self.answer(("-b 1,8", [row("tg64 @ d128", 0.65, share=0.8), row("tg64 @ d128 b8", 0.901, batch=8)]))
        lines, said = measured(str(self.program), [work], "cuda:1")
        self.assertEqual([cells[1:] for cells in lines],
                         [["tg64 @ d128", "0.650 [0.643, 0.656]", "0.80", "0.66", "met"],
                          ["tg64 @ d128 b8", "0.901 [0.892, 0.910]", "-", "0.85", "MISSED by 6.0%"]])
        self.assertEqual(said, {("NVIDIA H200", "abc", "2026-11-27")})
        self.assertEqual(self.asked(), ["bench m -p 0 -n 64 -d 128 -b 1,8 -r 5 --dtype bf16 --device cuda:1 --arms compiled -o json"])

    def test_prompts_have_bars_by_length_and_ms_of_a_prompt(self):
        work = Work("m", {128: 1.0, 512: 2.0}, repetitions=10)
        self.answer(("-p 128,512 -n 0", [row("pp128", 1.0, prompt=128, tokens=1), row("pp512", 2.04, prompt=512, tokens=1)]))
        lines, _ = measured(str(self.program), [work], "cuda")
        self.assertEqual([cells[-1] for cells in lines], ["met", "MISSED by 2.0%"])

    def test_lost_rows_meet_no_bar(self):
        work = Work("m", {8: 0.85}, depth=128)
        self.assertEqual(line(work, row("tg64", 0.5, batch=8, lost=2))[-1], "LOST 2 rows")
        self.assertEqual(line(work, row("tg64", None, batch=8))[-1], "LOST all rows")

    def test_a_run_that_fails_is_a_line_and_the_others_go_on(self):
        works = [Work("broken", {1: 1.0}, depth=128), Work("short", {1: 1.0, 2: 1.0}, depth=128), Work("good", {1: 1.0}, depth=128)]
        self.answer(("broken", {"out": "", "err": "note\nassay: no GPU", "status": 3}), ("short", [row("tg64", 0.9)]),
                    ("good", [row("tg64", 0.9)]))
        lines, _ = measured(str(self.program), works, "cuda")
        self.assertEqual([cells[-1] for cells in lines], ["FAILED: assay: no GPU", "met", "FAILED: 1 of 2 tests", "met"])

    def run_main(self, *arguments):
        out = io.StringIO()
        with mock.patch.object(sys, "argv", ["gpu_bars", "--assay", str(self.program), *arguments]), contextlib.redirect_stdout(out):
            return gpu_bars.main(), out.getvalue().splitlines()

    def test_the_exit_status_says_if_all_bars_are_met(self):
        self.answer(("qwen2.5-0.5b", [row("tg64 @ d128", 0.37)]), ("qwen2.5-1.5b", [row("tg64 @ d128", 0.9)]))
        status, said = self.run_main("--only", "qwen2.5-0.5b")
        self.assertEqual((status, said[0], said[-1]), (0, "NVIDIA H200, commit abc, 2026-11-27", "1 of 1 bars are met"))
        status, said = self.run_main("--only", "qwen")
        self.assertEqual((status, said[-1]), (1, "1 of 2 bars are met"))

    def test_only_names_some_run(self):
        with self.assertRaisesRegex(SystemExit, "--only gpt: expected a part of a run's arguments"):
            self.run_main("--only", "gpt")


if __name__ == "__main__":
    unittest.main()
