// A pass is one launch: every thread has eight loads of 16 bytes in flight.
#include "engine/device/cuda/read_bandwidth.h"

#include <algorithm>
#include <string>

#include "engine/codegen/cuda/nvrtc.h"
#include "engine/device/cuda/gpu_memory.h"

namespace assay::engine::cuda {
namespace {

constexpr const char* kSource = R"(
struct Args { const uint4* from; long vectors; unsigned* sum; };
extern "C" __global__ void __launch_bounds__(512) assay_read(const Args args) {
  const long threads = (long)gridDim.x * 512, first = (long)blockIdx.x * 512 + threadIdx.x;
  unsigned sum = 0;
  for (long i = first; i < args.vectors; i += threads * 8) {
    uint4 v[8];
    #pragma unroll
    for (int k = 0; k < 8; ++k) {
      const long at = i + k * threads;
      v[k] = at < args.vectors ? __ldcs(args.from + at) : make_uint4(0, 0, 0, 0);
    }
    #pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  if (sum == 0x9e3779b9u) *args.sum = sum;  // so that the reads are needed
}
)";
constexpr size_t kBytes = size_t{1} << 30;
constexpr int kPasses = 20;

}  // namespace

Result<double> measure_read_bandwidth(Driver& driver) {
  ASSAY_TRY(const Nvrtc nvrtc, Nvrtc::open());
  ASSAY_TRY(const Cubin cubin, nvrtc.compile(kSource, driver.info().target));
  ASSAY_TRY(const GpuBlock memory, GpuBlock::allocate(driver, kBytes));
  ASSAY_TRY(const GpuBlock sum, GpuBlock::allocate(driver, sizeof(unsigned)));
  ASSAY_CHECK(driver.fill(memory.address(), 0x35, kBytes));
  ASSAY_TRY(const Module module, driver.load(cubin.bytes));
  const auto measured = [&]() -> Result<double> {
    ASSAY_TRY(const Function function, driver.function(module, "assay_read"));
    struct {
      Address from;
      int64_t vectors;
      Address sum;
    } arguments{memory.address(), static_cast<int64_t>(kBytes / 16), sum.address()};
    const Blocks blocks{.x = static_cast<unsigned>(driver.info().multiprocessors * 4)};
    double best = 0;
    for (int pass = 0; pass <= kPasses; ++pass) {
      ASSAY_CHECK(driver.start_timer());
      ASSAY_CHECK(driver.launch(function, blocks, 512, &arguments, false));
      ASSAY_TRY(const double ms, driver.stop_timer_ms());
      if (pass > 0) best = std::max(best, static_cast<double>(kBytes) / ms * 1e-6);
    }
    return best;
  }();
  driver.unload(module);
  return measured;
}

}  // namespace assay::engine::cuda
