// Facts about a fused body for lowering it: its rows, its product and the parts that the product
// falls into, and whether it can be lowered at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"

namespace assay::engine {

// Facts about a body that can be lowered. Every value that isn't a weight, a table or a cache is
// [rows, width]; before a last_rows, [batch * q_len, width].
struct BodyFacts {
  Dim rows = Dim(1);
  std::vector<int64_t> producers;  // by value: the node that computes it, -1 for parameters
  std::optional<size_t> linear;    // the product
  std::vector<bool> behind;        // by value: computed from the product
  // The split that the product falls into, if it does; by value behind it: its part, absent if two
  // parts meet in it.
  std::optional<size_t> split;
  std::vector<std::optional<size_t>> parts;
  bool gated = false;        // every output needs both of two equal parts
  int64_t head_dim = 0;      // of the operands of rope and kv_write; 0 without them
  std::vector<bool> turned;  // by value: a rope before it

  int64_t width(const Graph& body, ValueId value) const;
};

// bad_input names the part that can't be lowered.
Result<BodyFacts> study_body(const Graph& body);

}  // namespace assay::engine
