// NVIDIA's profiling interface, opened at run time: the work of a GPU and the driver while
// something ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::engine::cuda {

// One piece of work.
struct Activity {
  enum class Kind { kKernel, kCopy, kFill, kCall };
  Kind kind = Kind::kKernel;
  // A kernel's, with its registers and shared memory, since entry points share names; or for a call
  // the driver's function.
  std::string name;
  int64_t start_ns = 0, end_ns = 0;  // by CUPTI's clock
};

class Cupti {
 public:
  // $ASSAY_CUPTI alone, if it is set; else libcupti.so.13, .so.12 and .so as the loader finds
  // them, then in /usr/local/cuda's folders. An environment_error that names the places searched.
  static Result<Cupti> open();

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }  // 130001: of CUDA 13.0

  // Records from here to stop(): one recording at a time in a process. A GPU is slower meanwhile.
  // Errors name CUPTI's function and its words.
  Status start();
  Result<int64_t> now_ns() const;
  // The work that was started before and has ended, in no order.
  Result<std::vector<Activity>> stop();

 private:
  Cupti() = default;
  Status check(int result, const char* function) const;

  std::string path_;
  uint32_t version_ = 0;
};

}  // namespace assay::engine::cuda
