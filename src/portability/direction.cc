// Directions of arms within regimes.
#include "portability/direction.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/contrast/any_look.h"
#include "base/text/text.h"
#include "stats/sequential/confidence_sequence.h"

namespace assay {
namespace {

std::string reason_between(const RegimeCell* arm, const RegimeCell* base,
                           const PortabilityOptions& options) {
  if (arm == nullptr) return "not measured";
  if (base == nullptr) return "the baseline was not measured beside it";
  if (!arm->void_because.empty()) return arm->void_because;
  for (const RegimeCell* cell : {arm, base}) {
    const std::string reason = reason_against(*cell, options);
    if (!reason.empty()) return fmt::format("{} {}", cell->arm, reason);
  }
  return "";
}

// The smallest level at which the interval shows it: p that holds at any look, as the interval
// does. 1: at none.
template <typename Shown>
stats::TestResult test_at_any_look(const Estimate& ratio, const Shown& shown) {
  const std::vector<double> values = log_ratios_of(ratio);
  const auto at = [&](double log_alpha) {
    const auto interval = stats::confirmed_interval(values, std::exp(log_alpha));
    return interval && shown(stats::Interval{interval->low + std::log(ratio.beyond.low),
                                             interval->high + std::log(ratio.beyond.high)});
  };
  double no = std::log(1e-12);
  double yes = std::log(0.5);
  if (at(no)) {
    yes = no;
  } else if (!at(yes)) {
    yes = 0;
  } else {
    for (int i = 0; i < 40; ++i) {
      const double middle = (no + yes) / 2;
      (at(middle) ? yes : no) = middle;
    }
  }
  return {0, {}, std::exp(yes), yes};
}

// Tests of a stratum that ended when it suited, by confidence sequences
// (stats/sequential/confidence_sequence.h).
void test_rounds(const PortabilityOptions& options, ArmDirection& of) {
  const double margin = std::log1p(options.margin);
  of.test = test_at_any_look(*of.ratio, [](const auto& i) { return !i.contains(0); });
  of.tost = test_at_any_look(*of.ratio,
                             [&](const auto& i) { return i.low > -margin && i.high < margin; });
}

}  // namespace

std::string reason_against(const RegimeCell& cell, const PortabilityOptions& options) {
  if (cell.crashes.lost > 0) {
    return fmt::format("lost {} of {}", cell.crashes.lost, counted(cell.crashes.attempted, "row"));
  }
  if (cell.parity_failed) return "failed parity";
  if (cell.warm < options.minimum_rows) {
    return fmt::format("has {}, needs {}", counted(cell.warm, "warm ok row"), options.minimum_rows);
  }
  return "";
}

bool opposite(Verdict a, Verdict b) {
  return (a == Verdict::kFaster && b == Verdict::kSlower) ||
         (a == Verdict::kSlower && b == Verdict::kFaster);
}

std::vector<std::vector<ArmDirection>> directions(std::span<const PortedCondition> conditions,
                                                  const ArmConfig& baseline,
                                                  const PortabilityOptions& options) {
  std::map<Stratum, const PortedCondition*> baselines;
  for (const PortedCondition& c : conditions) {
    if (c.config == baseline) baselines[c.stratum] = &c;
  }
  std::vector<std::vector<ArmDirection>> all(conditions.size());
  std::vector<JudgedRatio*> family;
  for (size_t c = 0; c < conditions.size(); ++c) {
    const PortedCondition& condition = conditions[c];
    all[c].resize(condition.cells.size());
    if (condition.config == baseline) continue;
    const auto of_stratum = baselines.find(condition.stratum);
    for (size_t r = 0; r < condition.cells.size(); ++r) {
      const RegimeCell* base =
          of_stratum == baselines.end() ? nullptr : of_stratum->second->cells[r];
      const RegimeCell* arm = condition.cells[r];
      ArmDirection& of = all[c][r];
      of.reason = reason_between(arm, base, options);
      if (!of.reason.empty()) continue;
      Estimate ratio = estimate_beside(*arm, *base);
      of.reason = ratio.why_absent;
      if (!of.reason.empty()) continue;
      of.ratio = std::move(ratio);
      if (base->looked_at) test_rounds(options, of);
      family.push_back(&of);
    }
  }
  test_ratios(family, options);
  judge_ratios(family, options);
  return all;
}

}  // namespace assay
