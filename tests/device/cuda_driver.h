// Helpers of the device tests: the few functions of the CUDA driver that they call, opened at run
// time, and the folder of their kernels.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::test {

// True if a processor computes what kernels do (tests/simt): a thousand times slower.
inline bool on_the_processor() {
  return getenv("FAKE_CUDA_RUNS") != nullptr;
}

// Steps of a case: `all`, where nothing says otherwise. A tool that watches each access to memory
// takes a thousand times as long; ASSAY_DEVICE_TEST_STEPS says how many are enough for it.
inline int64_t steps_of_a_case(int64_t all, int64_t on_processor) {
  if (const char* steps = getenv("ASSAY_DEVICE_TEST_STEPS"))
    return std::strtoll(steps, nullptr, 10);
  return on_the_processor() ? on_processor : all;
}

// True in the long form of a test (make soak).
inline bool in_the_soak() {
  return getenv("ASSAY_SOAK") != nullptr;
}

// The cases of a suite: all of them on a GPU. On the processor those named in `few` and, in the
// soak, in `more` too.
template <typename Case>
std::vector<Case> chosen(const std::vector<Case>& all, std::string (*name_of)(const Case&),
                         std::vector<std::string> few, const std::vector<std::string>& more = {}) {
  if (!on_the_processor()) return all;
  if (in_the_soak()) few.insert(few.end(), more.begin(), more.end());
  std::vector<Case> cases;
  for (const std::string& name : few) {
    const auto found = std::ranges::find(all, name, name_of);
    if (found == all.end()) {
      fmt::print(stderr, "expected a case, found none of the name {}\n", name);
      abort();
    }
    cases.push_back(*found);
  }
  return cases;
}

// Kernels of all cases, so that each is compiled once. Those of the processor are as old as what
// compiles them.
inline std::filesystem::path kernels_of_all_cases() {
  const char* nvrtc = getenv("ASSAY_NVRTC");
  const auto age =
      nvrtc == nullptr ? 0 : std::filesystem::last_write_time(nvrtc).time_since_epoch().count();
  return std::filesystem::path(testing::TempDir()) /
         fmt::format("assay-gpu-kernels-{}-{}", getuid(), age);
}

class CudaDriver {
 public:
  // Nothing where there is no driver or no GPU. The first GPU's primary context is made current.
  static std::optional<CudaDriver> open() {
    CudaDriver driver;
    const char* named = getenv("ASSAY_CUDA_DRIVER");
    driver.library_ = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW);
    if (driver.library_ == nullptr) return std::nullopt;
    int device = 0;
    void* context = nullptr;
    if (driver.call<int (*)(unsigned)>("cuInit", 0u) != 0 ||
        driver.call<int (*)(int*, int)>("cuDeviceGet", &device, 0) != 0 ||
        driver.call<int (*)(void**, int)>("cuDevicePrimaryCtxRetain", &context, device) != 0 ||
        driver.call<int (*)(void*)>("cuCtxSetCurrent", context) != 0) {
      return std::nullopt;
    }
    return driver;
  }

  // All below: 0 is success, else the driver's error. Addresses are device memory.
  int allocate(size_t bytes, uint64_t& address) {
    return call<int (*)(uint64_t*, size_t)>("cuMemAlloc_v2", &address, bytes);
  }
  int upload(uint64_t to, const void* from, size_t bytes) {
    return call<int (*)(uint64_t, const void*, size_t)>("cuMemcpyHtoD_v2", to, from, bytes);
  }
  int download(void* to, uint64_t from, size_t bytes) {
    return call<int (*)(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2", to, from, bytes);
  }
  int fill(uint64_t address, unsigned char value, size_t bytes) {
    return call<int (*)(uint64_t, unsigned char, size_t)>("cuMemsetD8_v2", address, value, bytes);
  }
  int memory_free(size_t& bytes) const {
    size_t total = 0;
    return call<int (*)(size_t*, size_t*)>("cuMemGetInfo_v2", &bytes, &total);
  }
  int load(const std::string& cubin, void*& module) {
    return call<int (*)(void**, const void*)>("cuModuleLoadData", &module, cubin.data());
  }
  int find(void* module, const std::string& entry, void*& function) {
    return call<int (*)(void**, void*, const char*)>("cuModuleGetFunction", &function, module,
                                                     entry.c_str());
  }
  // `argument`: the bytes of the one parameter. Waits for the end.
  int launch(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
             unsigned shared_bytes, void* argument) {
    constexpr int kMostSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    const int allowed = call<int (*)(void*, int, int)>("cuFuncSetAttribute", function,
                                                       kMostSharedBytes, int(shared_bytes));
    if (allowed != 0) return allowed;
    using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, void*, void**, void**);
    void* arguments[] = {argument};
    const int started = call<Launch>("cuLaunchKernel", function, x, y, z, threads, 1u, 1u,
                                     shared_bytes, nullptr, arguments, nullptr);
    return started != 0 ? started : call<int (*)()>("cuCtxSynchronize");
  }

 private:
  template <typename Function, typename... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Function>(dlsym(library_, name));
    constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND
    return function == nullptr ? kNotFound : function(arguments...);
  }
  void* library_ = nullptr;
};

}  // namespace assay::test
