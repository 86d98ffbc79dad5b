"""Page faults of the process within timed regions, by the kernel's count."""

from __future__ import annotations

import resource
from typing import NamedTuple


class Faults(NamedTuple):
    """Page faults of `rows` timed regions: pages that were in memory, and pages that were read from a disk."""

    rows: int = 0
    minor: int = 0
    major: int = 0

    def plus(self, other: Faults) -> Faults:
        return Faults(self.rows + other.rows, self.minor + other.minor, self.major + other.major)


class TimedFaults:
    """The sums of one phase, of cold regions and of warm ones."""

    def __init__(self) -> None:
        self._begin = Faults()
        self._region = Faults()
        self._sums = {"cold_faults": Faults(), "warm_faults": Faults()}

    def begin(self) -> None:
        self._begin = _now()

    def end(self) -> None:
        now = _now()
        self._region = Faults(1, now.minor - self._begin.minor, now.major - self._begin.major)

    def count(self, cold: bool) -> None:
        """Adds the region that has just ended."""
        name = "cold_faults" if cold else "warm_faults"
        self._sums[name] = self._sums[name].plus(self._region)

    def evidence(self) -> dict[str, dict[str, int]]:
        return {name: faults._asdict() for name, faults in self._sums.items()}


def _now() -> Faults:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Faults(0, usage.ru_minflt, usage.ru_majflt)
