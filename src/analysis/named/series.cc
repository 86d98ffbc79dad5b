// Findings along the order of a group's rows: cold starts, drift, changes of level, dependence.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/hypotheses/multiple.h"
#include "stats/samples/series.h"
#include "stats/samples/summary.h"
#include "stats/samples/trend.h"

namespace assay {
namespace {

std::string ms_text(double value) {
  return format_significant(value) + " ms";
}

// "mean 3.1 ms without, 4.0 ms with".
std::string means_text(double without, double with) {
  return fmt::format("mean {} without, {} with", ms_text(without), ms_text(with));
}

// Rows in order, cut where another process takes over: each has its own start and its own level.
using Rows = std::vector<const Row*>;
std::vector<Rows> by_process(const Rows& rows) {
  std::vector<Rows> parts;
  for (const Row* row : rows) {
    if (parts.empty() || parts.back().back()->process != row->process) parts.emplace_back();
    parts.back().push_back(row);
  }
  return parts;
}

// Finds a slow first sample: the slowest of the processes' first ones counts.
void find_skewed_first(const Samples& samples, const Group& group, const AnalysisOptions& options,
                       std::vector<Finding>& findings) {
  if (group.timed.size() < 3) return;
  const std::vector<Rows> parts = by_process(group.timed);
  std::vector<double> rest;
  const Row* slowest = group.timed.front();
  for (const Rows& part : parts) {
    if (*part.front()->latency_ms > *slowest->latency_ms) slowest = part.front();
    for (const Row* row : std::span(part).subspan(1)) rest.push_back(*row->latency_ms);
  }
  if (rest.empty()) return;
  const Row& first = *slowest;
  const std::vector<double> all = latencies_ms(group.timed);
  const double typical = *stats::median(stats::sorted(rest));
  const double factor = *first.latency_ms / typical;
  if (factor < options.cold_factor) return;
  Finding finding =
      about("cold_start_skew", first.cold ? Severity::kNote : Severity::kWarning, samples, group);
  finding.size = factor;
  const bool warm_means = first.cold && !group.warm.empty();
  const double without = *stats::mean(warm_means ? std::span<const double>(group.warm_ms)
                                                 : std::span<const double>(rest));
  finding.text = fmt::format(
      "the first sample{}, {}, is {} times the median of the other {} ({}) and {}; {}",
      parts.size() > 1
          ? fmt::format(" of process {} of {}", first.process.value_or(0) + 1, parts.size())
          : "",
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
  const size_t cold = group.timed.size() - group.warm.size();
  finding.text = fmt::format("{} left out; {} would move the mean by {:+.1f} %: {}",
                             cold == 1 ? "1 cold row was" : fmt::format("{} cold rows were", cold),
                             cold == 1 ? "it" : "they", shift * 100, means_text(without, with));
  for (const Row* row : group.timed) {
    if (row->cold) add_row(finding, *row);
  }
  findings.push_back(std::move(finding));
}

// The warm rows of a group but for those that compiled something, which have findings of their own:
// a churning arm's recompiles come first, and are no drift of the machine.
Rows uncompiled(const Group& group) {
  Rows rows;
  for (const Row* row : group.warm) {
    if (!carries_compilation(*row)) rows.push_back(row);
  }
  return rows;
}

struct Series {
  explicit Series(Rows of) : rows(std::move(of)), ms(latencies_ms(rows)) {}
  Rows rows;
  std::vector<double> ms;
};

// Pattern in the order of a group's rows: a trend, a row from which on the level is another, or
// neither. Different levels of two processes are neither.
struct InOrder {
  explicit InOrder(const Group& of);
  const Group* group;
  std::vector<Series> parts;  // by process; at least one row each
  std::optional<stats::TrendTest> trend;
  std::optional<stats::ChangePoint> change;  // within parts[changed]
  size_t changed = 0;
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

// A change so near an end that one side has no level to speak of is no change.
std::optional<stats::ChangePoint> change_in(std::span<const double> series) {
  constexpr size_t kLeastBeside = 5;
  auto change = stats::pettitt(series);
  if (!change || change->index < kLeastBeside || series.size() - change->index < kLeastBeside) {
    return std::nullopt;
  }
  return change;
}

// The level of each process, in their order.
std::vector<double> levels(const InOrder& one) {
  std::vector<double> medians;
  for (const Series& part : one.parts) medians.push_back(median_of(part.ms));
  return medians;
}

// A trend is one within the processes, or of their levels over the run. A change is that of the
// process that shows it most, by Bonferroni.
InOrder::InOrder(const Group& of) : group(&of) {
  std::vector<std::vector<double>> series;
  double tested = 0;
  for (Rows& rows : by_process(uncompiled(of))) {
    parts.emplace_back(std::move(rows));
    series.push_back(parts.back().ms);
    const auto found = change_in(parts.back().ms);
    if (!found) continue;
    ++tested;
    if (change && change->p <= found->p) continue;
    change = found;
    changed = parts.size() - 1;
  }
  if (change) change->p = std::min(1.0, change->p * tested);
  series.push_back(levels(*this));
  trend = stats::mann_kendall(series);
}

double slope_along(const Series& part) {
  std::vector<double> order;
  for (const Row* row : part.rows) order.push_back(static_cast<double>(row->order_index));
  return stats::theil_sen_slope(order, part.ms).value_or(0);
}

double way(const Series& part) {
  return slope_along(part) *
         static_cast<double>(part.rows.back()->order_index - part.rows.front()->order_index);
}

// Change of the latency: within the median process, or from the first process's level to the last's
// where that is larger.
double way(const InOrder& one) {
  std::vector<double> ways;
  for (const Series& part : one.parts) ways.push_back(way(part));
  const double within = median_of(ways);
  std::vector<double> place(one.parts.size());
  std::iota(place.begin(), place.end(), 0.0);
  const double between =
      stats::theil_sen_slope(place, levels(one)).value_or(0) * (place.empty() ? 0 : place.back());
  return std::abs(between) > std::abs(within) ? between : within;
}

// True if two levels leave less unexplained than a line.
bool steps_rather(const InOrder& one) {
  const Series& part = one.parts[one.changed];
  const double slope = slope_along(part);
  const std::span<const double> ms = part.ms;
  const auto before = ms.first(one.change->index);
  const auto after = ms.subspan(one.change->index);
  std::vector<double> level(ms.size());
  for (size_t i = 0; i < ms.size(); ++i) {
    level[i] =
        ms[i] - slope * static_cast<double>(part.rows[i]->order_index - part.rows[0]->order_index);
  }
  return spread({before.begin(), before.end()}) + spread({after.begin(), after.end()}) <
         spread(std::move(level));
}

// " of 3 processes": nothing where there is one.
std::string of_processes(const InOrder& one) {
  return one.parts.size() > 1 ? fmt::format(" of {} processes", one.parts.size()) : "";
}

void report_trend(const Samples& samples, const InOrder& one, const AnalysisOptions& options,
                  std::vector<Finding>& findings) {
  const Group& group = *one.group;
  const double share = way(one) / *stats::median(group.sorted_ms);
  if (std::abs(share) < options.notable) return;
  size_t rows = 0;
  for (const Series& part : one.parts) rows += part.rows.size();
  Finding finding = about("drift", Severity::kWarning, samples, group);
  finding.size = std::abs(share);
  finding.text = fmt::format(
      "latency drifts by {:+.1f} % of the median in the course of the {}{} (Theil-Sen; "
      "Mann-Kendall "
      "p = {}, Holm-adjusted)",
      share * 100, counted(rows, "warm row"), of_processes(one),
      format_significant(one.trend_p, 2));
  for (const Series& part : one.parts) add_rows(finding, part.rows);
  findings.push_back(std::move(finding));
}

// Adds the change if it is notable; true if it is.
bool report_change(const Samples& samples, const InOrder& one, const AnalysisOptions& options,
                   std::vector<Finding>& findings) {
  const Series& part = one.parts[one.changed];
  const std::span<const double> ms = part.ms;
  const size_t at = one.change->index;
  const double before = median_of(ms.first(at));
  const double after = median_of(ms.subspan(at));
  const double share = after / before - 1;
  if (std::abs(share) < options.notable) return false;
  Finding finding = about("level_change", Severity::kWarning, samples, *one.group);
  finding.size = std::abs(share);
  finding.text = fmt::format(
      "the median changes from {} to {} ({:+.1f} %) at warm row {} of {}{} (Pettitt p = {}, "
      "Holm-adjusted)",
      ms_text(before), ms_text(after), share * 100, at + 1, ms.size(),
      one.parts.size() > 1 ? fmt::format(" in process {}{}", one.changed + 1, of_processes(one))
                           : "",
      format_significant(one.change_p, 2));
  for (size_t i = at; i < part.rows.size(); ++i) add_row(finding, *part.rows[i]);
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
        "neighbouring repetitions are correlated: {} warm rows have an effective sample size of "
        "{:.0f}",
        latencies[g].n, *latencies[g].n_effective);
    if (latencies[g].processes < 2) {
      finding.text +=
          fmt::format(", and the standard error of their mean is {} times that of independent rows",
                      format_significant(latencies[g].widening, 2));
    }
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
      InOrder one(group);
      if (one.trend || one.change) family.push_back(std::move(one));
    }
    adjust(family);
    for (const InOrder& one : family) {
      const bool goes = one.trend_p < options.alpha;
      const bool changes = one.change_p < options.alpha;
      if (!goes && !changes) continue;
      const bool steps = changes && (!goes || steps_rather(one));
      if (steps && report_change(samples, one, options, findings)) continue;
      if (goes) report_trend(samples, one, options, findings);
    }
  }
}

}  // namespace assay
