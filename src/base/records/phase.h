// The phases that a cell can time. Studies, plans, messages and rows all speak of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/enum_words.h"

namespace assay {

enum class Phase {
  kPrefill,   // the prompt, up to the first token
  kKvDecode,  // new tokens over a filled cache
  kE2eKv,     // both together
  kLoad,      // a run of many requests, each from its scheduled time to its last token
};
inline constexpr Phase kPhases[] = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv, Phase::kLoad};
// Those that time one request; studies list them, and policies route by them.
inline constexpr Phase kRequestPhases[] = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv};

// The phase's spelling in study files, messages and rows, and the name of a bundle's folder:
// prefill, kv_decode, e2e_kv or load.
std::string_view phase_name(Phase phase);
std::optional<Phase> parse_phase(std::string_view name);
// Names of kPhases, in that order.
const std::vector<std::string>& phase_names();

template <>
struct EnumWords<Phase> {
  static constexpr auto& kAll = kPhases;
  static std::string_view name(Phase phase) { return phase_name(phase); }
};

// True if new tokens are decoded in it: prefill alone has none.
constexpr bool decodes(Phase phase) {
  return phase != Phase::kPrefill;
}

}  // namespace assay
