// Names of the phases as messages spell them.
#include "backend/message.h"

namespace assay {

std::string_view wire_phase_name(WirePhase phase) {
  switch (phase) {
    case WirePhase::kPrefill:
      return "prefill";
    case WirePhase::kKvDecode:
      return "kv_decode";
    case WirePhase::kE2eKv:
      return "e2e_kv";
  }
  return "";
}

std::optional<WirePhase> parse_wire_phase(std::string_view name) {
  for (const WirePhase phase : {WirePhase::kPrefill, WirePhase::kKvDecode, WirePhase::kE2eKv}) {
    if (wire_phase_name(phase) == name) return phase;
  }
  return std::nullopt;
}

bool announces_profile(const HelloReply& hello) {
  const auto it = hello.capabilities.find("profile");
  return it != hello.capabilities.end() && it->is_boolean() && it->get<bool>();
}

}  // namespace assay
