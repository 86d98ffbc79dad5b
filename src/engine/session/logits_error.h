// The distance of logits from a reference, in the measures of quantised models.
#pragma once

#include <cstdint>
#include <span>

namespace assay::engine {

// A position of a prompt that another token follows.
struct PositionError {
  double kl = 0;             // of the reference's distribution from the one found, in nats
  double reference_nll = 0;  // negative log-likelihood of the next token, nats
  double nll = 0;            // by the one found
  bool same_choice = false;  // the largest logits are of the same token
};
// `reference` and `found` are logits [vocab], `next` is the prompt's next token. Figures of logits
// that aren't finite aren't finite.
PositionError position_error(std::span<const float> reference, std::span<const float> found,
                             int32_t next);

// Means over positions of prompts that another token follows.
struct LogitsError {
  int64_t positions = 0;
  double kl_mean = 0;   // of the reference's distribution from the one found, in nats
  double kl_most = 0;   // the largest of a position
  double nll_mean = 0;  // the reference's negative log-likelihood of the prompt's next token, nats
  double nll_change_mean = 0;    // of the one found less the reference's
  double nll_distance_mean = 0;  // |difference|
  int64_t same_choice = 0;       // positions whose largest logit is of the same token
};

// Adds position_error(). Figures that aren't finite make the sums so.
void add_position(std::span<const float> reference, std::span<const float> found, int32_t next,
                  LogitsError& error);
// Makes means of what add_position() summed.
void finish(LogitsError& error);

}  // namespace assay::engine
