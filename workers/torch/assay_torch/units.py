"""Counts between one `prepare` and the next: a unit's calls, and what was compiled for it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from assay_torch.cachedirs import CacheFolders
from assay_torch.watch import Counts, Watch


@dataclass
class Runs:
    """Counts of a unit's timed regions: calls that were to be compiled, those that went eager, graphs replayed."""

    regions: int = 0
    calls: int = 0
    fallbacks: int = 0
    graph_runs: int = 0
    graph_replays: int = 0


@dataclass
class Totals:
    """Counts of the process at one moment; `kernels_in_graphs` is None if this torch doesn't tell."""

    counts: Counts = field(default_factory=Counts)
    kernels_in_graphs: int | None = None

    @staticmethod
    def now(watch: Watch | None) -> Totals:
        return Totals(watch.counts(rescan=True), watch.kernels_in_graphs) if watch else Totals()


class Unit:
    """Begun by a `prepare`; ended by the next, so that what is asked for later is still this unit's."""

    def __init__(self, number: int, phase: str, watch: Watch | None, folders: CacheFolders) -> None:
        self.number, self.phase, self.runs = number, phase, Runs()
        self.step_times: list[dict[str, Any]] = []
        self.prepared: list[dict[str, Any]] = []
        self._watch, self._folders = watch, folders
        self.began = Totals.now(watch)
        self._ended: Totals | None = None
        self._last_folders: dict[str, Any] | None = None

    def end(self) -> None:
        """Before the folders are renewed."""
        self._ended = self.totals()
        self._last_folders = self.cache_folders()

    def totals(self) -> Totals:
        """Counts of the process when this unit ended."""
        return self._ended or Totals.now(self._watch)

    def counts(self) -> Counts:
        return Counts(**self.totals().counts.minus(self.began.counts))

    def kernels_in_graphs(self) -> int | None:
        before, after = self.began.kernels_in_graphs, self.totals().kernels_in_graphs
        return None if before is None or after is None else after - before

    def cache_folders(self) -> dict[str, Any]:
        return self._last_folders or {**self._folders.evidence(), "kernels_written": self.counts().kernels_compiled}

    def of(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of `records` that are this unit's, or (None) everyone's."""
        return [one for one in records if one["unit"] in (None, self.number)]


def counters(counts: Counts, runs: list[Runs]) -> dict[str, int]:
    return {one.name: getattr(counts, one.name) for one in fields(counts)} | {
        "fallbacks": sum(one.fallbacks for one in runs), "calls": sum(one.calls for one in runs)}
