"""The check of a GPU, without one: what it runs, in which order, when it stops, and what its status says."""

import sys
import threading

import cuda_check
import pytest


def row_of(cell, outcome="ok", token="a"):
    model, arm, cache = cell
    phase = {"samples": [{"output_hash": token, "latency_ns": 1}], "profile": {"kernels_launched": 1, "wall_ns": 1},
             "evidence": {"compiler_real": "yes"}}
    return {"device": "cpu", "model": model, "arm": arm, "cache": cache, "outcome": outcome,
            **{name: phase for name, _ in cuda_check.PHASES}}


def main(monkeypatch, run, *arguments):
    monkeypatch.setattr(cuda_check, "run_cell", lambda model, arm, cache, *_: run((model, arm, cache)))
    monkeypatch.setattr(sys, "argv", ["cuda_check.py", "--out", "/nonexistent", "--jobs", "1", *arguments])
    return cuda_check.main()


def test_the_cheapest_cells_come_first_and_eager_is_always_there():
    cells = cuda_check.cells_of(["tiny", "25m"], [])
    assert [cell[0] for cell in cells[:4]] == ["tiny", "tiny", "25m", "25m"]
    assert all(cell[1][0] == "eager" for cell in cells[:4])
    assert all(cell[1][0] == "max-autotune" for cell in cells[-4:])
    assert len(cells) == 2 * (2 * len(cuda_check.ARMS) - 1), "no manual-cudagraph over a dynamic cache"
    assert {cell[1][0] for cell in cuda_check.cells_of(["tiny"], ["max-autotune"])} == {"eager", "max-autotune"}


def test_a_row_is_printed_as_its_cell_ends(monkeypatch, capsys):
    printed = threading.Event()
    line, last = cuda_check.line, cuda_check.cells_of(["tiny"], [])[-1]

    def noticed(*arguments):
        printed.set()
        return line(*arguments)

    def run(cell):
        return row_of(cell, "ok" if cell != last or printed.wait(30) else "timeout: no row was printed before")
    monkeypatch.setattr(cuda_check, "line", noticed)
    assert main(monkeypatch, run, "--models", "tiny") == 0
    out = capsys.readouterr().out
    assert "eager dynamic" in out and "21 cells, 21 run, 0 failed" in out


@pytest.mark.parametrize("broken,status", [(("eager", "SIGSEGV in prefill"), 1), (("default", "SIGSEGV in prefill"), 0),
                                           (("default", "timeout in prefill"), 1)])
def test_what_may_fail_and_what_must_not(monkeypatch, broken, status):
    mode, outcome = broken
    assert main(monkeypatch, lambda cell: row_of(cell, outcome if cell[1][0] == mode else "ok")) == status


def test_other_tokens_than_eagers_fail(monkeypatch, capsys):
    run = lambda cell: row_of(cell, token="b" if cell[1][0] == "manual-cudagraph" else "a")  # noqa: E731
    assert main(monkeypatch, run, "--models", "tiny") == 1
    assert "FAILED kv_decode: tokens differ from eager's" in capsys.readouterr().out


def test_seconds_stop_it_and_what_was_not_run_is_named(monkeypatch, capsys):
    clock = iter(range(1000))
    monkeypatch.setattr(cuda_check.time, "monotonic", lambda: next(clock))
    assert main(monkeypatch, row_of, "--models", "tiny", "--seconds", "4") == 0
    out = capsys.readouterr().out
    assert "21 cells, 3 run, 0 failed" in out
    assert out.count("not run: 4 s were over") == 18
    assert main(monkeypatch, row_of, "--models", "tiny", "--seconds", "0.5") == 1, "nothing was run"


def test_a_cell_without_an_eager_one_beside_it_proves_nothing():
    cell = ("tiny", cuda_check.ARMS[1], "static")
    ((_, bad),) = cuda_check.judged(iter([(cell, row_of(cell)), (("tiny", cuda_check.ARMS[0], "dynamic"), None)]))
    assert bad == ["no eager cell to hold it against"]
