// Words and sums of gates.
#include "gates/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/records/enum_words.h"
#include "base/text/text.h"

namespace assay {
namespace {

struct GateWords {
  std::string_view name;
  std::string_view title;
};
constexpr std::array<GateWords, 5> kGateWords = {{
    {"phase_separation", "Phase separation"},
    {"environment_attribution", "Environment attribution"},
    {"artifact_evidence", "Artifact evidence"},
    {"cache_and_mode_surfacing", "Cache and mode surfacing"},
    {"cross_regime", "Cross-regime reproducibility"},
}};

}  // namespace

std::string_view gate_word(GateVerdict verdict) {
  return word_of(verdict, {"pass", "not_decided", "fail"});
}

GateVerdict worst(std::span<const GateVerdict> verdicts) {
  return verdicts.empty() ? GateVerdict::kNotDecided : *std::ranges::max_element(verdicts);
}

std::string_view gate_name(GateKind kind) {
  return kGateWords[static_cast<size_t>(kind)].name;
}

std::string_view gate_title(GateKind kind) {
  return kGateWords[static_cast<size_t>(kind)].title;
}

GateVerdict JudgedGate::verdict() const {
  std::vector<GateVerdict> verdicts;
  for (const GateCheck& check : checks) verdicts.push_back(check.verdict);
  return worst(verdicts);
}

void Deciders::add(const std::string& place, std::string detail) {
  const auto [at, fresh] = place_of_.try_emplace(place, places_.size());
  if (fresh) places_.push_back({place, std::move(detail), 0});
  ++places_[at->second].count;
  ++count_;
}

GateCheck Deciders::decide(GateCheck check, GateVerdict verdict, std::string problem,
                           std::string fine) && {
  check.verdict = any() ? verdict : GateVerdict::kPass;
  check.found = any() ? std::move(problem) : std::move(fine);
  for (const Place& place : places_) {
    if (check.decided_by.size() == kMostDeciding) break;
    std::string text = place.name;
    if (!place.detail.empty()) text += (text.empty() ? "" : ": ") + place.detail;
    if (place.count > 1 && place.detail.empty()) {
      text += fmt::format(" ({})", counted(place.count, unit_));
    } else if (place.count > 1) {
      text += fmt::format(" (and {} more there)", counted(place.count - 1, unit_));
    }
    check.decided_by.push_back(std::move(text));
  }
  check.decided_by_more = std::ssize(places_) - std::ssize(check.decided_by);
  return check;
}

}  // namespace assay
