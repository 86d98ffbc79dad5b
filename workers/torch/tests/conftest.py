"""Tiny checkpoints, and arms of them in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[2] / "tests" / "parity")]

BUILD = Path(os.environ["ASSAY_BUILD"]).absolute() if "ASSAY_BUILD" in os.environ else None
# The tests of one run share kernels; a fresh clone has none, so no run begins with another's.
SHARED = tempfile.TemporaryDirectory(prefix="assay-torch-tests-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{SHARED.name}/inductor"
os.environ["TRITON_CACHE_DIR"] = f"{SHARED.name}/triton"
os.environ["HF_HUB_OFFLINE"] = "1"
FAMILIES = ("gpt2", "llama", "qwen2")
SOAK = "ASSAY_SOAK" in os.environ
TOY = "toy"  # the model of toy.py, which takes a family's place where nothing is computed that a test looks at
CHEAP = "llama" if SOAK else TOY


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "overhead: prints a timing")
    config.addinivalue_line("markers", "soak: its compiling takes longer than what it alone shows is worth in each run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not SOAK and item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def checkpoints_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's checkpoint of one layer."""
    import torch

    import checkpoints
    torch.set_num_threads(1)
    made: dict[str, Path] = {}
    configs = {"gpt2": lambda: checkpoints.gpt2(n_layer=1),
               "llama": lambda: checkpoints.llama(num_hidden_layers=1, num_attention_heads=6, num_key_value_heads=2),
               "qwen2": lambda: checkpoints.qwen2(num_hidden_layers=1, hidden_size=112, num_attention_heads=14,
                                                  num_key_value_heads=2, tie_word_embeddings=True)}

    def folder(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp(family)
            checkpoints.make(configs[family](), torch.float32, made[family])
        return made[family]
    return folder


@pytest.fixture
def arm(checkpoints_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes an Engine of a family, or of the toy: arm("llama", mode="default", cache="static", torch_backend="aot_eager")."""
    import torch

    import toy
    from assay_torch import compat, models
    from assay_torch.cachedirs import CacheFolders
    from assay_torch.engine import Engine
    from assay_torch.options import parse_options
    from assay_torch.requests import Load
    limit = compat.recompile_limit_key(torch._dynamo.config)
    default_limit = getattr(torch._dynamo.config, limit)

    from transformers import GPT2LMHeadModel
    open_model = models.open_model
    monkeypatch.setattr(models, "open_model",
                        lambda load, *given: toy.make() if load.model == TOY else open_model(load, *given))

    def make(family: str, mode: str = "eager", cache: str = "dynamic", dynamic: str = "", dtype: str = "fp32",
             folders: CacheFolders | None = None, **options: Any) -> Engine:
        if family == "gpt2" and not compat.takes_caches(GPT2LMHeadModel, cache):
            pytest.skip(f"the GPT-2 of transformers {compat.transformers_version()} takes no cache objects")
        torch._dynamo.reset()
        setattr(torch._dynamo.config, limit, default_limit)
        load = Load(TOY if family == TOY else str(checkpoints_of(family)), dtype, mode, cache, dynamic, 1, False,
                    {"keep_cache": True, "explain": False, "device": "cpu", **options})
        return Engine(load, parse_options(load), folders or CacheFolders(keep=True))
    yield make
    setattr(torch._dynamo.config, limit, default_limit)


def native_tokens(folder: Path, prompts: list[list[int]], steps: int, cache: str = "dynamic") -> list[list[int]]:
    """The native engine's greedy tokens of the same checkpoint."""
    if BUILD is None or not (BUILD / "assay_engine_run").exists():
        pytest.skip("the native engine isn't built")
    request = {"folder": str(folder), "cache": cache, "dtype": None, "prompts": prompts, "steps": steps, "pad_to": 0,
               "threads": 1, "feed": None}
    done = subprocess.run([BUILD / "assay_engine_run"], input=json.dumps(request) + "\n", capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)["tokens"]
