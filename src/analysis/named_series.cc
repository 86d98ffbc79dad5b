// Findings along the order of a group's rows: cold starts, drift, changes of level, dependence.
#include <algorithm>
#include <cmath>

#include "analysis/named.h"
#include "base/text.h"
#include "stats/multiple.h"
#include "stats/series.h"
#include "stats/summary.h"
#include "stats/trend.h"

namespace assay {
namespace {

std::string ms_text(double value) {
  return format_significant(value) + " ms";
}

// "mean 3.1 ms without, 4.0 ms with".
std::string means_text(double without, double with) {
  return fmt::format("mean {} without, {} with", ms_text(without), ms_text(with));
}

void find_skewed_first(const Samples& samples, const Group& group, const AnalysisOptions& options,
                       std::vector<Finding>& findings) {
  if (group.timed.size() < 3) return;
  const Row& first = *group.timed.front();
  const std::vector<double> all = latencies_ms(group.timed);
  const auto rest = std::span<const double>(all).subspan(1);
  const double typical = *stats::median(stats::sorted(rest));
  const double factor = *first.latency_ms / typical;
  if (factor < options.cold_factor) return;
  Finding finding =
      about("cold_start_skew", first.cold ? Severity::kNote : Severity::kWarning, samples, group);
  finding.size = factor;
  const bool warm_means = first.cold && !group.warm.empty();
  const double without = *stats::mean(warm_means ? std::span<const double>(group.warm_ms) : rest);
  finding.text = fmt::format(
      "the first sample, {}, is {} times the median of the other {} ({}) and {}; {}",
      ms_text(*first.latency_ms), format_significant(factor, 3), rest.size(), ms_text(typical),
      first.cold ? "is left out as cold" : "counts in the mean, as it isn't marked cold",
      means_text(without, *stats::mean(all)));
  add_row(finding, first);
  findings.push_back(std::move(finding));
}

void find_cold_shift(const Samples& samples, const Group& group, const AnalysisOptions& options,
                     std::vector<Finding>& findings) {
  if (group.warm.empty() || group.warm.size() == group.timed.size()) return;
  const double without = *stats::mean(group.warm_ms);
  const double with = *stats::mean(latencies_ms(group.timed));
  const double shift = with / without - 1;
  if (std::abs(shift) <= options.margin) return;
  Finding finding = about("cold_start_skew", Severity::kNote, samples, group);
  finding.size = 1 + std::abs(shift);
  finding.text =
      fmt::format("{} cold rows, left out, would move the mean by {:+.1f} %: {}",
                  group.timed.size() - group.warm.size(), shift * 100, means_text(without, with));
  for (const Row* row : group.timed) {
    if (row->cold) add_row(finding, *row);
  }
  findings.push_back(std::move(finding));
}

// The warm rows of a group but for those that compiled something, which have findings of their own:
// a churning arm's recompiles come first, and are no drift of the machine.
struct Series {
  explicit Series(const Group& of) : group(&of) {
    for (const Row* row : of.warm) {
      if (!carries_compilation(*row)) rows.push_back(row);
    }
    ms = latencies_ms(rows);
  }
  const Group* group;
  std::vector<const Row*> rows;
  std::vector<double> ms;
};

// What one series' order shows: a way that it goes, a row from which on it is another, or neither.
struct InOrder {
  Series series;
  std::optional<stats::TrendTest> trend;
  std::optional<stats::ChangePoint> change;
  double trend_p = 1;  // adjusted over the family
  double change_p = 1;
};

double median_of(std::span<const double> values) {
  return *stats::median(stats::sorted(values));
}

// Sum of distances from the median.
double spread(std::vector<double> values) {
  const double center = median_of(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - center);
  return sum;
}

double slope_along(const InOrder& one) {
  std::vector<double> order;
  for (const Row* row : one.series.rows) order.push_back(static_cast<double>(row->order_index));
  return stats::theil_sen_slope(order, one.series.ms).value_or(0);
}

double way(const InOrder& one, double slope) {
  const auto& rows = one.series.rows;
  return slope * static_cast<double>(rows.back()->order_index - rows.front()->order_index);
}

// Whether two levels leave less unexplained than a line.
bool steps_rather(const InOrder& one, double slope) {
  const std::span<const double> ms = one.series.ms;
  const auto before = ms.first(one.change->index);
  const auto after = ms.subspan(one.change->index);
  std::vector<double> level(ms.size());
  for (size_t i = 0; i < ms.size(); ++i) {
    level[i] = ms[i] - slope * static_cast<double>(one.series.rows[i]->order_index -
                                                   one.series.rows[0]->order_index);
  }
  return spread({before.begin(), before.end()}) + spread({after.begin(), after.end()}) <
         spread(std::move(level));
}

void report_trend(const Samples& samples, const InOrder& one, double slope,
                  const AnalysisOptions& options, std::vector<Finding>& findings) {
  const Group& group = *one.series.group;
  const double share = way(one, slope) / *stats::median(group.sorted_ms);
  if (std::abs(share) < options.notable) return;
  Finding finding = about("drift", Severity::kWarning, samples, group);
  finding.size = std::abs(share);
  finding.text = fmt::format(
      "latency drifts by {:+.1f} % of the median over the order of the {} warm rows (Theil-Sen; "
      "Mann-Kendall p = {}, Holm-adjusted)",
      share * 100, one.series.rows.size(), format_significant(one.trend_p, 2));
  add_rows(finding, one.series.rows);
  findings.push_back(std::move(finding));
}

// Whether it is notable, and so reported.
bool report_change(const Samples& samples, const InOrder& one, const AnalysisOptions& options,
                   std::vector<Finding>& findings) {
  const std::span<const double> ms = one.series.ms;
  const size_t at = one.change->index;
  const double before = median_of(ms.first(at));
  const double after = median_of(ms.subspan(at));
  const double share = after / before - 1;
  if (std::abs(share) < options.notable) return false;
  Finding finding = about("level_change", Severity::kWarning, samples, *one.series.group);
  finding.size = std::abs(share);
  finding.text = fmt::format(
      "from warm row {} of {} on the median is {}, {} before: {:+.1f} % (Pettitt p = {}, "
      "Holm-adjusted)",
      at + 1, ms.size(), ms_text(after), ms_text(before), share * 100,
      format_significant(one.change_p, 2));
  for (size_t i = at; i < one.series.rows.size(); ++i) add_row(finding, *one.series.rows[i]);
  findings.push_back(std::move(finding));
  return true;
}

// Trend and change are one family: twice as many tests as groups.
void adjust(std::vector<InOrder>& family) {
  std::vector<double> p_values;
  for (const InOrder& one : family) {
    if (one.trend) p_values.push_back(one.trend->p);
    if (one.change) p_values.push_back(one.change->p);
  }
  const std::vector<double> holm = stats::holm(p_values);
  size_t next = 0;
  for (InOrder& one : family) {
    if (one.trend) one.trend_p = holm[next++];
    if (one.change) one.change_p = holm[next++];
  }
}

// A change so near an end that one side has no level to speak of is no change.
std::optional<stats::ChangePoint> change_in(std::span<const double> series) {
  constexpr size_t kLeastRows = 5;
  auto change = stats::pettitt(series);
  if (!change || change->index < kLeastRows || series.size() - change->index < kLeastRows) {
    return std::nullopt;
  }
  return change;
}

}  // namespace

void find_cold_starts(const Samples& samples, const AnalysisOptions& options,
                      std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    const size_t before = findings.size();
    find_skewed_first(samples, group, options, findings);
    if (findings.size() == before) find_cold_shift(samples, group, options, findings);
  }
}

void find_dependence(const Samples& samples, const std::vector<Latency>& latencies,
                     std::vector<Finding>& findings) {
  constexpr double kNotableLoss = 2;
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const auto n = static_cast<double>(latencies[g].n);
    if (!latencies[g].n_effective || n < kNotableLoss * *latencies[g].n_effective) continue;
    const double loss = n / *latencies[g].n_effective;
    Finding finding = about("autocorrelation", Severity::kNote, samples, samples.groups[g]);
    finding.size = loss;
    finding.text = fmt::format(
        "neighbouring repetitions are alike: its {} warm rows tell as much of the mean as {:.0f} "
        "independent ones, and the error of their mean is {} times as large as theirs would be",
        latencies[g].n, *latencies[g].n_effective, format_significant(latencies[g].widening, 2));
    add_rows(finding, samples.groups[g].warm);
    findings.push_back(std::move(finding));
  }
}

void find_changes_in_order(const Samples& samples, const AnalysisOptions& options,
                           std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) {
    std::vector<InOrder> family;
    for (const Group& group : samples.groups) {
      if (samples.strata[group.stratum].phase != phase) continue;
      InOrder one{Series(group), {}, {}};
      one.trend = stats::mann_kendall(one.series.ms);
      one.change = change_in(one.series.ms);
      if (one.trend || one.change) family.push_back(std::move(one));
    }
    adjust(family);
    for (const InOrder& one : family) {
      const bool goes = one.trend_p < options.alpha;
      const bool changes = one.change_p < options.alpha;
      if (!goes && !changes) continue;
      const double slope = slope_along(one);
      const bool steps = changes && (!goes || steps_rather(one, slope));
      if (steps && report_change(samples, one, options, findings)) continue;
      if (goes) report_trend(samples, one, slope, options, findings);
    }
  }
}

}  // namespace assay
