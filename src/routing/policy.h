// A routing policy: the arm that serves a request, where the measurements decide it, and the events
// that make it give way to the safe arm. docs/judgements.md, "Routing", has the evidence of each
// member.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/records/phase.h"
#include "base/result.h"
#include "stats/samples/intervals.h"

namespace assay {

inline constexpr int64_t kPolicyVersion = 2;
// Version 1 lacks the run that was measured and the times of evidence, and is read too.
inline constexpr int64_t kOldestPolicyVersion = 1;

// Events that send a rule's later requests to its fallback.
enum class TriggerKind {
  kRecompileAfterWarmup,  // a request of a shape that was served before compiled something
  kUniqueGraphs,          // so many graphs exist of the rule's arm
  kRecompileLimit,        // the compiler gave up on specialising
  kFallback,              // a request ran eager
  kLostRow,               // a request got no answer
  kSlowRequest,           // p99: a request took longer than `limit_ms`
};
inline constexpr std::array kTriggerKinds = {TriggerKind::kRecompileAfterWarmup,
                                             TriggerKind::kUniqueGraphs,
                                             TriggerKind::kRecompileLimit,
                                             TriggerKind::kFallback,
                                             TriggerKind::kLostRow,
                                             TriggerKind::kSlowRequest};
// recompile_after_warmup | unique_graphs | recompile_limit | fallback | lost_row | p99_ms
std::string_view trigger_name(TriggerKind kind);

// It fires as soon as more than `allowed` of the rule's `window` requests did so; counting starts
// anew after each window.
struct PolicyTrigger {
  TriggerKind kind = TriggerKind::kLostRow;
  int64_t allowed = 0;
  int64_t window = 0;              // requests, counted anew after each; 0: all since the start
  std::optional<double> limit_ms;  // of p99_ms alone
  std::string source;              // the measurements that the threshold comes from

  friend bool operator==(const PolicyTrigger&, const PolicyTrigger&) = default;
};

// The verdict of a stratum that takes another arm, and that proves the rule's arm faster than the
// safe one.
inline constexpr std::string_view kFasterThanSafe = "faster_than_safe";
// The verdict of a stratum whose rows choose another arm than the rule, which only a policy that
// was given has, and don't prove the rule's arm faster than the safe one.
inline constexpr std::string_view kNotChosen = "not_chosen";

// The verdict of a part of a rule that has no stratum, and lies between no two of them either: a
// given policy serves it beyond everything measured. Its lengths are those of the part.
inline constexpr std::string_view kNotMeasured = "not_measured";

// Evidence of a rule: one stratum.
struct RuleEvidence {
  std::string scenario;
  int64_t new_tokens = 0;
  int64_t shortest = 0;  // prompt tokens
  int64_t longest = 0;
  // The decision's name (analysis/findings/decision.h); kFasterThanSafe or kNotChosen where the
  // stratum itself takes another arm than the rule; kNotMeasured: no stratum.
  std::string verdict;
  std::optional<double> ratio;  // of the rule's arm to the safe arm, of means
  std::optional<stats::Interval> interval;
  std::optional<stats::Interval> process_range = {};  // of processes too few for an interval
  int64_t rows = 0;                                   // warm ones of the rule's arm
  // Latencies of warm rows of the rule's arm, and of the arm that it gives way to. p99 is absent
  // below kLeastRowsOfP99 rows (triggers.h).
  std::optional<double> mean_ms = {};
  std::optional<double> p99_ms = {};
  std::optional<double> fallback_mean_ms = {};
  std::optional<double> fallback_p99_ms = {};
  // The slowest row of the rule's arm that carries a compilation; absent: none does.
  std::optional<double> compile_ms = {};

  friend bool operator==(const RuleEvidence&, const RuleEvidence&) = default;
};

struct PolicyRule {
  std::string model;
  Phase phase = Phase::kPrefill;
  int64_t batch = 1;
  int64_t new_tokens = 0;       // the fewest; 0 in prefill
  int64_t new_tokens_span = 0;  // so many more, at most
  int64_t shortest = 0;         // prompt tokens, both ends included
  int64_t longest = 0;
  std::string arm;       // empty: no arm is safe, and the request has to be refused
  std::string fallback;  // empty: `arm` is the safe one, or none is
  bool abstains = false;
  // Reason of an abstention; or of an arm that isn't the choice of each stratum below, and is
  // proven faster than the safe one on all of them.
  std::string because;
  std::vector<PolicyTrigger> triggers;
  std::vector<RuleEvidence> evidence;

  int64_t most_new_tokens() const { return new_tokens + new_tokens_span; }

  friend bool operator==(const PolicyRule&, const PolicyRule&) = default;
};

struct Policy {
  std::string study;
  // The measured run (the first, if there were several): when it began, UTC, and the hash of its
  // plan. Empty: unknown.
  std::string measured_at;
  std::string plan_sha256;
  // Axis and value, as identity_lines() names them; the same of each arm below "arms.NAME".
  std::vector<std::pair<std::string, std::string>> identity;
  std::string fallback;  // for requests that no rule covers; empty: no arm is safe everywhere
  std::vector<PolicyRule> rules;
  std::vector<std::string> not_measured;

  // The identity's value of an axis; empty: it names none.
  std::string stated(std::string_view axis) const;

  friend bool operator==(const Policy&, const Policy&) = default;
};

// "64" or "65-127"; empty: the rule is about prompts.
std::string new_tokens_text(const PolicyRule& rule);

// Request whose rule is looked up.
struct RoutedShape {
  std::string_view model;
  Phase phase = Phase::kPrefill;
  int64_t batch = 1;
  int64_t new_tokens = 0;
  int64_t prompt_tokens = 0;
};
// Null: no rule covers it.
const PolicyRule* rule_of(const Policy& policy, const RoutedShape& shape);

// The reason why the policy isn't for the measured program: "device: expected ..., found ...";
// empty: it is. Axes that the policy doesn't name don't count.
std::string identity_mismatch(const Policy& policy,
                              const std::vector<std::pair<std::string, std::string>>& identity);

// First line of every policy that policy_to_yaml() wrote.
inline constexpr std::string_view kPolicyHeading = "# A routing policy, written by `assay route`.";
std::string policy_to_yaml(const Policy& policy);
// `object` names the text in errors. bad_input: anything that isn't a policy of this version;
// numbers that aren't ones of a policy, rules that cover one request twice.
Result<Policy> parse_policy(std::string_view text, std::string_view object);
Result<Policy> read_policy(const std::filesystem::path& path);
// policy_to_yaml(); bad_input where the policy is too large to be read back.
Result<std::string> checked_policy_text(const Policy& policy);

}  // namespace assay
