"""The action of each request on the model: load, prepare, measure, parity, tokenize, profile, evidence."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from assay_torch import VERSION
from assay_torch.cachedirs import CacheFolders
from assay_torch.errors import Unsupported
from assay_torch.options import CACHES, DTYPES, MODES, parse_options
from assay_torch import environment as _environment  # noqa: F401  read before `load` changes it
from assay_torch.requests import Load, Measure, Prepare, Prompt, Shape


class Session:
    """One process's worth of an arm. torch is imported by `load`, once the environment is as the arm wants it."""

    def __init__(self) -> None:
        self._folders: CacheFolders | None = None
        self._engine: Any = None  # Engine, once torch is there

    def describe(self) -> dict[str, Any]:
        return {"worker": "assay-torch", "version": VERSION,
                "capabilities": {"modes": list(MODES), "dynamic": ["false", "true", "auto"], "caches": list(CACHES),
                                 "dtypes": list(DTYPES), "tokenize": True, "device_events": True, "profile": True,
                                 "python": sys.version.split()[0]}}

    def load(self, load: Load) -> dict[str, Any]:
        begin = time.monotonic()
        options = parse_options(load)
        if self._folders is None:
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
            self._folders = CacheFolders(keep=options.keep_cache)
        from assay_torch.engine import Engine
        self._engine = Engine(load, options, self._folders)
        reply = self._engine.loaded()
        reply["seconds"] = time.monotonic() - begin
        return reply

    def prepare(self, request: Prepare) -> dict[str, Any]:
        return self._engine.prepare(request)

    def measure(self, request: Measure, repetition: int, prompt: Prompt) -> dict[str, Any]:
        sample = self._engine.measure(request.shape, repetition, prompt)
        sample["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return sample

    def parity(self, shape: Shape, prompt: Prompt) -> dict[str, Any]:
        return self._engine.parity(shape, prompt)

    def profile(self, shape: Shape, prompt: Prompt, trace_path: str) -> dict[str, Any]:
        path = Path(trace_path)
        if not path.is_absolute() or not path.parent.is_dir():
            raise Unsupported(f"trace_path: expected an absolute path in an existing folder, found {trace_path}")
        return {"summary": self._engine.profile(shape, prompt, path)}

    def tokenize(self, text: str) -> dict[str, Any]:
        return {"ids": self._engine.tokenize(text)}

    def evidence(self, phase: str) -> dict[str, Any]:
        from assay_torch.evidence import collect
        return {"evidence": collect(self._engine, phase)}

    def close(self) -> None:
        if self._folders:
            self._folders.remove()


