import hashlib
import pytest

@pytest.mark.benchmark(group="hash")
@pytest.mark.parametrize("size", [1000, 20000])
def test_sha256(benchmark, size):
    benchmark.extra_info["phase"] = "prefill"
    benchmark.extra_info["model"] = "sha"
    benchmark.pedantic(lambda: hashlib.sha256(b"x" * size).hexdigest(), rounds=8, iterations=3, warmup_rounds=1)

def test_sum(benchmark):
    benchmark.pedantic(sum, args=(range(5000),), rounds=6)
