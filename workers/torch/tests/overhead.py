"""The worker's own time within a timed region, by a model that does nothing: prints medians beside the bar.

  "$(scripts/torch-env | tail -1)" workers/torch/tests/overhead.py
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from driver import Worker  # noqa: E402

BAR_US = 30
REPETITIONS = 500


def main() -> int:
    missed = 0
    with Worker() as worker:
        worker.hello()
        worker.load(options={"noop": True})
        print(f"{'region of a no-op model':32} {'median us':>9} {'p90':>7} {'bar':>5}")
        for phase, steps in (("prefill", 0), ("kv_decode", 1), ("e2e_kv", 1), ("kv_decode", 64)):
            shape = {"phase": phase, "batch": 1, "new_tokens": steps, "capacity": 8 + steps}
            worker.ask("prepare", **shape, padded_lens=[8])
            done = worker.ask("measure", **shape, prompts=[{"ids": [[1] * 8], "pad": [0]}],
                              repetitions=[{"repetition": n, "prompt": 0} for n in range(REPETITIONS)])
            times = sorted(one["latency_ns"] / 1000 / max(1, steps if steps > 1 else 1) for one in done["all"][1:])
            median = statistics.median(times)
            missed += median >= BAR_US
            name = f"{phase}, {steps} step{'s, each' if steps > 1 else ''}" if steps else phase
            print(f"{name:32} {median:9.1f} {times[int(0.9 * len(times))]:7.1f} {BAR_US:5}"
                  + ("  MISSED" if median >= BAR_US else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
