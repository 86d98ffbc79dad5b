// A checkpoint in figures: dimensions, parameters, and the bytes that inference moves.
#pragma once

#include <cstdint>

#include "base/records/json.h"
#include "base/result.h"
#include "base/tables/table.h"
#include "engine/model/checkpoint.h"

namespace assay::engine {

// Bytes of keys and values that one position of one row adds to the cache, held at `dtype`.
uint64_t kv_bytes_per_position(const ModelConfig& config, DType dtype);

// Least weight bytes that one decode step at this batch reads of these, the config's tensors: every
// weight once, but only the rows looked up of an embedding table that isn't the head too.
uint64_t decode_weight_bytes(const ModelConfig& config, const std::vector<TensorSpec>& tensors,
                             int64_t batch);

// An object of facts; one that doesn't apply (rope_theta of GPT-2) is absent. `files` lists the
// weight files with their sizes, `tensors` the formats of each class of tensors.
Result<Json> summarize(const Checkpoint& checkpoint);
// The same, one row a fact, with sizes made readable.
Table summary_table(const Json& summary);

}  // namespace assay::engine
