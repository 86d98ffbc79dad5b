// The driver, NVRTC and cuBLASLt, asked; a kernel is compiled for nothing but the bandwidth.
#include "backend/native/native_gpu.h"

#include "engine/codegen/cuda/cuda_library.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/matrix_rate.h"
#include "engine/device/cuda/read_bandwidth.h"

namespace assay {
namespace {

using engine::cuda::Driver;

ArmReadiness ask(int number) {
  const auto gpu = Driver::describe(number);
  if (!gpu) {
    return impossible_arm("no_cuda", gpu.error().message,
                          "run it on a machine with an NVIDIA GPU, its driver installed");
  }
  const auto nvrtc = engine::Nvrtc::open();
  if (!nvrtc) {
    return impossible_arm("no_nvrtc", nvrtc.error().message,
                          "fetch it with `make cuda-libs`, or name a libnvrtc.so in ASSAY_NVRTC");
  }
  ArmReadiness readiness;
  readiness.gpu_uuid = gpu->uuid;
  readiness.device = fmt::format("{}, compute capability {}, {}", gpu->name,
                                 gpu->compute_capability, gpu->driver_name());
  readiness.code_generator = fmt::format("nvrtc {} {}", nvrtc->version(), gpu->target);
  readiness.facts = {{"name", gpu->name},
                     {"uuid", gpu->uuid},
                     {"compute_capability", gpu->compute_capability},
                     {"multiprocessors", gpu->multiprocessors},
                     {"memory_bytes", gpu->total_bytes},
                     {"cache_bytes", gpu->cache_bytes},
                     {"driver", gpu->driver_name()},
                     {"nvrtc", nvrtc->version()},
                     {"nvrtc_path", nvrtc->path()}};
  return readiness;
}

}  // namespace

const ArmReadiness& NativeGpus::readiness(int gpu) {
  const auto known = readiness_.find(gpu);
  return known != readiness_.end() ? known->second
                                   : readiness_.emplace(gpu, ask(gpu)).first->second;
}

ArmReadiness NativeGpus::fp8_readiness(int gpu) {
  const ArmReadiness& known = readiness(gpu);
  if (known.verdict == ArmReadiness::Verdict::kImpossible) return known;
  const std::string capability = known.facts.value("compute_capability", "");
  if (capability != engine::cuda::kFp8Capability) {
    return impossible_arm(
        "no_fp8",
        fmt::format("dtype fp8: expected a GPU of compute capability {}, found "
                    "{} of {}",
                    engine::cuda::kFp8Capability, known.facts.value("name", "a GPU"), capability),
        "run it on an H100 or H200, or leave dtype out");
  }
  if (const auto library = engine::open_cuda_library("cublasLt", "ASSAY_CUBLASLT"); !library) {
    return impossible_arm("no_fp8", "dtype fp8: " + library.error().message,
                          "fetch it with `make cuda-libs`, or name a libcublasLt.so in "
                          "ASSAY_CUBLASLT");
  }
  return known;
}

std::optional<ReadLimit> NativeGpus::read_limit(int gpu, uint64_t weight_bytes) {
  if (readiness(gpu).verdict == ArmReadiness::Verdict::kImpossible) return std::nullopt;
  const auto driver = Driver::open(gpu);
  if (!driver || weight_bytes <= (*driver)->info().cache_bytes) return std::nullopt;
  const auto gb_per_s = engine::cuda::measure_read_bandwidth(**driver);
  if (!gb_per_s) return std::nullopt;
  return ReadLimit{*gb_per_s * 1e9, (*driver)->info().cache_bytes};
}

std::optional<double> NativeGpus::matrix_limit(int gpu, const std::string& dtype) {
  const auto type = engine::parse_dtype(dtype);
  if (!type || readiness(gpu).verdict == ArmReadiness::Verdict::kImpossible) return std::nullopt;
  const auto driver = Driver::open(gpu);
  if (!driver) return std::nullopt;
  const auto library = engine::cuda::CublasLt::open(**driver, std::nullopt);
  if (!library) return std::nullopt;
  const auto rate = engine::cuda::measure_matrix_rate(**driver, **library, *type);
  return rate ? std::optional(*rate) : std::nullopt;
}

}  // namespace assay
