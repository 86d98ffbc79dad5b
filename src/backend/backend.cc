// A readiness's words.
#include "backend/backend.h"

namespace assay {

ArmReadiness impossible_arm(std::string error_class, std::string reason, std::string fix) {
  ArmReadiness readiness;
  readiness.verdict = ArmReadiness::Verdict::kImpossible;
  readiness.error_class = std::move(error_class);
  readiness.reason = std::move(reason);
  readiness.fix = std::move(fix);
  return readiness;
}

std::string_view readiness_name(ArmReadiness::Verdict verdict) {
  switch (verdict) {
    case ArmReadiness::Verdict::kFallback:
      return "fallback";
    case ArmReadiness::Verdict::kImpossible:
      return "impossible";
    case ArmReadiness::Verdict::kReady:
      break;
  }
  return "ready";
}

Json readiness_to_json(const ArmReadiness& readiness) {
  Json json = {{"verdict", readiness_name(readiness.verdict)}};
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  put("reason", readiness.reason);
  put("fix", readiness.fix);
  put("fallback", readiness.fallback);
  put("error_class", readiness.error_class);
  return json;
}

}  // namespace assay
