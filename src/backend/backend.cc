// A gate's words.
#include "backend/backend.h"

namespace assay {

ArmGate impossible_gate(std::string error_class, std::string reason, std::string fix) {
  ArmGate gate;
  gate.verdict = ArmGate::Verdict::kImpossible;
  gate.error_class = std::move(error_class);
  gate.reason = std::move(reason);
  gate.fix = std::move(fix);
  return gate;
}

std::string_view gate_verdict_name(ArmGate::Verdict verdict) {
  switch (verdict) {
    case ArmGate::Verdict::kFallback:
      return "fallback";
    case ArmGate::Verdict::kImpossible:
      return "impossible";
    case ArmGate::Verdict::kReady:
      break;
  }
  return "ready";
}

Json gate_to_json(const ArmGate& gate) {
  Json json = {{"verdict", gate_verdict_name(gate.verdict)}};
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  put("reason", gate.reason);
  put("fix", gate.fix);
  put("fallback", gate.fallback);
  put("error_class", gate.error_class);
  return json;
}

}  // namespace assay
