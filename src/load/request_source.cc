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
    const auto turns = static_cast<double>(load_.turns);
    // The first comes one gap after the beginning, as every other after the one before it.
    at_s_ = load_.arrivals == Arrivals::kConstant
                ? (static_cast<double>(made_) + turns) / *load_.point.rate
                : at_s_ - turns * std::log(1 - times_.uniform()) / *load_.point.rate;
    if (load_.duration_s && at_s_ >= *load_.duration_s) return std::nullopt;
    request.scheduled_ns = std::llround(at_s_ * 1e9);
  } else if (load_.duration_s && static_cast<double>(now_ns) >= *load_.duration_s * 1e9) {
    return std::nullopt;
  }
  made_ += load_.turns;
  request.prompt_tokens = draw(load_.prompt_tokens, lengths_);
  request.new_tokens = draw(load_.new_tokens, lengths_);
  return request;
}

std::optional<PlannedRequest> RequestSource::following(const PlannedRequest& request,
                                                       int64_t due_ns) const {
  const bool was_last = (request.number + 1) % load_.turns == 0;
  const bool is_over = load_.duration_s && static_cast<double>(due_ns) >= *load_.duration_s * 1e9;
  if (was_last || is_over) return std::nullopt;
  // Sessions take turns as the server allows: each turn's lengths are drawn by themselves.
  Random lengths(load_.seed, 2 + static_cast<uint64_t>(request.number));
  PlannedRequest next{.number = request.number + 1, .scheduled_ns = due_ns};
  next.prompt_tokens = draw(load_.prompt_tokens, lengths);
  next.new_tokens = draw(load_.new_tokens, lengths);
  return next;
}

}  // namespace assay
