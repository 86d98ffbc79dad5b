// Requirements in words.
#include "analysis/findings/requirements.h"

#include <array>

namespace assay {

std::string_view criterion_status_name(Criterion::Status status) {
  constexpr std::array<std::string_view, 3> kNames = {"met", "not_met", "not_applicable"};
  return kNames[static_cast<size_t>(status)];
}

std::string_view requirements_verdict_name(Requirements::Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"passed", "failed", "not_decided"};
  return kNames[static_cast<size_t>(verdict)];
}

}  // namespace assay
