// Directions of arms within regimes.
#include "portability/direction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/contrast/dependence.h"
#include "base/text/text.h"
#include "stats/samples/summary.h"
#include "stats/sequential/confidence_sequence.h"

namespace assay {
namespace {

// Places of a condition in a regime.
struct Place {
  size_t condition = 0;
  size_t regime = 0;
};

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
double p_at_any_look(const std::vector<double>& values, const Shown& shown) {
  const auto at = [&](double log_alpha) {
    const auto interval = stats::confirmed_interval(values, std::exp(log_alpha));
    return interval && shown(*interval);
  };
  double no = std::log(1e-12);
  double yes = std::log(0.5);
  if (at(no)) return std::exp(no);
  if (!at(yes)) return 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (no + yes) / 2;
    (at(middle) ? yes : no) = middle;
  }
  return std::exp(yes);
}

// Judges a stratum that ended when it suited, by confidence sequences
// (stats/sequential/confidence_sequence.h).
void judge_at_any_look(const RegimeCell& arm, const RegimeCell& base,
                       const PortabilityOptions& options, ArmDirection& of) {
  const std::vector<double> values = log_ratios_of_rounds(arm, base);
  const auto mean = stats::mean(values);
  if (!mean) {
    of.reason =
        "its blocks ended as soon as its arms were decided, and no rounds of processes show the "
        "arms side by side";
    return;
  }
  const double margin = std::log1p(options.margin);
  of.ratio = LogRatioEstimate{*mean, {}};
  const auto test = [&](double p) { return stats::TestResult{*mean, {}, p, std::log(p)}; };
  of.test = test(p_at_any_look(values, [](const auto& i) { return !i.contains(0); }));
  of.tost = test(
      p_at_any_look(values, [&](const auto& i) { return i.low > -margin && i.high < margin; }));
}

void judge_directions(std::vector<ArmDirection*>& family, const PortabilityOptions& options) {
  adjust_by_holm(family, &ArmDirection::test, &ArmDirection::p_holm);
  adjust_by_holm(family, &ArmDirection::tost, &ArmDirection::tost_p_holm);
  for (ArmDirection* of : family) {
    of->verdict = verdict_of(of->ratio->shown(options.confidence), {of->p_holm, of->tost_p_holm},
                             options.alpha, options.margin);
  }
}

}  // namespace

std::string reason_against(const RegimeCell& cell, const PortabilityOptions& options) {
  if (cell.crashes.lost > 0) {
    return fmt::format("lost {} of {}", cell.crashes.lost, counted(cell.crashes.attempted, "row"));
  }
  if (cell.parity_failed) return "failed parity";
  if (std::ssize(cell.rows) < options.minimum_rows) {
    return fmt::format("has {}, needs {}", counted(std::ssize(cell.rows), "warm ok row"),
                       options.minimum_rows);
  }
  return "";
}

bool opposite(Verdict a, Verdict b) {
  return (a == Verdict::kFaster && b == Verdict::kSlower) ||
         (a == Verdict::kSlower && b == Verdict::kFaster);
}

std::vector<LogRatioEstimate> estimates_of(std::span<const PairedRatio> ratios, bool by_rounds) {
  std::vector<LogRatioEstimate> estimates;
  std::vector<std::vector<double>> series;
  for (const PairedRatio& ratio : ratios) {
    estimates.push_back({ratio.log_ratio(), ratio.error()});
    if (!by_rounds) series.push_back(ratio.values);
  }
  if (by_rounds) return estimates;
  const std::vector<Dependence> alike = dependences(series);
  for (size_t i = 0; i < estimates.size(); ++i) {
    auto& error = estimates[i].error;
    if (error) error = error->widened(alike[i].widening);
  }
  return estimates;
}

std::vector<std::vector<ArmDirection>> directions(std::span<const PortedCondition> conditions,
                                                  const ArmConfig& baseline,
                                                  const PortabilityOptions& options) {
  std::map<Stratum, const PortedCondition*> baselines;
  for (const PortedCondition& c : conditions) {
    if (c.config == baseline) baselines[c.stratum] = &c;
  }
  std::vector<std::vector<ArmDirection>> all(conditions.size());
  std::vector<ArmDirection*> looked_at;
  // A family of series for each regime, phase and unit.
  std::map<std::array<size_t, 3>, std::pair<std::vector<Place>, std::vector<PairedRatio>>> series;
  for (size_t c = 0; c < conditions.size(); ++c) {
    const PortedCondition& condition = conditions[c];
    all[c].resize(condition.cells.size());
    if (condition.config == baseline) continue;
    const auto of_stratum = baselines.find(condition.stratum);
    for (size_t r = 0; r < condition.cells.size(); ++r) {
      const RegimeCell* base =
          of_stratum == baselines.end() ? nullptr : of_stratum->second->cells[r];
      const RegimeCell* arm = condition.cells[r];
      all[c][r].reason = reason_between(arm, base, options);
      if (!all[c][r].reason.empty()) continue;
      if (base->looked_at) {
        judge_at_any_look(*arm, *base, options, all[c][r]);
        if (all[c][r].reason.empty()) looked_at.push_back(&all[c][r]);
        continue;
      }
      auto ratio = arms_ratio(*arm, *base);
      if (!ratio || !std::isfinite(ratio->log_ratio())) {
        all[c][r].reason = "no repetition of both arms was measured side by side";
        continue;
      }
      auto& [places, ratios] =
          series[{r, static_cast<size_t>(condition.stratum.phase), base->by_rounds ? 1u : 0u}];
      places.push_back({c, r});
      ratios.push_back(*std::move(ratio));
    }
  }
  const double margin = std::log1p(options.margin);
  std::vector<ArmDirection*> family = std::move(looked_at);
  for (const auto& [key, members] : series) {
    const auto& [places, ratios] = members;
    const std::vector<LogRatioEstimate> estimates = estimates_of(ratios, key[2] == 1);
    for (size_t i = 0; i < places.size(); ++i) {
      ArmDirection& of = all[places[i].condition][places[i].regime];
      of.ratio = estimates[i];
      const PortedCondition& condition = conditions[places[i].condition];
      const size_t regime = places[i].regime;
      of.ratio->range =
          range_of_few(*condition.cells[regime], *baselines.at(condition.stratum)->cells[regime]);
      family.push_back(&of);
      if (!estimates[i].error) continue;
      of.test = stats::t_test(estimates[i].log_ratio, *estimates[i].error);
      of.tost = stats::tost(estimates[i].log_ratio, *estimates[i].error, -margin, margin);
    }
  }
  judge_directions(family, options);
  return all;
}

}  // namespace assay
