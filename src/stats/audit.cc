// The audit: each way to recompute a figure is tried over the corners of its inputs' intervals.
#include "stats/audit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stats/audit_ways.h"

namespace assay::stats {
namespace {

constexpr std::array kColumns = {
    FigureColumn{Figure::kMeanA, "mean_a", "mean of group a", false},
    FigureColumn{Figure::kSdA, "sd_a", "its standard deviation (n - 1)", false},
    FigureColumn{Figure::kNA, "n_a", "its number of values", false},
    FigureColumn{Figure::kMeanB, "mean_b", "mean of group b", false},
    FigureColumn{Figure::kSdB, "sd_b", "its standard deviation", false},
    FigureColumn{Figure::kNB, "n_b", "its number of values", false},
    FigureColumn{Figure::kConfidence, "confidence", "of the interval, percent; 95 if absent",
                 false},
    FigureColumn{Figure::kMargin, "margin", "of the equivalence test, a difference", false},
    FigureColumn{Figure::kDelta, "delta", "mean_a - mean_b", true},
    FigureColumn{Figure::kPercentDelta, "percent_delta", "100 delta / mean_b", true},
    FigureColumn{Figure::kRatio, "ratio", "mean_a / mean_b", true},
    FigureColumn{Figure::kSe, "se", "standard error of delta", true},
    FigureColumn{Figure::kT, "t", "delta / se", true},
    FigureColumn{Figure::kDf, "df", "degrees of freedom of t", true},
    FigureColumn{Figure::kP, "p", "of t, or of f; \"<0.001\" is read", true},
    FigureColumn{Figure::kD, "d", "Cohen's d", true},
    FigureColumn{Figure::kG, "g", "Hedges' g", true},
    FigureColumn{Figure::kCiLow, "ci_low", "lower end of delta's interval", true},
    FigureColumn{Figure::kCiHigh, "ci_high", "upper end of delta's interval", true},
    FigureColumn{Figure::kF, "f", "F of an analysis of variance", true},
    FigureColumn{Figure::kDf1, "df1", "its first degrees of freedom", false},
    FigureColumn{Figure::kDf2, "df2", "its second degrees of freedom", false},
    FigureColumn{Figure::kEtaSquared, "eta_squared", "share of variance, of f", true},
    FigureColumn{Figure::kTostP, "tost_p", "p of equivalence within margin", true},
};

struct Outcome {
  double value = 0;
  Interval range;
};

// The way's value for the inputs as printed, and its range over the corners and middles of their
// intervals. Means whose intervals overlap may be equal: where |t| turns, no corner lies.
std::optional<Outcome> follow(const AuditWay& way, const PublishedRow& row) {
  std::vector<PrintedNumber> inputs;
  for (const Figure figure : way.inputs) {
    const auto found = row.find(figure);
    if (found == row.end() || found->second.is_bound) return std::nullopt;
    inputs.push_back(found->second);
  }
  std::vector<double> at;
  for (const PrintedNumber& input : inputs) at.push_back(input.value);
  const auto value = way.compute(at);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  Outcome outcome{*value, {*value, *value}};
  const auto widen = [&] {
    const auto corner = way.compute(at);
    if (!corner || std::isnan(*corner)) return;
    outcome.range.low = std::min(outcome.range.low, *corner);
    outcome.range.high = std::max(outcome.range.high, *corner);
  };
  std::vector<std::vector<double>> levels;
  size_t corners = 1;
  for (const PrintedNumber& x : inputs) {
    if (x.low == x.high) {
      levels.push_back({x.value});
    } else {
      levels.push_back({x.value, x.low, x.high});
    }
    corners *= levels.back().size();
  }
  for (size_t corner = 0; corner < corners; ++corner) {
    size_t left = corner;
    for (size_t i = 0; i < inputs.size(); ++i) {
      at[i] = levels[i][left % levels[i].size()];
      left /= levels[i].size();
    }
    widen();
  }
  if (way.first_two_are_means) {
    const double low = std::max(inputs[0].low, inputs[1].low);
    const double high = std::min(inputs[0].high, inputs[1].high);
    if (low <= high) {
      for (size_t i = 0; i < inputs.size(); ++i) at[i] = inputs[i].value;
      at[0] = at[1] = (low + high) / 2;
      widen();
    }
  }
  return outcome;
}

// Rounding of the program's own arithmetic must not decide.
double slack_of(double x) {
  return 1e-9 * std::abs(x);
}

bool meets(const PrintedNumber& claim, const Interval& range) {
  return range.low - slack_of(range.low) <= claim.high + slack_of(claim.high) &&
         range.high + slack_of(range.high) >= claim.low - slack_of(claim.low);
}

bool is_printed_as(const PrintedNumber& claim, double value) {
  return meets(claim, {value, value});
}

AuditedFigure audit_figure(Figure figure, const PrintedNumber& claim, const PublishedRow& row) {
  AuditedFigure audited;
  audited.figure = figure;
  for (const std::vector<AuditWay>& level : audit_ways(figure)) {
    std::vector<std::pair<const AuditWay*, Outcome>> found;
    for (const AuditWay& way : level) {
      if (const auto outcome = follow(way, row)) found.emplace_back(&way, *outcome);
    }
    if (found.empty()) continue;  // the next level needs other figures
    std::vector<std::pair<const AuditWay*, Outcome>> fitting;
    std::ranges::copy_if(found, std::back_inserter(fitting),
                         [&](const auto& x) { return meets(claim, x.second.range); });
    audited.verdict = fitting.empty() ? Verdict::kInconsistent : Verdict::kConsistent;
    auto chosen = fitting.empty() ? found.front() : fitting.front();
    for (const auto& x : fitting) {
      if (!is_printed_as(claim, x.second.value)) continue;
      chosen = x;
      break;
    }
    audited.recomputed = chosen.second.value;
    audited.range = chosen.second.range;
    audited.as = chosen.first->name;
    for (const auto& x : fitting) {
      if (x.first != chosen.first) audited.also.push_back(x.first->name);
    }
    return audited;
  }
  return audited;
}

}  // namespace

std::span<const FigureColumn> figure_columns() {
  return kColumns;
}

std::string_view figure_name(Figure figure) {
  return std::ranges::find(kColumns, figure, &FigureColumn::figure)->name;
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConsistent:
      return "consistent";
    case Verdict::kInconsistent:
      return "inconsistent";
    case Verdict::kNotDetermined:
      break;
  }
  return "not determined";
}

std::vector<AuditedFigure> audit_row(const PublishedRow& row) {
  PublishedRow inputs = row;
  inputs.try_emplace(Figure::kConfidence, PrintedNumber::exact(95));
  std::vector<AuditedFigure> audited;
  for (const FigureColumn& column : kColumns) {
    const auto claim = row.find(column.figure);
    if (!column.is_claim || claim == row.end()) continue;
    audited.push_back(audit_figure(column.figure, claim->second, inputs));
  }
  return audited;
}

}  // namespace assay::stats
