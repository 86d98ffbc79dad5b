"""Variables that change what is compiled, or whether, as the process found them; import it before any is set."""

from __future__ import annotations

import os

_PREFIXES = ("TORCH", "TRITON_", "INDUCTOR_", "PYTORCH_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_TF32", "OMP_", "MKL_",
             "KMP_", "GOMP_")
_NAMES = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH")

AT_START = {name: value for name, value in sorted(os.environ.items()) if name in _NAMES or name.startswith(_PREFIXES)}
