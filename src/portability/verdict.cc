// Verdicts between two regimes.
#include "portability/verdict.h"

#include <algorithm>

#include "base/records/enum_words.h"
#include "base/text/text.h"

namespace assay {
namespace {

bool means_known(const RegimeCell& a, const RegimeCell& b, const PortabilityOptions& options) {
  return a.mean && b.mean && reason_against(a, options).empty() &&
         reason_against(b, options).empty();
}

// True if both directions are decided and the same; asked where neither lost rows and the means
// aren't equivalent.
bool same_direction(const ArmDirection& a, const ArmDirection& b) {
  return a.decided == b.decided && a.decided != Verdict::kInconclusive;
}

std::string why_not_similar(const RegimeCell& a, const RegimeCell& b,
                            const ConditionVerdict& between) {
  if (!between.ratio->error) {
    return a.several_processes && b.several_processes
               ? "the times of its processes don't vary, so their mean has no error"
               : "one process can't show what differs between processes";
  }
  return "";
}

std::string direction_text(const ArmDirection& of) {
  if (!of.reason.empty()) return of.reason;
  return std::string(verdict_name(of.decided));
}

bool means_differ(const ConditionVerdict& of) {
  return of.decided == Verdict::kFaster || of.decided == Verdict::kSlower;
}

// Neither lost rows, no flip: by the means.
void judge_by_means(const RegimeCell& a, const RegimeCell& b, const ArmDirection& in_a,
                    const ArmDirection& in_b, bool is_baseline, const RegimeNames& names,
                    const PortabilityOptions& options, ConditionVerdict& out) {
  if (out.decided == Verdict::kEquivalent) {
    out.verdict = PortabilityVerdict::kSimilar;
    return;
  }
  const bool differs = means_differ(out);
  if (differs && (is_baseline || same_direction(in_a, in_b))) {
    out.verdict = PortabilityVerdict::kShift;
    return;
  }
  out.reason = why_not_similar(a, b, out);
  if (!out.reason.empty()) return;
  if (!differs) {
    out.reason = fmt::format("neither a difference nor equivalence within {:.3g} % is shown",
                             options.margin * 100);
  } else {
    out.reason = fmt::format("the means differ, and against the baseline it is {} in {}, {} in {}",
                             direction_text(in_a), names.a, direction_text(in_b), names.b);
  }
}

std::string unlike_executions(const RegimeCell& a, const RegimeCell& b, const RegimeNames& names) {
  if (a.execution == b.execution) return "";
  return fmt::format("ran {} in {}, {} in {}", execution_name(a.execution), names.a,
                     execution_name(b.execution), names.b);
}

void add_reason(const std::string& more, std::string& reason) {
  if (more.empty()) return;
  reason += reason.empty() ? more : "; " + more;
}

}  // namespace

std::string_view portability_verdict_name(PortabilityVerdict verdict) {
  return word_of(verdict,
                 {"portable_similar_latency", "portable_latency_shift", "direction_flip",
                  "outcome_flip", "confirmed_crash_both", "missing_a", "missing_b", "undecided"});
}

bool is_flip(PortabilityVerdict verdict) {
  return verdict == PortabilityVerdict::kDirectionFlip ||
         verdict == PortabilityVerdict::kOutcomeFlip;
}

bool is_open_difference(const ConditionVerdict& verdict) {
  return verdict.verdict == PortabilityVerdict::kUndecided && means_differ(verdict);
}

std::optional<OutcomeVerdict> outcome_verdict(const CrashRate& a, const CrashRate& b,
                                              const PortabilityOptions& options,
                                              const RegimeNames& names) {
  if (a.lost == 0 && b.lost == 0) return std::nullopt;
  const auto lost_text = [](const CrashRate& of) {
    return fmt::format("{} of {}", of.lost, counted(of.attempted, "row"));
  };
  const std::string both =
      fmt::format("lost {} in {}, {} in {}", lost_text(a), names.a, lost_text(b), names.b);
  // A cell that lost nothing can't show how its rows hang together; the other one does for both.
  const double effect = std::max(a.losses.design_effect(), b.losses.design_effect());
  const auto wide_a = a.losses.interval(effect);
  const auto wide_b = b.losses.interval(effect);
  if (!wide_a || !wide_b) return OutcomeVerdict{PortabilityVerdict::kUndecided, both};
  const bool apart = wide_a->high < wide_b->low || wide_b->high < wide_a->low;
  if ((a.lost == 0 || b.lost == 0) && apart) {
    return OutcomeVerdict{PortabilityVerdict::kOutcomeFlip, both};
  }
  if (a.interval->low > options.crash_share && b.interval->low > options.crash_share) {
    return OutcomeVerdict{PortabilityVerdict::kCrashBoth,
                          both + (apart ? "; the rates differ" : "")};
  }
  if (!apart) {
    return OutcomeVerdict{PortabilityVerdict::kUndecided,
                          both + ", which the intervals of the rates don't decide"};
  }
  return OutcomeVerdict{
      PortabilityVerdict::kUndecided,
      both + fmt::format("; the rates differ, but neither lost none, nor do both exceed {:.3g} %",
                         options.crash_share * 100)};
}

std::optional<PortabilityVerdict> flip_between(const PortedCondition& condition,
                                               std::span<const ArmDirection> directions, size_t a,
                                               size_t b, const PortabilityOptions& options) {
  const RegimeCell* in_a = condition.cells[a];
  const RegimeCell* in_b = condition.cells[b];
  if (in_a == nullptr || in_b == nullptr) return std::nullopt;
  const auto outcome = outcome_verdict(in_a->crashes, in_b->crashes, options);
  if (outcome) {
    return is_flip(outcome->verdict) ? std::optional(outcome->verdict) : std::nullopt;
  }
  if (opposite(directions[a].decided, directions[b].decided)) {
    return PortabilityVerdict::kDirectionFlip;
  }
  return std::nullopt;
}

std::vector<ConditionVerdict> judge_conditions(
    std::span<const Regime> regimes, std::span<const PortedCondition> conditions,
    std::span<const std::vector<ArmDirection>> directions, const PortabilityOptions& options) {
  std::vector<ConditionVerdict> all;
  for (size_t other = 1; other < regimes.size(); ++other) {
    for (size_t c = 0; c < conditions.size(); ++c) {
      const RegimeCell* a = conditions[c].cells[0];
      const RegimeCell* b = conditions[c].cells[other];
      if (a == nullptr && b == nullptr) continue;
      ConditionVerdict& of = all.emplace_back();
      of.condition = c;
      of.b = other;
      if (a == nullptr || b == nullptr || !means_known(*a, *b, options)) continue;
      of.ratio = estimate_between(*a->mean, *b->mean);
    }
  }
  std::vector<JudgedRatio*> family;
  for (ConditionVerdict& of : all) family.push_back(&of);
  test_ratios(family, options);
  judge_ratios(family, options);
  for (ConditionVerdict& of : all) {
    const PortedCondition& condition = conditions[of.condition];
    const RegimeCell* a = condition.cells[of.a];
    const RegimeCell* b = condition.cells[of.b];
    if (a == nullptr || b == nullptr) {
      of.verdict = a == nullptr ? PortabilityVerdict::kMissingA : PortabilityVerdict::kMissingB;
      continue;
    }
    const ArmDirection& in_a = directions[of.condition][of.a];
    const ArmDirection& in_b = directions[of.condition][of.b];
    const RegimeNames names{regimes[of.a].name, regimes[of.b].name};
    if (auto outcome = outcome_verdict(a->crashes, b->crashes, options, names)) {
      of.verdict = outcome->verdict;
      of.reason = std::move(outcome->reason);
    } else if (opposite(in_a.decided, in_b.decided)) {
      of.verdict = PortabilityVerdict::kDirectionFlip;
      of.reason = fmt::format("{} in {}, {} in {}", direction_text(in_a), names.a,
                              direction_text(in_b), names.b);
    } else if (!of.ratio) {
      const std::string reason_a = reason_against(*a, options);
      of.reason = reason_a.empty()
                      ? fmt::format("{} {} in {}", b->arm, reason_against(*b, options), names.b)
                      : fmt::format("{} {} in {}", a->arm, reason_a, names.a);
    } else {
      // A condition that no direction is asked of is the baseline's.
      const bool is_baseline = !in_a.ratio && in_a.reason.empty();
      judge_by_means(*a, *b, in_a, in_b, is_baseline, names, options, of);
    }
    add_reason(unlike_executions(*a, *b, names), of.reason);
  }
  return all;
}

}  // namespace assay
