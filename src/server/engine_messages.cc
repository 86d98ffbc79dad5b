#include "server/engine_messages.h"

#include <bit>
#include <charconv>
#include <utility>

namespace assay::server {

using Biases = std::vector<std::pair<int32_t, double>>;

Json sampling_to_json(const engine::Sampling& sampling) {
  return {{"logit_bias", sampling.logit_bias},
          {"repetition_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"temperature", sampling.temperature},
          {"min_p", sampling.min_p},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"seed", sampling.seed}};
}

engine::Sampling sampling_from_json(const Json& json) {
  return {.logit_bias = json.value("logit_bias", Biases()),
          .repetition_penalty = json.value("repetition_penalty", 1.0),
          .presence_penalty = json.value("presence_penalty", 0.0),
          .frequency_penalty = json.value("frequency_penalty", 0.0),
          .temperature = json.value("temperature", 0.0),
          .min_p = json.value("min_p", 0.0),
          .top_k = json.value("top_k", int64_t{0}),
          .top_p = json.value("top_p", 1.0),
          .seed = json.value("seed", uint64_t{0})};
}

constexpr size_t kDigits = 8;  // of a float

std::string logits_to_text(std::span<const float> logits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text(logits.size() * kDigits, '0');
  size_t at = 0;
  for (const float logit : logits) {
    const auto bits = std::bit_cast<uint32_t>(logit);
    for (int shift = 28; shift >= 0; shift -= 4) text[at++] = kHex[(bits >> shift) & 0xF];
  }
  return text;
}

std::vector<float> logits_from_text(std::string_view text) {
  std::vector<float> logits;
  for (size_t at = 0; at + kDigits <= text.size(); at += kDigits) {
    uint32_t bits = 0;
    std::from_chars(text.data() + at, text.data() + at + kDigits, bits, 16);
    logits.push_back(std::bit_cast<float>(bits));
  }
  return logits;
}

}  // namespace assay::server
