"""Measures the rate at which the device reads its memory: the limit that a decode step is held against."""

from __future__ import annotations

import contextlib
import functools
import time
from pathlib import Path
from typing import Any

import torch

BYTES = {"cpu": 1 << 29, "cuda": 1 << 30}  # a multiple of any last-level cache
PASSES = 5


@functools.cache
def measure(device: torch.device) -> dict[str, Any]:
    """The best of some passes of a reduction over a buffer that no cache holds, which is a lower bound of what the
    device can do. Once a process, before the model is there: nothing of it is left when anything is timed."""
    try:
        buffer = torch.ones(BYTES[device.type] // 4, device=device)  # fp32
        seconds = min(_seconds(reduce, buffer, device) for reduce in (torch.sum, torch.amax) for _ in range(PASSES))
        found = {"bytes_per_s": buffer.nbytes / seconds, "bytes": buffer.nbytes, "passes": 2 * PASSES,
                 "by": "torch.sum and torch.amax of fp32", "threads": torch.get_num_threads()}
    except Exception as error:  # pylint: disable=broad-except
        found = {"error": f"{type(error).__name__}: {error}"}
    buffer = None
    if device.type == "cuda":
        torch.cuda.empty_cache()
    else:
        _forget_peak()
    return found


def _seconds(reduce: Any, buffer: torch.Tensor, device: torch.device) -> float:
    _synchronize(device)
    begin = time.perf_counter()
    reduce(buffer)
    _synchronize(device)
    return time.perf_counter() - begin


def _forget_peak() -> None:
    """The buffer would count in the process's peak_rss_bytes for good."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
