// Sums are of whole numbers, and every other operation is fp64, rounded as IEEE 754 has it and
// never fused with another: equal logits give equal tokens everywhere, whatever the order of sums.
// A GPU's kernel does the same (codegen/cuda/cuda_sampling.h).
#include "engine/serving/sampling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/random.h"

namespace assay::engine {
namespace {

constexpr double kMostPenalty = 100, kMostTemperature = 100, kMostBias = 1000;
constexpr double kLeastTemperature = 1e-6;  // beside 0: logits divided by it stay finite
constexpr uint64_t kSplitMixStep = [] {     // from a number's state to the next one's
  uint64_t state = 0;
  splitmix64(state);
  return state;
}();

struct Candidate {
  uint64_t weight = 0;  // weight_of(logit - the largest), at the temperature
  int32_t id = 0;
};

// e^x in units of 2^-40, for x <= 0; 2^-40 is e^-27.7. Taylor's series around multiples
// of ln 2 gives it to 2^-46 of itself.
uint64_t weight_of(double x) {
  if (!(x > -28)) return 0;
  const auto k = static_cast<int>(x * 1.4426950408889634 - 0.5);
  double r = x - k * 0.693147180369123816490e+00;  // the product has no more than 53 bits
  r = r - k * 1.90821492927058770002e-10;
  constexpr double kParts[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                               1.0 / 5040,     1.0 / 720,     1.0 / 120,    1.0 / 24,
                               1.0 / 6,        0.5,           1.0};
  double p = kParts[0];
  for (size_t i = 1; i < std::size(kParts); ++i) p = p * r + kParts[i];
  p = p * r + 1.0;
  return static_cast<uint64_t>(p * std::bit_cast<double>(uint64_t(1023 + 40 + k) << 52));
}

// -ln u for u from 2^-54 to 1, by the series of the inverse hyperbolic tangent around a power of
// two: to 2^-50 of itself.
double minus_ln(double u) {
  const auto word = std::bit_cast<uint64_t>(u);
  auto exponent = static_cast<int>(word >> 52) - 1023;
  double m = std::bit_cast<double>((word & 0xFFFFFFFFFFFFFull) | 1023ull << 52);
  if (m > 1.4142135623730951) m = m * 0.5, ++exponent;
  const double r = (m - 1) / (m + 1), square = r * r;
  double p = 1.0 / 21;
  for (const double part : {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7,
                            1.0 / 5, 1.0 / 3, 1.0}) {
    p = p * square + part;
  }
  const double low = exponent * 1.90821492927058770002e-10 + 2 * r * p;
  return -(exponent * 0.693147180369123816490e+00 + low);
}

Status in_range(std::string_view name, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return bad_input("{}: expected {} to {}, found {}", name, least, most, value);
}

Status above_zero(std::string_view name, double value, double most) {
  if (value > 0 && value <= most) return {};
  return bad_input("{}: expected more than 0 and at most {}, found {}", name, most, value);
}

uint64_t mass_of(const std::vector<Candidate>& candidates) {
  uint64_t mass = 0;
  for (const Candidate& candidate : candidates) mass += candidate.weight;
  return mass;
}

// Keeps so many of the likeliest or, by weight, the fewest of them that have so much together;
// there must be as much. Digit by digit of the weight that the last of them has: nothing is sorted.
void keep_likeliest(std::vector<Candidate>& candidates, uint64_t wanted, bool by_weight) {
  constexpr int kBits = 9, kDigits = 5;
  uint64_t least = 0, above = 0;  // the last one's digits so far; what comes ahead of all these
  for (int shift = (kDigits - 1) * kBits; shift >= 0; shift -= kBits) {
    std::array<uint64_t, 1 << kBits> of_digit{};
    for (const Candidate& one : candidates) {
      if (one.weight >> shift >> kBits != least) continue;
      of_digit[(one.weight >> shift) % of_digit.size()] += by_weight ? one.weight : 1;
    }
    size_t digit = of_digit.size() - 1;
    while (above + of_digit[digit] < wanted) above += of_digit[digit--];
    least = least << kBits | digit;
    if (digit > 0) {
      std::erase_if(candidates, [&](const Candidate& one) { return one.weight >> shift < least; });
    }
  }
  uint64_t equal = by_weight ? (wanted - above + least - 1) / least : wanted - above;
  std::erase_if(candidates, [&](const Candidate& one) {
    if (one.weight != least) return false;
    if (equal == 0) return true;
    --equal;
    return false;
  });
}

}  // namespace

bool Sampling::has_penalties() const {
  return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
}

bool Sampling::is_argmax() const {
  return temperature == 0 && logit_bias.empty() && !has_penalties();
}

uint64_t least_weight(double min_p) {
  return std::max<uint64_t>(static_cast<uint64_t>(std::ceil(min_p * 0x1p40)), 1);
}

Status check_sampling(const Sampling& sampling, int64_t vocab) {
  ASSAY_CHECK(in_range("temperature", sampling.temperature, 0, kMostTemperature));
  if (sampling.temperature != 0 && sampling.temperature < kLeastTemperature) {
    return bad_input("temperature: expected 0 or at least {}, found {}", kLeastTemperature,
                     sampling.temperature);
  }
  ASSAY_CHECK(above_zero("top_p", sampling.top_p, 1));
  ASSAY_CHECK(in_range("min_p", sampling.min_p, 0, 1));
  ASSAY_CHECK(above_zero("repetition_penalty", sampling.repetition_penalty, kMostPenalty));
  ASSAY_CHECK(in_range("presence_penalty", sampling.presence_penalty, -kMostPenalty, kMostPenalty));
  ASSAY_CHECK(
      in_range("frequency_penalty", sampling.frequency_penalty, -kMostPenalty, kMostPenalty));
  if (sampling.top_k < 0) {
    return bad_input("top_k: expected 0 or more, found {}", sampling.top_k);
  }
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id < 0 || id >= vocab) {
      return bad_input("logit_bias: expected ids from 0 to {}, found {}", vocab - 1, id);
    }
    ASSAY_CHECK(in_range("logit_bias", bias, -kMostBias, kMostBias));
  }
  return {};
}

Sampler::Sampler(Sampling sampling, int64_t vocab)
    : sampling_(std::move(sampling)),
      seen_(static_cast<size_t>(vocab), false),
      chosen_(static_cast<size_t>(vocab), 0) {
  assert(check_sampling(sampling_, vocab));
}

void Sampler::saw_prompt(std::span<const int32_t> ids) {
  for (const int32_t id : ids) seen_[static_cast<size_t>(id)] = true;
}

void Sampler::saw_chosen(int32_t id) {
  seen_[static_cast<size_t>(id)] = true;
  ++chosen_[static_cast<size_t>(id)];
  ++chosen_count_;
}

std::vector<double> Sampler::changed(std::span<const float> logits) const {
  std::vector<double> values(logits.begin(), logits.end());
  for (const auto& [id, bias] : sampling_.logit_bias) values[static_cast<size_t>(id)] += bias;
  const double repetition = sampling_.repetition_penalty;
  for (size_t id = 0; id < values.size(); ++id) {
    if (!seen_[id]) continue;
    values[id] = values[id] > 0 ? values[id] / repetition : values[id] * repetition;
    if (chosen_[id] == 0) continue;
    const double often = chosen_[id];
    values[id] -= sampling_.presence_penalty + often * sampling_.frequency_penalty;
  }
  return values;
}

int32_t Sampler::choose(std::span<const float> logits) const {
  assert(logits.size() == seen_.size());
  const std::vector<double> values = changed(logits);
  size_t largest = 0;
  for (size_t id = 1; id < values.size() && !std::isnan(values[largest]); ++id) {
    if (values[id] > values[largest] || std::isnan(values[id])) largest = id;
  }
  if (sampling_.temperature == 0 || !std::isfinite(values[largest])) {
    return static_cast<int32_t>(largest);
  }
  return draw(values, largest);
}

// Each candidate has an exponential clock at the rate of its weight, and the first to ring is
// drawn: its chance is its weight's share. Where another order of sums moves the logits a little,
// the choice changes only if the first two clocks are as close as that. A place in cumulated
// weights would change wherever many tokens weigh less than the cumulated error.
int32_t Sampler::draw(const std::vector<double>& logits, size_t largest) const {
  std::vector<Candidate> left;
  const uint64_t least_kept = least_weight(sampling_.min_p);
  const double scale = 1 / sampling_.temperature;
  for (size_t id = 0; id < logits.size(); ++id) {
    const uint64_t weight = weight_of((logits[id] - logits[largest]) * scale);
    if (weight >= least_kept) left.push_back({weight, static_cast<int32_t>(id)});
  }
  const auto top_k = static_cast<uint64_t>(sampling_.top_k);
  if (top_k > 0 && top_k < left.size()) keep_likeliest(left, top_k, false);
  if (sampling_.top_p < 1) {
    const auto all = static_cast<double>(mass_of(left));
    const auto share = static_cast<uint64_t>(sampling_.top_p * all);
    keep_likeliest(left, std::max<uint64_t>(share, 1), true);
  }
  const uint64_t stream = Random(sampling_.seed, chosen_count_)();  // its id-th number is a token's
  double least = std::numeric_limits<double>::infinity();
  int32_t drawn = 0;
  for (const Candidate& candidate : left) {
    uint64_t state = stream + static_cast<uint64_t>(candidate.id) * kSplitMixStep;
    const double u = (static_cast<double>(splitmix64(state) >> 11) + 0.5) * 0x1p-53;
    const auto weight = static_cast<double>(candidate.weight);
    // -ln u is at least 1 - u; what is left of 1 is more than all rounding.
    if (0.9999 - u >= least * weight) continue;
    const double at = minus_ln(u) / weight;
    if (at < least) least = at, drawn = candidate.id;
  }
  return drawn;
}

}  // namespace assay::engine
