// Bounds the resident memory of a model that is read once, from end to end, through mappings.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace assay::engine {

class SourcePages {
 public:
  // `drop` takes what was read out of resident memory.
  explicit SourcePages(std::function<void()> drop) : drop_(std::move(drop)) {}

  // After so many values were read, while nobody reads others. Dropping goes over the tables of
  // all pages, so that some values are read between two times: 64 MB of fp32.
  void read(int64_t values) {
    values_ += values;
    if (values_ < kValues) return;
    values_ = 0;
    drop_();
  }

 private:
  static constexpr int64_t kValues = int64_t{1} << 24;
  std::function<void()> drop_;
  int64_t values_ = 0;
};

}  // namespace assay::engine
