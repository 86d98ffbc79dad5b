// NVIDIA's profiling interface, opened at run time: what a GPU and the driver did while something
// ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay::engine::cuda {

// One thing that was done.
struct Activity {
  enum class Kind { kKernel, kCopy, kFill, kCall };
  Kind kind = Kind::kKernel;
  // Of a kernel with its registers and shared memory, since entry points share names; of a call the
  // driver's function.
  std::string name;
  int64_t start_ns = 0, end_ns = 0;  // by CUPTI's clock
};

class Cupti {
 public:
  // $ASSAY_CUPTI alone, where it is set; else libcupti.so.13, .so.12 and .so as the loader finds
  // them, then in /usr/local/cuda's folders. An environment_error that says what was looked for.
  static Result<Cupti> open();

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }  // 130001: of CUDA 13.0

  // Records from here to stop(): one recording at a time in a process. What a GPU does then is
  // slower. Errors name CUPTI's function and its words.
  Status start();
  Result<int64_t> now_ns() const;
  // Of everything that was started before and has ended. In no order.
  Result<std::vector<Activity>> stop();

 private:
  Cupti() = default;
  Status check(int result, const char* function) const;

  std::string path_;
  uint32_t version_ = 0;
};

}  // namespace assay::engine::cuda
