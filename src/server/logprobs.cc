#include "server/logprobs.h"

#include <algorithm>
#include <cmath>

namespace assay::server {
namespace {

constexpr double kImpossible = -9999;

}  // namespace

TokenLogprobs token_logprobs(std::span<const float> logits, int32_t id, int64_t likeliest) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double norm = largest + std::log(sum);
  const auto logprob = [&](int32_t of) {
    return std::max(logits[static_cast<size_t>(of)] - norm, kImpossible);
  };
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  // A heap of the likeliest so far, the least likely of them first.
  std::vector<int32_t> kept;
  const auto most = static_cast<size_t>(std::max<int64_t>(likeliest, 0));
  for (int32_t one = 0; one < std::ssize(logits) && most > 0; ++one) {
    if (kept.size() == most) {
      if (!likelier(one, kept.front())) continue;
      std::ranges::pop_heap(kept, likelier);
      kept.pop_back();
    }
    kept.push_back(one);
    std::ranges::push_heap(kept, likelier);
  }
  std::ranges::sort_heap(kept, likelier);
  TokenLogprobs told{.chosen = logprob(id)};
  for (const int32_t one : kept) told.likeliest.emplace_back(one, logprob(one));
  return told;
}

}  // namespace assay::server
