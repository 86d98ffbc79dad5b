// Attribution of a change between two regimes to an axis of the identity, as far as the bundles
// tell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/identity_axes.h"
#include "portability/verdict.h"

namespace assay {

// Perturbation that an axis of the identity belongs to. An axis that belongs to none of these
// stands for itself.
//   stack: code_generator, framework_build, libraries, environment_variables, backend
//   code: code_sha;  device: device, host, threads;  cache: cache
//   process: nothing differs, but that other processes ran
std::string perturbation_of(const std::string& identity_axis);

// Differences between two regimes.
struct RegimePair {
  size_t a = 0;
  size_t b = 0;
  std::vector<AxisDifference> differences;
  std::vector<UnstatedAxis> unstated;  // of either
};

// Every pair of regimes, a before b.
std::vector<RegimePair> regime_pairs(std::span<const Regime> regimes);
const RegimePair& pair_of(std::span<const RegimePair> pairs, size_t a, size_t b);

// Identity axes with a difference between two regimes that is about these arms (config_text() of
// each) on that model, each once.
std::vector<std::string> axes_about(const RegimePair& pair, const std::vector<std::string>& arms,
                                    const std::string& model);
// Axes on which these arms may differ, since one of the regimes doesn't state them, each once.
std::vector<std::string> unstated_about(const RegimePair& pair,
                                        const std::vector<std::string>& arms);
// The same for anything in them.
std::vector<std::string> axes_of(const RegimePair& pair);
// "stack", or every perturbation that they belong to, each once; empty: no axis differs.
std::vector<std::string> perturbations_of(const std::vector<std::string>& axes);

enum class AttributionBasis {
  kNoAxis,   // the identities agree: other processes, another time
  kOneAxis,  // one axis differs
  kOneKind,  // several axes of one perturbation differ together: "stack"; which of them isn't told
  kCleanPair,   // several differ, but two other regimes that differ on one show the same flip
  kConfounded,  // several differ, and nothing tells them apart
  kUnstated,    // some axes aren't stated, so others may differ than those that do
};
std::string_view attribution_basis_name(AttributionBasis basis);

// State of the eager arm beside the condition: did it keep its speed?
enum class ControlState {
  kNone,     // there is no eager arm, or the condition is one
  kHeld,     // equivalent within the margin
  kMoved,    // significantly different
  kUnknown,  // neither is shown
};
std::string_view control_state_name(ControlState state);

struct Attribution {
  AttributionBasis basis = AttributionBasis::kConfounded;
  std::vector<std::string> axes;      // of the identity, that differ
  std::vector<std::string> unstated;  // that may
  // One axis or perturbation, which alone can be responsible; empty: several can, or none.
  std::string suspect;
  // It is responsible: the command has several runs of either side's identity, and these differ by
  // more than runs of one identity do.
  bool is_responsible = false;
  int64_t runs_a = 1;  // of either side's identity with the condition, itself included
  int64_t runs_b = 1;
  size_t clean_a = 0;  // of kCleanPair
  size_t clean_b = 0;
  ControlState control = ControlState::kNone;
  std::string control_arm;  // empty: none
  // True for an arm that asked for a compiler: its change is evidence about the compiler.
  bool about_compiler = false;
  std::string text;  // one sentence or two
};

// Verdicts that say that something changed: shifts and flips.
bool is_change(PortabilityVerdict verdict);

// One a verdict, in their order; of those that aren't a change the control alone.
std::vector<Attribution> attribute(std::span<const Regime> regimes,
                                   std::span<const RegimePair> pairs,
                                   std::span<const PortedCondition> conditions,
                                   std::span<const std::vector<ArmDirection>> directions,
                                   std::span<const ConditionVerdict> verdicts,
                                   const ArmConfig& baseline, const PortabilityOptions& options);

}  // namespace assay
