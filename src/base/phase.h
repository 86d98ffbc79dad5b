// The phases that a cell can time. Studies, plans, messages and rows all speak of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_words.h"

namespace assay {

enum class Phase {
  kPrefill,   // the prompt, up to the first token
  kKvDecode,  // new tokens over a filled cache
  kE2eKv,     // both together
};
inline constexpr Phase kPhases[] = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv};

// As study files, messages and rows spell it, and as a bundle's folders are named: prefill,
// kv_decode or e2e_kv.
std::string_view phase_name(Phase phase);
std::optional<Phase> parse_phase(std::string_view name);
// Of kPhases, in that order.
const std::vector<std::string>& phase_names();

template <>
struct EnumWords<Phase> {
  static constexpr auto& kAll = kPhases;
  static std::string_view name(Phase phase) { return phase_name(phase); }
};

// New tokens are decoded in it: prefill alone has none.
constexpr bool decodes(Phase phase) {
  return phase != Phase::kPrefill;
}

}  // namespace assay
