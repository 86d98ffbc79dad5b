"""The tables of engine_vs_torch on answers made up here, and its peers on processes that misbehave."""

import contextlib
import io
import sys
import tempfile
import unittest

import speed_table
from gpu_table import Work, decode, gpu_table, prefill
from peers import Peer, PeerFailed, one_turn
from speed_table import Cell, decode_table, prefill_table

ARMS = ["engine eager", "engine compiled", "torch eager", "torch compile"]
DECODE = {"do": "decode"}


def cell(ms, **more):
    made = Cell()
    for value in ms:
        made.add({"ms": value, "tokens": [1, 2], **more})
    return made


def printed(table, row, request):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        missed = table([row], ARMS, request)
    return text.getvalue().splitlines()[-1], missed


def row(cells, request):
    return {"model": "m", "dtype": "fp32", "by_turns": True, "read_gb_s": 20.0,
            "cells": {(arm, str(request)): cells.get(arm, Cell()) for arm in ARMS}}


def gpu_line(work, cells):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        missed = gpu_table([(work, {arm: cells.get(arm, Cell()) for arm in ARMS})], ARMS, 4000.0)
    return [part.strip() for part in text.getvalue().splitlines()[-1].strip("|").split("|")], missed


class GpuTable(unittest.TestCase):
    def test_a_bar_is_of_the_compiled_arms_median(self):
        compiled = cell([0.7, 0.8, 0.9], bytes=2.4e9)
        compiled.note_first({"first_ms": 2100.0})
        compiled.note_first({"first_ms": 1.0})
        cells = {"engine compiled": compiled, "torch compile": cell([1.5])}
        line, missed = gpu_line(Work("m", "bf16", decode(), 0.75), cells)
        self.assertEqual((line[0], missed), ("decode m bf16", 1))
        self.assertEqual(line[-5:], ["<= 0.75 MISSED", "-", "0.75", "2.1", "-"])
        line, missed = gpu_line(Work("m", "bf16", decode(8), 0.8), cells)
        self.assertEqual((line[0], line[-5], missed), ("decode m bf16, batch 8", "<= 0.8 ok", 0))

    def test_a_bar_may_be_a_part_of_torchs_best(self):
        cells = {"engine compiled": cell([1.0]), "torch eager": cell([1.8]), "torch compile": cell([2.4])}
        self.assertEqual(gpu_line(Work("m", "fp32", decode(), of_torch=0.5), cells)[0][-5], "<= 0.9 MISSED")
        self.assertEqual(gpu_line(Work("m", "fp32", decode(), of_torch=0.5), {"engine compiled": cell([1.0])})[0][-5], "-")

    def test_an_arm_that_failed_says_why(self):
        failed = Cell()
        failed.failure = "out of memory"
        line, missed = gpu_line(Work("m", "bf16", prefill(512), 2.8), {"engine compiled": failed})
        self.assertEqual((line[0], line[2], line[-5], missed), ("prefill m bf16, 512 tokens", "out of memory", "-", 0))

    def test_eager_is_held_against_torch_and_the_first_step_against_seconds(self):
        compiled = cell([0.7])
        compiled.note_first({"first_ms": 8100.0})
        cells = {"engine eager": cell([3.5]), "engine compiled": compiled, "torch eager": cell([7.0])}
        work = Work("m", "bf16", decode(), 0.75, eager_aim=3.0, cold_s=8.0)
        line, missed = gpu_line(work, cells)
        self.assertEqual((line[-4], line[-2], missed), ("<= 7 ok, aim 3 missed", "8.1 (<= 8 MISSED)", 1))
        cells["torch eager"] = cell([3.4])
        self.assertEqual(gpu_line(work, cells)[0][-4], "<= 3.4 MISSED, aim 3 missed")

    def test_tokens_are_held_against_the_engines_eager_ones(self):
        cells = {"engine eager": cell([1]), "engine compiled": cell([1]), "torch eager": cell([1], tokens=[1, 3]),
                 "torch compile": cell([1], tokens=None)}
        self.assertEqual(gpu_line(Work("m", "bf16", decode()), cells)[0][-1], "torch eager 1 of 2")
        cells["torch eager"] = cell([1])
        self.assertEqual(gpu_line(Work("m", "bf16", decode()), cells)[0][-1], "all")


class Tables(unittest.TestCase):
    def test_bars_are_held_against_medians(self):
        compiled = cell([10, 11, 30], bytes=198e6)  # 18 of 20 GB/s by the median
        cells = {"engine eager": cell([12]), "engine compiled": compiled, "torch eager": cell([20]),
                 "torch compile": cell([11.5])}
        line, missed = printed(decode_table, row(cells, DECODE), DECODE)
        self.assertEqual(missed, 0)
        self.assertIn("| 18.0 of 20.0 | 0.90 (>= 0.85 ok) | 1.09 (>= 1.00 ok) | 1.05 (>= 1.00 ok) | yes |", line)
        compiled.ms = [12.5, 12.5, 12.5]
        line, missed = printed(decode_table, row(cells, DECODE), DECODE)
        self.assertEqual(missed, 3)
        self.assertEqual(line.count("MISSED"), 3)

    def test_an_arm_that_failed_says_so_and_is_compared_with_nothing(self):
        failed = Cell()
        failed.failure = "timed out"
        request = {"do": "prefill", "tokens": 128}
        cells = {"engine eager": cell([12]), "engine compiled": cell([10]), "torch compile": failed}
        line, missed = printed(prefill_table, row(cells, request), request)
        self.assertIn("| - | timed out | 1.20 (>= 1.00 ok) | - | yes |", line)
        self.assertEqual(missed, 0)

    def test_arms_that_choose_other_tokens_are_named(self):
        self.assertEqual(speed_table.same_tokens([cell([1]), cell([1])]), "yes")
        self.assertEqual(speed_table.same_tokens([cell([1]), cell([1], tokens=[3])]), "no")


class Turns(unittest.TestCase):
    def turn(self, request, all_ms):
        """Its ms and pass, and how many passes it took."""
        passes = [(ms, [number], None) for number, ms in enumerate(all_ms)]
        left = iter(passes)
        answer = one_turn(request, lambda: next(left))
        return answer, len(passes) - len(list(left))

    def test_prefill_on_a_gpu_is_a_median_behind_an_untimed_pass(self):
        answer, taken = self.turn(prefill(128), [90, 3, 1, 50, 2, 4, 0])
        self.assertEqual((answer, taken), ((3, [5], None), 6))

    def test_anything_else_is_one_pass(self):
        for request in ({"do": "prefill", "tokens": 128}, decode()):
            self.assertEqual(self.turn(request, [90, 3]), ((90, [0], None), 1))


class Peers(unittest.TestCase):
    def peer(self, script):
        with tempfile.NamedTemporaryFile() as log:
            peer = Peer([sys.executable, "-c", script], log.name)
        self.addCleanup(peer.stop)
        return peer

    def refused(self, script, timeout_s=60):
        peer = self.peer(script)
        with self.assertRaises(PeerFailed) as failed:
            peer.ask({"do": "load"}, timeout_s)
        return str(failed.exception)

    def test_answers_and_failures(self):
        self.assertEqual(self.peer("input(); print('{\"ms\": 1}')").ask({}, 60), {"ms": 1})
        self.assertEqual(self.refused("input(); print('{\"error\": \"no memory\"}')"), "no memory")
        self.assertIn("died", self.refused("input(); raise SystemExit(3)"))
        self.assertEqual(self.refused("import time; time.sleep(600)", timeout_s=0.1), "timed out")


if __name__ == "__main__":
    unittest.main()
