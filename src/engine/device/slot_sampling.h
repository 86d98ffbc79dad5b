// The drawing of tokens of a batch's slots by a device itself.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"

namespace assay::engine {

// A slot's wishes, as serving/sampling.h has them, in members of 8 bytes that a kernel reads.
struct SampledSlot {
  int64_t samples = 0;  // 0: the largest logit's token stays, and nothing else is read
  int64_t prompt_tokens = 0;
  int64_t held_at = -1;   // the position of a prompt's token that a step feeds; -1: there is none
  int64_t penalties = 0;  // 1: the slot counts its tokens
  int64_t biases = 0;     // so many
  double temperature = 0, repetition = 1, presence = 0, frequency = 0, top_p = 1;
  int64_t top_k = 0;
  uint64_t least = 1;  // least_weight()
  uint64_t seed = 0;
};

// Tables of a batch's slots in a device's memory, which runs with RunInputs::sampling read and
// write: in a step, each slot's fed token counts as chosen. Errors are the device's.
class SlotSampling {
 public:
  virtual ~SlotSampling() = default;
  virtual int64_t most_biases() const = 0;  // of a slot
  // From now on the slot's tokens are drawn so; it has seen nothing. `biases`: by id, each once, no
  // more than may be.
  virtual Status begin(int64_t slot, const SampledSlot& wishes,
                       std::span<const std::pair<int32_t, double>> biases) = 0;
  // The slot has so many tokens of prompts, by the run ahead, and perhaps one that is to be fed.
  virtual Status set_prompt(int64_t slot, int64_t prompt_tokens, int64_t held_at) = 0;
  // These are among them, for penalties.
  virtual Status saw_prompt(int64_t slot, std::span<const int32_t> ids) = 0;
};

}  // namespace assay::engine
