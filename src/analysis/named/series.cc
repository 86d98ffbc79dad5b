// Findings along the order of a group's rows: drift, changes of level, dependence.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/contrast/verdict.h"
#include "analysis/contrast/widenings.h"
#include "analysis/named/in_order.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/samples/series.h"
#include "stats/samples/summary.h"
#include "stats/samples/trend.h"

namespace assay {
namespace {

std::string ms_text(double value) {
  return format_significant(value) + " ms";
}

struct Series {
  explicit Series(RowsInOrder of) : rows(std::move(of)), ms(latencies_ms(rows)) {}
  RowsInOrder rows;
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
  for (RowsInOrder& rows : by_process(uncompiled(of))) {
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
  std::vector<std::optional<double>> p;
  for (const InOrder& one : family) {
    p.push_back(one.trend ? std::optional(one.trend->p) : std::nullopt);
    p.push_back(one.change ? std::optional(one.change->p) : std::nullopt);
  }
  p = holm_of(p);
  for (size_t i = 0; i < family.size(); ++i) {
    family[i].trend_p = p[2 * i].value_or(1);
    family[i].change_p = p[2 * i + 1].value_or(1);
  }
}

// "neighbouring repetitions within a process".
std::string neighbours_text(const Latency& latency) {
  return latency.processes > 1 ? "neighbouring repetitions within a process"
                               : "neighbouring repetitions";
}

// A pair of arms whose rounds of processes depend on one another.
void find_dependent_rounds(const std::vector<Contrast>& contrasts, std::vector<Finding>& findings) {
  for (const Contrast& contrast : contrasts) {
    const double error = contrast.widening.error;
    if (contrast.unit != ContrastUnit::kProcesses || error * error < kNotableLoss) continue;
    Finding finding = about_phase("dependent_rounds", Severity::kNote, contrast.phase);
    finding.stratum = contrast.stratum;
    finding.arm = contrast.arm;
    finding.size = error * error;
    finding.text = fmt::format(
        "neighbouring rounds of processes are correlated: the error of the ratio to {} is {} times "
        "that of {} independent rounds",
        contrast.baseline, format_significant(error, 2), contrast.units_arm);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<RowsInOrder> by_process(const RowsInOrder& rows) {
  std::vector<RowsInOrder> parts;
  for (const Row* row : rows) {
    if (parts.empty() || parts.back().back()->process != row->process) parts.emplace_back();
    parts.back().push_back(row);
  }
  return parts;
}

RowsInOrder uncompiled(const Group& group) {
  RowsInOrder rows;
  for (const Row* row : group.warm) {
    if (!carries_compilation(*row)) rows.push_back(row);
  }
  return rows;
}

void find_dependence(const Samples& samples, const std::vector<Latency>& latencies,
                     const std::vector<Contrast>& contrasts, std::vector<Finding>& findings) {
  const std::vector<double> inflations = inflations_within_processes(samples);
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    if (!latencies[g].n_effective || inflations[g] < kNotableLoss) continue;
    Finding finding = about("autocorrelation", Severity::kNote, samples, samples.groups[g]);
    finding.size = inflations[g];
    finding.text = fmt::format(
        "{} are correlated: {} warm rows have an effective sample size of "
        "{:.0f}",
        neighbours_text(latencies[g]), latencies[g].n,
        static_cast<double>(latencies[g].n) / inflations[g]);
    if (latencies[g].processes < 2) {
      finding.text +=
          fmt::format(", and the standard error of their mean is {} times that of independent rows",
                      format_significant(latencies[g].widening, 2));
    }
    add_rows(finding, samples.groups[g].warm);
    findings.push_back(std::move(finding));
  }
  find_dependent_rounds(contrasts, findings);
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
    // The other half is that of rounds of processes, where there are any.
    const double alpha = options.alpha / (round_levels(samples, phase) ? 2 : 1);
    for (const InOrder& one : family) {
      const bool goes = one.trend_p < alpha;
      const bool changes = one.change_p < alpha;
      if (!goes && !changes) continue;
      const bool steps = changes && (!goes || steps_rather(one));
      if (steps && report_change(samples, one, options, findings)) continue;
      if (goes) report_trend(samples, one, options, findings);
    }
  }
}

}  // namespace assay
