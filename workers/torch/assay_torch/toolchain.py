"""The compilers and the libraries that they link against: versions, and hashes of the files that were used."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from assay_torch import environment


@functools.cache
def describe(device: torch.device, compiles: bool) -> dict[str, Any]:
    """Cached: nothing of it changes in a process, and the libraries are large."""
    found: dict[str, Any] = {
        "name": "torch", "version": torch.__version__, "git_version": torch.version.git_version,
        "path": str(Path(torch.__file__).parent), "sha256": _tree_hash(Path(torch.__file__).parent / "_inductor"),
        "sha256_of": "torch/_inductor/**/*.py",
        "python": {"version": sys.version.split()[0], "path": sys.executable},
        "platform": platform.platform(),
        "packages": _versions("torch", "transformers", "triton", "safetensors", "tokenizers", "numpy"),
        "libraries": _libraries(device), "triton": _triton() if compiles else None,
        "cuda": _cuda(device), "cpp_compiler": _cpp_compiler() if compiles and device.type == "cpu" else None,
        "environment": environment.AT_START, "float32_matmul_precision": torch.get_float32_matmul_precision()}
    return {name: value for name, value in found.items() if value is not None}


def _versions(*names: str) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _file_hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree_hash(folder: Path) -> str:
    """Hash of all Python files, by relative path and content."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _libraries(device: torch.device) -> list[dict[str, str]]:
    names = ["libtorch_cpu.so", "libtorch_python.so"] + (["libtorch_cuda.so"] if device.type == "cuda" else [])
    paths = [Path(torch.__file__).parent / "lib" / name for name in names]
    return [{"path": str(path), "sha256": _file_hash(path)} for path in paths if path.is_file()]


def _triton() -> dict[str, Any] | None:
    try:
        import triton
    except Exception as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}"}
    folder = Path(triton.__file__).parent
    found: dict[str, Any] = {"version": triton.__version__, "path": str(folder), "sha256_of_python": _tree_hash(folder)}
    library = folder / "_C" / "libtriton.so"
    if library.is_file():
        found |= {"library": str(library), "sha256": _file_hash(library)}
    ptxas = folder / "backends" / "nvidia" / "bin" / "ptxas"
    if ptxas.is_file():
        found["ptxas_sha256"] = _file_hash(ptxas)
    return found


def _cuda(device: torch.device) -> dict[str, Any] | None:
    if device.type != "cuda":
        return {"built_for": torch.version.cuda} if torch.version.cuda else None
    properties = torch.cuda.get_device_properties(device)
    found = {"built_for": torch.version.cuda, "device": properties.name,
             "capability": f"{properties.major}.{properties.minor}", "memory_bytes": properties.total_memory,
             "multiprocessors": properties.multi_processor_count, "cudnn": torch.backends.cudnn.version(),
             "allow_tf32": torch.backends.cuda.matmul.allow_tf32, "driver": _driver_version(),
             "driver_api": _driver_api_version()}
    return {name: value for name, value in found.items() if value is not None}


def _driver_version() -> str | None:
    """From the kernel module, which is the driver."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return None
    return text.splitlines()[0]


def _driver_api_version() -> int | None:
    """The newest CUDA that the driver serves: 13000 is 13.0."""
    ask = getattr(torch._C, "_cuda_getDriverVersion", None)
    return ask() if ask else None


def _cpp_compiler() -> dict[str, Any]:
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler
        name = get_cpp_compiler()
    except Exception as error:  # pylint: disable=broad-except
        return {"error": f"{type(error).__name__}: {error}"}
    path = shutil.which(name)
    if path is None:
        return {"name": name}
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return {"name": name, "path": str(Path(path).resolve()), "version": version.partition("\n")[0],
            "sha256": _file_hash(Path(path).resolve())}
