// Draws lengths and arrivals.
#include "load/request_source.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay {
namespace {

double normal(Random& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

int64_t draw(const TokenLengths& lengths, Random& random) {
  if (!lengths.values.empty()) return lengths.values[random.below(lengths.values.size())];
  if (lengths.mean) {
    const double drawn = *lengths.mean + lengths.deviation.value_or(0) * normal(random);
    return std::llround(
        std::clamp(drawn, static_cast<double>(lengths.least), static_cast<double>(lengths.most)));
  }
  const auto width = static_cast<uint64_t>(lengths.most - lengths.least + 1);
  return lengths.least + static_cast<int64_t>(random.below(width));
}

}  // namespace

std::optional<PlannedRequest> RequestSource::next(int64_t now_ns) {
  PlannedRequest request{.number = made_};
  if (load_.point.speed) {
    if (static_cast<size_t>(made_) >= load_.trace.size()) return std::nullopt;
    const TracedRequest& traced = load_.trace[static_cast<size_t>(made_++)];
    request.scheduled_ns = std::llround(traced.at_s / *load_.point.speed * 1e9);
    request.prompt_tokens = traced.prompt_tokens;
    request.new_tokens = traced.new_tokens;
    return request;
  }
  if (made_ >= load_.requests.value_or(kMostLoadRequests)) return std::nullopt;
  if (load_.point.rate) {
    // The first comes one gap after the beginning, as every other after the one before it.
    at_s_ = load_.arrivals == Arrivals::kConstant
                ? static_cast<double>(made_ + 1) / *load_.point.rate
                : at_s_ - std::log(1 - times_.uniform()) / *load_.point.rate;
    if (load_.duration_s && at_s_ >= *load_.duration_s) return std::nullopt;
    request.scheduled_ns = std::llround(at_s_ * 1e9);
  } else if (load_.duration_s && static_cast<double>(now_ns) >= *load_.duration_s * 1e9) {
    return std::nullopt;
  }
  ++made_;
  request.prompt_tokens = draw(load_.prompt_tokens, lengths_);
  request.new_tokens = draw(load_.new_tokens, lengths_);
  return request;
}

}  // namespace assay
