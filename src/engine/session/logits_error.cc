// Log-probabilities in double, position by position.
#include "engine/session/logits_error.h"

#include <algorithm>
#include <cmath>

namespace assay::engine {
namespace {

// Logarithm of the sum of exponentials.
double log_sum(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

}  // namespace

void add_position(std::span<const float> reference, std::span<const float> found, int32_t next,
                  LogitsError& error) {
  const double reference_sum = log_sum(reference), found_sum = log_sum(found);
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double of_reference = reference[i] - reference_sum;
    kl += std::exp(of_reference) * (of_reference - (found[i] - found_sum));
  }
  const auto token = static_cast<size_t>(next);
  const double before = reference_sum - reference[token], after = found_sum - found[token];
  ++error.positions;
  error.kl_mean += kl;
  error.kl_most = std::max(error.kl_most, kl);
  error.nll_mean += before;
  error.nll_change_mean += after - before;
  error.nll_distance_mean += std::abs(after - before);
  error.same_choice += std::ranges::max_element(reference) - reference.begin() ==
                       std::ranges::max_element(found) - found.begin();
}

void finish(LogitsError& error) {
  if (error.positions == 0) return;
  const auto count = static_cast<double>(error.positions);
  for (double* sum :
       {&error.kl_mean, &error.nll_mean, &error.nll_change_mean, &error.nll_distance_mean}) {
    *sum /= count;
  }
}

}  // namespace assay::engine
