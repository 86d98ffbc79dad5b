// The interface by which a session runs a step: the eager executor, or a compiled graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/cache/kv_cache.h"
#include "engine/graph/dim.h"
#include "engine/model/config.h"

namespace assay::engine {

class SlotSampling;

// cos and sin of position * inverse frequency, [positions, head_dim / 2], rounded as transformers
// does in fp32.
struct RopeTables {
  std::vector<float> cos, sin;
};
RopeTables make_rope_tables(const ModelConfig& config, int64_t positions);

// Inputs of one run; the spans must outlive it. A row's tokens come behind those that it has in the
// cache, as TokenPlaces has it.
struct RunInputs {
  DimValues dims;                    // kv_len: positions of the longest row with the run's, or more
  std::span<const int32_t> ids;      // [batch, q_len]
  std::span<const int32_t> lengths;  // [batch]
  std::span<const int32_t> pad;      // [batch], each less than the row's length plus q_len
  // [batch]: rows of the cache, each once; of a graph whose rows are in order they are not read.
  std::span<const int32_t> slots = {};
  const RopeTables* rope = nullptr;  // of at least every position; unused without RoPE
  // Tables of the device by which it draws tokens, for a graph that names rows. Null: tokens are
  // the largest logits'.
  const SlotSampling* sampling = nullptr;
};
// True if each row's tokens fit kv_len: what executors demand of a run.
bool rows_fit(const RunInputs& inputs);

// The steps that follow one.
enum class Onward {
  kGo,    // further ones
  kLast,  // those that the device has begun by now
  kStop,  // none: what it has begun is forgotten
};
// Takes the tokens that a step chose, one a row; `finite`: each was chosen by a finite logit. The
// span is valid during the call.
using TokenSink = std::function<Onward(std::span<const int32_t> tokens, bool finite)>;

class Executor {
 public:
  virtual ~Executor() = default;

  // Makes what its runs read beside the weights as they are loaded, which the first run does
  // otherwise. An environment_error if memory ends.
  virtual Status make_ready() { return {}; }

  // Runs the graph, extends the cache to kv_len positions and commits them. On an error (memory)
  // nothing is committed, and another executor may make the run instead.
  virtual Status run(const RunInputs& inputs, KvCache& cache) = 0;

  // An output of the last run that succeeded, by the graph's order; valid until the next one.
  virtual std::span<const float> output_f32(size_t index) const = 0;
  virtual std::span<const int32_t> output_i32(size_t index) const = 0;
  // One element of output_f32(index), without fetching the others from the device; NaN if that
  // fails.
  virtual float element_f32(size_t index, size_t element) const {
    return output_f32(index)[element];
  }
  // True if the last run chose each row's token by a finite logit. Absent: it didn't look.
  virtual std::optional<bool> chose_finite() const { return std::nullopt; }
};

}  // namespace assay::engine
