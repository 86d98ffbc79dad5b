"""Tests the output to a terminal: a live line with the leader, colours, tables as wide as the terminal; and the plain output
to a pipe and with NO_COLOR.

usage: terminal_test.py ASSAY
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

from program import ProgramTest
from resume_test import write_checkpoint

COLOUR = re.compile(r"\x1b\[[0-9]+m")


class OnATerminal(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-terminal-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        write_checkpoint(self.folder / "model", 1)
        self.study = self.write_study(phases=["prefill"], repetitions=6, processes=2)

    def on_a_terminal(self, *arguments, columns=90, status=(0,), **variables):
        """Everything that comes out at the other end."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
        environment.update(TERM="xterm", **variables)
        child = subprocess.Popen([str(self.program), *map(str, arguments)], cwd=self.folder, env=environment,
                                 stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        while True:
            try:
                got = os.read(ours, 65536)
            except OSError:  # the last of them has closed its end
                break
            if not got:
                break
            text += got
        os.close(ours)
        self.assertIn(child.wait(), status, text)
        return text.decode().replace("\r\n", "\n")

    def live_lines(self, columns, bundle):
        text = self.on_a_terminal("run", self.study, "-o", bundle, columns=columns)
        self.assertTrue(COLOUR.search(text))
        live = [COLOUR.sub("", line.split("\n")[0]) for line in re.split(r"\r\x1b\[K", text)[1:]]
        self.assertTrue(live)
        for line in live[:-1]:  # text follows the last wipe
            self.assertLess(len(line), columns, line)
        return live

    def test_a_run_shows_its_leader_and_colours(self):
        # Which arm leads isn't known, and the line is longer by ", 0.98 of eager-dynamic" if the baseline doesn't. 130
        # columns have room for the unit behind either.
        live = self.live_lines(130, "wide")
        self.assertTrue(any(re.search(r"eager-(dynamic|static) leads.*  unit \d+/\d+", line) for line in live), live)
        live = self.live_lines(60, "narrow")
        self.assertTrue(any(re.search(r"eager-(dynamic|static) leads", line) for line in live), live)

    def test_no_colour_where_it_is_not_wanted(self):
        self.assertFalse(COLOUR.search(self.on_a_terminal("run", self.study, "-o", "plain", NO_COLOR="1")))
        done = self.assay("analyze", "plain")
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        on_a_terminal = self.on_a_terminal("analyze", "plain", columns=100)
        self.assertEqual(COLOUR.sub("", on_a_terminal), done.stdout)
        piped = self.assay("run", self.study, "-o", "piped")
        self.assertNotIn("\x1b", piped.stdout + piped.stderr)

    def test_tables_fit(self):
        study = self.write_study(name="long.yaml", arms=[{"name": "an-arm-of-a-very-long-name-that-nobody-would-type", "backend": "native",
                                                          "mode": "eager", "cache": ["dynamic", "static"]}])
        for columns, variables in ((150, {}), (120, {"COLUMNS": "120"})):
            text = self.on_a_terminal("plan", study, "--cells", columns=150, **variables)
            self.assertIn("\nCells", text)
            table = text[text.index("\nCells"):].splitlines()[2:]
            self.assertEqual(len(table), 2 + 6)
            self.assertLessEqual(max(map(len, table)), columns)
        self.assertGreater(max(map(len, self.succeed("plan", study, "--cells").splitlines())), 150, "in a pipe all of it")

    def test_what_plan_says_fits(self):
        stops = self.write_study(name="stops.yaml", stopping={"decide": True, "max_repetitions": 80}, repetitions=40, processes=8,
                                 order="interleaved")
        for columns in (60, 80):
            for study in (self.study, stops):
                text = self.on_a_terminal("plan", study, columns=columns)
                self.assertLessEqual(max(map(len, text.splitlines())), columns, text)
                self.assertIn("vocabulary", text)
        words = " ".join(self.on_a_terminal("plan", self.study, columns=60).split())
        self.assertIn("once for every 16 tokens, but the vocabulary's once.", words)

    def test_screens_of_bundles_fit(self):
        arms = [{"name": f"an-arm-of-a-very-long-name-{which}", "backend": "native", "mode": "eager", "cache": ["dynamic", "static"]}
                for which in ("one", "two")]
        study = self.write_study(name="screens.yaml", arms=arms, repetitions=6, processes=2)
        for bundle in ("base", "cand"):
            self.succeed("run", study, "-o", bundle)
        for arguments in (["analyze", "base"], ["analyze", "base", "--slow-calls"], ["gate", "base"], ["route", "base"],
                          ["compare", "base", "cand"], ["portability", "base", "cand"]):
            for columns in (80, 100):
                with self.subTest(arguments=arguments, columns=columns):
                    text = self.on_a_terminal(*arguments, columns=columns, status=(0, 1), NO_COLOR="1")
                    lines = text.splitlines()
                    self.assertLessEqual(max(map(len, lines)), columns, text)
                    self.assertLessEqual(len(lines), 40, text)
        # In a pipe a screen is wider than such a terminal.
        self.assertGreater(max(map(len, self.succeed("analyze", "base").splitlines())), 80)

    def test_what_doctor_says_fits(self):
        text = COLOUR.sub("", self.on_a_terminal("doctor", columns=80, ASSAY_TORCH_PYTHON="/nowhere/python"))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_lines_of_a_narrow_table_stay_apart(self):
        study = self.write_study(name="many.yaml", repetitions=4, scenarios=["single_micro", "single_short"], arms=[
            {"name": f"an-arm-of-a-very-long-name-{which}", "backend": "native", "mode": "eager", "cache": ["dynamic", "static"]}
            for which in ("one", "two")])
        for listed, heading in (("--cells", "Cells"), ("--units", "Units")):
            text = self.on_a_terminal("plan", study, listed, columns=80)
            lines = text[text.index(f"\n{heading}") + 1:].splitlines()
            self.assertLessEqual(max(map(len, lines[1:])), 80)
            self.assertEqual(len(lines), len(set(lines)))
            self.assertIn("each with", lines[0])
        whole = self.succeed("plan", study, "--cells")
        self.assertIn("c000-an-arm-of-a-very-long-name-one-dynamic-", whole)

    def test_plan_names_no_time_that_nobody_knows(self):
        compiled = self.write_study(name="compiled.yaml", arms=[{"name": "c", "backend": "native", "mode": "compiled", "cache": "static"}])
        self.assertIn(", compiling an unknown time, ", self.succeed("plan", compiled))
        self.assertIn(", compiling 0 ms, ", self.succeed("plan", self.study))

    def test_an_arm_that_crashes_does_not_lead(self):
        (self.folder / "arm.py").write_text("""
import pathlib, sys
name, ms, fails = sys.argv[1:]
count = pathlib.Path(name + ".count")
runs = int(count.read_text()) if count.exists() else 0
count.write_text(str(runs + 1))
if runs == int(fails):
    sys.exit(1)
print(ms, "ms")
""")
        arms = [{"name": name, "backend": "command", "command": [sys.executable, "arm.py", name, ms, fails], "patterns": [r"(?<latency_ms>\d+) ms"],
                 "workdir": str(self.folder)} for name, ms, fails in (("slow", "9", "-1"), ("fast", "5", "-1"), ("crashing", "1", "1"))]
        study = self.write_study(name="crashing.yaml", models=[{"path": "any/model"}], arms=arms, phases=["e2e_kv"], scenarios=["prompt_16"],
                                 token_lengths=[50], warmup=0, processes=None, repetitions=6)
        text = self.on_a_terminal("run", study, "-o", "crashing", columns=120)
        live = [COLOUR.sub("", line) for line in re.split(r"\r\x1b\[K", text)]
        lost = [line for line in live if "1 lost" in line]
        self.assertTrue(lost, live)
        self.assertEqual([line for line in lost if "crashing leads" in line], [])
        self.assertTrue(any("fast leads, 0.56 of slow" in line for line in lost), lost)

    def test_plan_has_its_totals_first_and_cells_on_request(self):
        text = self.succeed("plan", self.study)
        self.assertTrue(text.startswith("2 cells (1 condition x 2 arms)"), text)
        self.assertNotIn("cell_id", text)
        self.assertIn("Arms here", text)
        self.assertIn("cell_id", self.succeed("plan", self.study, "--cells"))
        self.assertIn("first_order_index", self.succeed("plan", self.study, "--units"))


if __name__ == "__main__":
    unittest.main()
