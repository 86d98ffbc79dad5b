// DOMAIN's verdicts between two regimes, each proven or not given.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "portability/direction.h"

namespace assay {

enum class PortabilityVerdict {
  kSimilar,        // no rows lost in either, and the means are equivalent within the margin
  kShift,          // no rows lost, the same direction in both, and the means differ
  kDirectionFlip,  // significantly faster than the baseline in one, significantly slower in the
                   // other
  kOutcomeFlip,  // no rows lost in one; lost in the other, and the crash rates' intervals are apart
  kCrashBoth,    // both crash rates' intervals lie above the share that counts as crashing
  kMissingA,
  kMissingB,
  kUndecided,
};
inline constexpr std::array kPortabilityVerdicts = {
    PortabilityVerdict::kSimilar,       PortabilityVerdict::kShift,
    PortabilityVerdict::kDirectionFlip, PortabilityVerdict::kOutcomeFlip,
    PortabilityVerdict::kCrashBoth,     PortabilityVerdict::kMissingA,
    PortabilityVerdict::kMissingB,      PortabilityVerdict::kUndecided};
// portable_similar_latency | portable_latency_shift | direction_flip | outcome_flip |
// confirmed_crash_both | missing_a | missing_b | undecided
std::string_view portability_verdict_name(PortabilityVerdict verdict);
// A flip of the direction or of the outcome.
bool is_flip(PortabilityVerdict verdict);

// One condition in two regimes; the ratio is of the means, b / a.
struct ConditionVerdict : JudgedRatio {
  size_t condition = 0;
  size_t a = 0;  // regimes
  size_t b = 0;
  PortabilityVerdict verdict = PortabilityVerdict::kUndecided;
  std::string reason;  // the evidence that an undecided one lacks, and remarks
};
// Undecided, although the means differ significantly: the direction isn't shown to be the same.
bool is_open_difference(const ConditionVerdict& verdict);

// Two regimes by their names, for reasons.
struct RegimeNames {
  std::string a = "one";
  std::string b = "the other";
};

// Verdict on the rows lost in two regimes; absent: neither lost any.
struct OutcomeVerdict {
  PortabilityVerdict verdict = PortabilityVerdict::kUndecided;
  std::string reason;
};
std::optional<OutcomeVerdict> outcome_verdict(const CrashRate& a, const CrashRate& b,
                                              const PortabilityOptions& options,
                                              const RegimeNames& names = {});

// Every condition in the first regime and in each other one; by the other, then the condition.
// `directions`: of the same conditions. Tests of means are two families over all of them.
std::vector<ConditionVerdict> judge_conditions(
    std::span<const Regime> regimes, std::span<const PortedCondition> conditions,
    std::span<const std::vector<ArmDirection>> directions, const PortabilityOptions& options);

// The flip between two regimes by the condition's outcomes or directions alone; absent: none.
std::optional<PortabilityVerdict> flip_between(const PortedCondition& condition,
                                               std::span<const ArmDirection> directions, size_t a,
                                               size_t b, const PortabilityOptions& options);

}  // namespace assay
