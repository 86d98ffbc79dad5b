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

PositionError position_error(std::span<const float> reference, std::span<const float> found,
                             int32_t next) {
  const double reference_sum = log_sum(reference), found_sum = log_sum(found);
  const auto token = static_cast<size_t>(next);
  PositionError error{.reference_nll = reference_sum - reference[token],
                      .nll = found_sum - found[token],
                      .same_choice = std::ranges::max_element(reference) - reference.begin() ==
                                     std::ranges::max_element(found) - found.begin()};
  for (size_t i = 0; i < reference.size(); ++i) {
    const double of_reference = reference[i] - reference_sum;
    error.kl += std::exp(of_reference) * (of_reference - (found[i] - found_sum));
  }
  return error;
}

void add_position(std::span<const float> reference, std::span<const float> found, int32_t next,
                  LogitsError& error) {
  const PositionError here = position_error(reference, found, next);
  ++error.positions;
  error.kl_mean += here.kl;
  error.kl_most = std::max(error.kl_most, here.kl);
  error.nll_mean += here.reference_nll;
  error.nll_change_mean += here.nll - here.reference_nll;
  error.nll_distance_mean += std::abs(here.nll - here.reference_nll);
  error.same_choice += here.same_choice;
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
