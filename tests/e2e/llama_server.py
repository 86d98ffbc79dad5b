"""llama.cpp's server, which takes a free port and says where it listens.

usage: llama_server.py MODEL.gguf [THREADS [SLOTS]]
"""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 2048 * (int(sys.argv[3]) if len(sys.argv) > 3 else 1)
params.n_parallel = int(sys.argv[3]) if len(sys.argv) > 3 else 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
server = xllamacpp.Server(params)
print(f"listening on {server.listening_address}", flush=True)
threading.Event().wait()
