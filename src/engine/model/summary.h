// What a checkpoint is, in figures: dimensions, parameters, and the bytes that inference moves.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "base/result.h"
#include "base/table.h"
#include "engine/model/checkpoint.h"

namespace assay::engine {

// Bytes of keys and values that one position of one row adds to the cache, held at `dtype`.
uint64_t kv_bytes_per_position(const ModelConfig& config, DType dtype);

// Weight bytes that one decode step at this batch must at least read: every weight once, of an
// embedding table only the rows looked up, unless it is also the head.
uint64_t decode_weight_bytes(const ModelConfig& config, DType dtype, int64_t batch);

// An object of facts; what doesn't apply (rope_theta of GPT-2) is absent. `files` lists the weight
// files with their sizes.
Result<Json> summarize(const Checkpoint& checkpoint);
// The same, one row a fact, with sizes made readable.
Table summary_table(const Json& summary);

}  // namespace assay::engine
