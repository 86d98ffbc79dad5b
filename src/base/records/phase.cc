// Names of the phases.
#include "base/records/phase.h"

namespace assay {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kPrefill:
      return "prefill";
    case Phase::kKvDecode:
      return "kv_decode";
    case Phase::kE2eKv:
      return "e2e_kv";
    case Phase::kLoad:
      break;
  }
  return "load";
}

std::optional<Phase> parse_phase(std::string_view name) {
  for (const Phase phase : kPhases) {
    if (phase_name(phase) == name) return phase;
  }
  return std::nullopt;
}

const std::vector<std::string>& phase_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Phase phase : kPhases) all.emplace_back(phase_name(phase));
    return all;
  }();
  return names;
}

}  // namespace assay
