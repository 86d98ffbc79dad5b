"""The benchmarks whose results are beside this file: products of matrices, and a sum."""
import sys
import torch
import cuda.bench as bench

def product(state):
    n = state.get_int64("n")
    dtype = {"fp16": torch.float16, "fp32": torch.float32}[state.get_string("dtype")]
    if n == 3:
        state.skip("three isn't measured")
        return
    a = torch.randn(n, n, device="cuda").to(dtype)
    b = torch.randn(n, n, device="cuda").to(dtype)
    state.add_global_memory_reads(2 * a.nbytes)
    state.add_global_memory_writes(a.nbytes)
    def launch(launch):
        with torch.cuda.stream(torch.cuda.ExternalStream(launch.get_stream().addressof())):
            torch.mm(a, b)
    state.exec(launch, batched=False)

def vector_sum(state):
    share = state.get_float64("share")
    x = torch.randn(int(4e6 * share), device="cuda")
    state.add_element_count(x.numel())
    def launch(launch):
        with torch.cuda.stream(torch.cuda.ExternalStream(launch.get_stream().addressof())):
            x.sum()
    state.exec(launch)

p = bench.register(product)
p.add_int64_axis("n", [3, 256, 1024])
p.add_string_axis("dtype", ["fp16", "fp32"])
v = bench.register(vector_sum)
v.add_float64_axis("share", [0.5, 1.0])
bench.run_all_benchmarks(sys.argv)
