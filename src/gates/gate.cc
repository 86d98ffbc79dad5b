// Words and sums of gates.
#include "gates/gate.h"

#include <algorithm>

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
  constexpr std::array<std::string_view, 3> kWords = {"pass", "not_decided", "fail"};
  return kWords[static_cast<size_t>(verdict)];
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

const GateCheck* JudgedGate::deciding() const {
  const auto at = std::ranges::find(checks, verdict(), &GateCheck::verdict);
  return at == checks.end() ? nullptr : &*at;
}

void Deciders::add(std::string field_or_row) {
  if (++count_ <= static_cast<int64_t>(kMostDeciding)) named_.push_back(std::move(field_or_row));
}

GateCheck Deciders::decide(GateCheck check, GateVerdict verdict, std::string problem,
                           std::string fine) && {
  check.verdict = any() ? verdict : GateVerdict::kPass;
  check.found = any() ? std::move(problem) : std::move(fine);
  check.decided_by_more = count_ - static_cast<int64_t>(named_.size());
  check.decided_by = std::move(named_);
  return check;
}

}  // namespace assay
