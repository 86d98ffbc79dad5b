"""Page faults are those between begin() and end(), summed for cold and warm regions."""

import mmap

from assay_torch.faults import TimedFaults

PAGES = 512


def touch(memory: mmap.mmap) -> None:
    for page in range(PAGES):
        memory[page * mmap.PAGESIZE] = 1


def test_a_region_that_touches_new_memory_has_a_fault_a_page():
    faults = TimedFaults()
    memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    for cold in (True, False):
        faults.begin()
        touch(memory)
        faults.end()
        faults.count(cold)
    found = faults.evidence()
    assert found["cold_faults"]["rows"] == found["warm_faults"]["rows"] == 1
    assert found["cold_faults"]["minor"] >= PAGES
    assert found["warm_faults"]["minor"] < PAGES / 10, "its pages are there by then"
