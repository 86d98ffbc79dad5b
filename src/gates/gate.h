// A gate's verdict on a bundle or on several: the files looked at, and the rows and fields that
// decide.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

enum class GateVerdict {
  kPass,
  kNotDecided,  // the files can't show it either way
  kFail,
};
std::string_view gate_word(GateVerdict verdict);  // pass | not_decided | fail
// The worst of them: fail before not decided before pass; not decided if there are none.
GateVerdict worst(std::span<const GateVerdict> verdicts);

enum class GateKind {
  kPhaseSeparation,  // every claim names its phase, and no figure mixes phases
  kEnvironment,      // the identity is complete and the worker that ran confirms it
  kArtifacts,        // rows, evidence and configuration are there and their hashes match
  kSurfacing,        // cache, mode, shapes, quantisation and code generator are stated of every arm
  kRegimes,          // the claim holds in two regimes that differ on one axis
};
inline constexpr std::array kGateKinds = {GateKind::kPhaseSeparation, GateKind::kEnvironment,
                                          GateKind::kArtifacts, GateKind::kSurfacing,
                                          GateKind::kRegimes};
// phase_separation | environment_attribution | artifact_evidence | cache_and_mode_surfacing |
// cross_regime
std::string_view gate_name(GateKind kind);
// "Phase separation"
std::string_view gate_title(GateKind kind);

// One demand of a gate.
struct GateCheck {
  std::string name = {};  // identity, commit, worker, ...: docs/judgements.md lists them
  GateVerdict verdict = GateVerdict::kNotDecided;
  std::string looked_at = {};  // files and members: "manifest.json: identity"
  std::string found = {};      // a sentence: the demand, its object, and the finding
  // Files and fields, or rows, that decide: "cells/c001/evidence.json: reported.toolchain.sha256",
  // "kv_decode/metrics.csv: cell c001, repetitions 3, 4". Each once, at most kMostDeciding of them.
  std::vector<std::string> decided_by = {};
  int64_t decided_by_more = 0;
};
inline constexpr size_t kMostDeciding = 20;

struct JudgedGate {
  GateKind kind = GateKind::kPhaseSeparation;
  std::string looked_at = {};  // "4 claims and 6400 rows of 40 cells"
  std::vector<GateCheck> checks = {};

  GateVerdict verdict() const;
};

// Collects the places that decide against a check: each once, with how many of `unit` decide there,
// and the number of those beyond kMostDeciding.
class Deciders {
 public:
  explicit Deciders(std::string unit = "case") : unit_(std::move(unit)) {}
  // `place` is a file, and a field or rows of it; `detail` is the fault there.
  void add(const std::string& place, std::string detail = "");
  bool any() const { return count_ > 0; }
  int64_t count() const { return count_; }  // of all that was added
  // `check` with `verdict` and `problem` where something was added, else with pass and `fine`.
  GateCheck decide(GateCheck check, GateVerdict verdict, std::string problem, std::string fine) &&;

 private:
  struct Place {
    std::string name;
    std::string detail;  // of the first
    int64_t count = 0;
  };
  std::string unit_;
  std::vector<Place> places_;
  std::map<std::string, size_t> place_of_;
  int64_t count_ = 0;
};

}  // namespace assay
