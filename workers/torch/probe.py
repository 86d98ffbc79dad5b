"""Prints, as one line of JSON, what this interpreter offers to the torch worker.

Imports only what it asks about, so that a broken package is an answer and not a failure.
"""

import json
import os
import platform
import shutil
import subprocess
import sys


def first_line(text):
    lines = str(text).strip().splitlines()
    return lines[0][:300] if lines else ""


def described(error):
    return f"{type(error).__name__}: {first_line(error)}"


def about_torch(found):
    import torch

    found["torch"] = torch.__version__
    found["torch_git"] = torch.version.git_version
    found["torch_cuda"] = torch.version.cuda
    try:
        about_device(torch, found)
    except Exception as error:  # a driver that is too old, a device that is lost
        found["cuda_error"] = described(error)


def about_device(torch, found):
    if not torch.cuda.is_available():
        found["cuda_error"] = "torch.cuda.is_available() is false"
        return
    properties = torch.cuda.get_device_properties(0)
    found["cuda_device"] = properties.name
    found["cuda_devices"] = torch.cuda.device_count()
    found["cuda_capability"] = list(torch.cuda.get_device_capability(0))
    found["cuda_memory_bytes"] = properties.total_memory
    uuid = str(getattr(properties, "uuid", ""))
    if uuid:
        found["cuda_uuid"] = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"


def about_transformers(found):
    from importlib.metadata import version
    from importlib.util import find_spec

    if find_spec("transformers") is None:
        raise ModuleNotFoundError("No module named 'transformers'")
    found["transformers"] = version("transformers")


def about_triton(found):
    import triton

    found["triton"] = triton.__version__


def about_compilers(found):
    """The compilers that Inductor and Triton choose: CXX or g++; CC, else gcc or clang."""
    cxx = os.environ.get("CXX") or "g++"
    where = shutil.which(cxx)
    if where is None:
        found["cxx_error"] = f"{cxx} is not on the path"
    else:
        try:
            done = subprocess.run([where, "--version"], capture_output=True, text=True, timeout=30, check=True)
            found["cxx"] = first_line(done.stdout)
            found["cxx_path"] = where
        except (OSError, subprocess.SubprocessError) as error:
            found["cxx_error"] = described(error)
    cc = os.environ.get("CC")
    candidates = [cc] if cc else ["gcc", "clang"]
    found["cc"] = next((path for path in map(shutil.which, candidates) if path), None)


def main():
    found = {"python": platform.python_version(), "executable": sys.executable}
    for package, ask in (("torch", about_torch), ("transformers", about_transformers), ("triton", about_triton)):
        try:
            ask(found)
        except BaseException as error:  # some packages exit, or abort the import with anything at all
            found[package] = None
            found[f"{package}_error"] = described(error)
    about_compilers(found)
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
