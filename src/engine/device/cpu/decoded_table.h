// A table of fp32 whose rows are decoded from blocks when they are first wanted: compiled kernels
// read elements, and a model's whole table may be larger so than all of its blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/weight_format.h"

namespace assay::engine {

class DecodedTable {
 public:
  // `blocks`, [rows, width], must outlive the object. An environment_error if there is no room for
  // the addresses; memory is taken by the rows that are decoded alone.
  static Result<DecodedTable> make(const TensorView& blocks);
  DecodedTable(DecodedTable&& other) noexcept;
  DecodedTable& operator=(DecodedTable&&) = delete;
  ~DecodedTable();

  // [rows, width]; rows that nobody wanted are zeros. Valid as long as the object, also when it is
  // moved.
  const float* data() const { return data_; }
  // Decodes those of the rows that aren't yet; each must be one: assert.
  void want(std::span<const int32_t> rows);

 private:
  DecodedTable(const TensorView& blocks, float* data)
      : blocks_(blocks), data_(data), has_(static_cast<size_t>(blocks.shape[0])) {}
  size_t size_bytes() const;

  TensorView blocks_;
  float* data_;
  std::vector<bool> has_;  // by row
};

}  // namespace assay::engine
