"""The torch worker: transformers models under PyTorch behind assay's worker protocol (docs/worker-protocol.md).

Started by `assay run` with descriptor 3 open for requests and descriptor 4 for replies. torch is imported by `load`,
after the environment that the arm's options ask for is set.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from assay_torch.serve import serve_descriptors  # noqa: E402

if __name__ == "__main__":
    # The interpreter's own end is skipped: libraries crash in it, and the exit status is part of the protocol.
    os._exit(serve_descriptors(request_descriptor=3, reply_descriptor=4))
