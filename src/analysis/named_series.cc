// Findings along the order of a group's rows: cold starts and drift.
#include <algorithm>
#include <cmath>

#include "analysis/named.h"
#include "base/text.h"
#include "stats/multiple.h"
#include "stats/summary.h"
#include "stats/trend.h"

namespace assay {
namespace {

std::string ms(double value) {
  return format_significant(value) + " ms";
}

// "mean 3.1 ms without, 4.0 ms with".
std::string means_text(double without, double with) {
  return fmt::format("mean {} without, {} with", ms(without), ms(with));
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
      ms(*first.latency_ms), format_significant(factor, 3), rest.size(), ms(typical),
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

void report_trend(const Samples& samples, const Series& series, double adjusted_p,
                  const AnalysisOptions& options, std::vector<Finding>& findings) {
  const Group& group = *series.group;
  std::vector<double> order;
  for (const Row* row : series.rows) order.push_back(static_cast<double>(row->order_index));
  const auto slope = stats::theil_sen_slope(order, series.ms);
  if (!slope) return;
  const double share = *slope * (order.back() - order.front()) / *stats::median(group.sorted_ms);
  if (std::abs(share) < options.notable) return;
  Finding finding = about("drift", Severity::kWarning, samples, group);
  finding.size = std::abs(share);
  finding.text = fmt::format(
      "latency drifts by {:+.1f} % of the median over the order of the {} warm rows (Theil-Sen; "
      "Mann-Kendall p = {}, Holm-adjusted)",
      share * 100, series.rows.size(), format_significant(adjusted_p, 2));
  add_rows(finding, series.rows);
  findings.push_back(std::move(finding));
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
        "independent ones; an interval that takes them for independent is {} times too narrow",
        latencies[g].n, *latencies[g].n_effective, format_significant(std::sqrt(loss), 2));
    add_rows(finding, samples.groups[g].warm);
    findings.push_back(std::move(finding));
  }
}

void find_drift(const Samples& samples, const AnalysisOptions& options,
                std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) {
    std::vector<Series> family;
    std::vector<double> p_values;
    for (const Group& group : samples.groups) {
      if (samples.strata[group.stratum].phase != phase) continue;
      Series series(group);
      const auto test = stats::mann_kendall(series.ms);
      if (!test) continue;
      family.push_back(std::move(series));
      p_values.push_back(test->p);
    }
    const std::vector<double> adjusted = stats::holm(p_values);
    for (size_t i = 0; i < family.size(); ++i) {
      if (adjusted[i] < options.alpha) {
        report_trend(samples, family[i], adjusted[i], options, findings);
      }
    }
  }
}

}  // namespace assay
