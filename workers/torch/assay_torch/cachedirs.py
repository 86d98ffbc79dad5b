"""Folders that Inductor and Triton keep kernels in: fresh ones a unit, or the user's; and what is in them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Callable

from assay_torch import compat

PREFIX = "assay-torch-cache-"
# Compiled to ask the processor what it can do, not to run a model.
_PROBE_MARK = b"_chk_kernel"


class CacheFolders:
    """Owns the fresh folders; a lock file in their parent tells one in use from one whose worker was killed."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.fresh = not keep  # whether the unit under way began with nothing in them, nor in torch's memory of them
        self._root: Path | None = None
        self._renewals = 0
        if not keep:
            sweep_abandoned()
            self._root = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = open(self._root / "lock", "w", encoding="utf-8")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._point_to(self._root / "0")
        self._probed: dict[Path, bool] = {}
        self._known: set[Path] = set()  # others', and mine that are counted
        self._before = self._mine = 0

    def folders(self) -> dict[str, Path]:
        """The folders at this time; torch must be importable when the user's own are asked for."""
        cache_dir = compat.inductor_cache_dir()
        inductor = Path(cache_dir() if cache_dir else os.environ.get("TORCHINDUCTOR_CACHE_DIR", "/nonexistent"))
        triton = os.environ.get("TRITON_CACHE_DIR")
        return {"inductor": inductor, "triton": Path(triton) if triton else Path.home() / ".triton" / "cache"}

    def renew(self, forget: Callable[[], None] | None) -> None:
        """Empty folders in place of the last ones, which are removed: nothing that ran from them may be needed any
        more. `forget` empties torch's own memory of them; None: this torch can't, and the unit isn't fresh."""
        self.fresh = forget is not None and self._root is not None
        if forget is None or self._root is None:
            return
        forget()
        last = self._root / str(self._renewals)
        self._renewals += 1
        self._point_to(self._root / str(self._renewals))
        shutil.rmtree(last, ignore_errors=True)
        self._before = 0

    def go_on(self) -> None:
        """Another unit begins with what the last one left."""
        self.fresh = False

    @staticmethod
    def _point_to(folder: Path) -> None:
        """torch and Triton read these whenever they look for a kernel, and hand them to processes that compile."""
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")

    def mark_start(self) -> None:
        self._known = self.kernels()
        self._before = len(self._known)

    def begin_request(self) -> None:
        """The user's folders may have got kernels from other processes while this one was idle."""
        if self.keep:
            self._known |= self.kernels()

    def kernels(self) -> set[Path]:
        """Files of machine code for a model: shared objects of C++ kernels, and Triton's cubins."""
        found = set()
        for path in self._files():
            if path.suffix == ".cubin" or (path.suffix == ".so" and not self._is_probe(path)):
                found.add(path)
        return found

    def compiled(self) -> int:
        """Kernels written during this process's requests so far."""
        new = self.kernels() - self._known
        self._known |= new
        self._mine += len(new)
        return self._mine

    def evidence(self) -> dict[str, object]:
        counts = {}
        for name, folder in self.folders().items():
            files = [path for path in self._files() if path.is_relative_to(folder)]
            counts[name] = {"path": str(folder), "files": len(files)}
        return {"fresh": self.fresh, "folders": counts, "kernels_before": self._before, "kernels_written": self._mine}

    def remove(self) -> None:
        if self._root:
            shutil.rmtree(self._root, ignore_errors=True)
            self._lock.close()
            self._root = None

    def _files(self) -> set[Path]:
        found: set[Path] = set()
        for folder in self.folders().values():
            for parent, _, names in os.walk(folder):
                found.update(Path(parent, name) for name in names)
        return found

    def _is_probe(self, path: Path) -> bool:
        if path not in self._probed:
            try:
                self._probed[path] = _PROBE_MARK in path.with_suffix(".cpp").read_bytes()
            except OSError:
                self._probed[path] = False
        return self._probed[path]


def sweep_abandoned() -> None:
    """Removes the fresh folders of workers that were killed: nobody holds their lock."""
    for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            with open(folder / "lock", "r+", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use, another user's, or just being made
