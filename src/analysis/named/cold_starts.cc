// Finds cells whose first samples are slow, by more than slow calls anywhere explain.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/contrast/verdict.h"
#include "analysis/named/in_order.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/hypotheses/proportions.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// First sample of each process of a group, and the warm others, as multiples of the others' median.
struct ProcessStarts {
  const Group* group = nullptr;
  RowsInOrder rows;
  std::vector<double> factors;
  std::vector<double> others;
  double typical_ms = 0;  // that median
  double p_holm = 1;
  bool several = false;  // processes start slowly; else the first one does
};

// Absent for fewer than three samples.
std::optional<ProcessStarts> process_starts(const Group& group) {
  if (group.timed.size() < 3) return std::nullopt;
  ProcessStarts found{.group = &group, .rows = {}, .factors = {}, .others = {}};
  for (const RowsInOrder& process : by_process(group.timed)) {
    found.rows.push_back(process.front());
    for (size_t i = 1; i < process.size(); ++i) {
      if (!process[i]->cold) found.others.push_back(*process[i]->latency_ms);
    }
  }
  if (found.others.empty()) return std::nullopt;
  found.typical_ms = *stats::median(stats::sorted(found.others));
  for (const Row* row : found.rows) found.factors.push_back(*row->latency_ms / found.typical_ms);
  for (double& other : found.others) other /= found.typical_ms;
  return found;
}

int64_t count_from(std::span<const double> sorted, double limit) {
  return sorted.end() - std::ranges::lower_bound(sorted, limit);
}

// p that chance makes the first samples so slow, with slow calls as frequent as among `others`, the
// phase's samples but for first ones: of the first process by its rank among them, and of several
// processes by Fisher's test of slow ones; Bonferroni over the two.
double p_of_starts(std::span<const double> others, double slow, ProcessStarts& starts) {
  const auto n = std::ssize(others);
  const double first = starts.factors.front();
  const double of_first = first < slow ? 1
                                       : static_cast<double>(1 + count_from(others, first)) /
                                             static_cast<double>(1 + n);
  const auto processes = std::ssize(starts.factors);
  if (processes < 2) return of_first;
  const int64_t slow_ones =
      std::ranges::count_if(starts.factors, [&](double factor) { return factor >= slow; });
  const auto test = stats::fisher_exact({slow_ones, processes}, {count_from(others, slow), n},
                                        stats::Side::kGreater);
  const double of_several = test ? test->p : 1;
  starts.several = of_several < of_first;
  return std::min(1.0, 2 * std::min(of_first, of_several));
}

std::string means_text(double without, double with) {
  return fmt::format("mean {} ms without, {} ms with", format_significant(without),
                     format_significant(with));
}

// "the first sample of process 1 of 10", "the first samples of 4 of 5 processes are slow, the
// slowest of them".
std::string starts_text(const ProcessStarts& starts, size_t slow) {
  if (starts.rows.size() == 1) return "the first sample";
  if (!starts.several) {
    return fmt::format("the first sample of process 1 of {}", starts.rows.size());
  }
  return fmt::format("the first samples of {} of {} processes are slow; the slowest", slow,
                     starts.rows.size());
}

void report_starts(const Samples& samples, const ProcessStarts& starts,
                   const AnalysisOptions& options, std::vector<Finding>& findings) {
  const Group& group = *starts.group;
  RowsInOrder slow = {starts.rows.front()};
  if (starts.several) {
    slow.clear();
    for (size_t i = 0; i < starts.rows.size(); ++i) {
      if (starts.factors[i] >= options.cold_factor) slow.push_back(starts.rows[i]);
    }
  }
  const Row& slowest =
      **std::ranges::max_element(slow, {}, [](const Row* row) { return *row->latency_ms; });
  const bool counts = std::ranges::any_of(slow, [](const Row* row) { return !row->cold; });
  Finding finding =
      about("cold_start_skew", counts ? Severity::kWarning : Severity::kNote, samples, group);
  finding.size = *slowest.latency_ms / starts.typical_ms;
  std::vector<double> rest = starts.others;
  for (double& other : rest) other *= starts.typical_ms;
  const bool warm_means = !counts && !group.warm.empty();
  finding.text = fmt::format(
      "{}, {} ms, is {} times the median of the other {} ({} ms) and {}; {}",
      starts_text(starts, slow.size()), format_significant(*slowest.latency_ms),
      format_significant(finding.size, 3), rest.size(), format_significant(starts.typical_ms),
      counts ? "counts in the mean, as it isn't marked cold" : "is left out as cold",
      means_text(*stats::mean(warm_means ? group.warm_ms : rest),
                 *stats::mean(latencies_ms(group.timed))));
  add_rows(finding, slow);
  findings.push_back(std::move(finding));
}

// Rows of one group that are marked cold and below the factor of a slow start.
struct ColdRows {
  const Group* group = nullptr;
  RowsInOrder rows;
};

// Those of an arm in a phase beside its warm rows, each over the median of its group's warm rows.
struct ColdArm {
  std::vector<ColdRows> groups;
  std::vector<double> cold;
  std::vector<double> warm;

  void add(const Group& group, double slow_factor) {
    if (group.warm.empty() || group.warm.size() == group.timed.size()) return;
    ColdRows& of = groups.emplace_back(&group, RowsInOrder{});
    const double median = *stats::median(group.sorted_ms);
    for (const Row* row : group.timed) {
      (row->cold ? cold : warm).push_back(*row->latency_ms / median);
      // Slower ones are starts, or slow calls as there are elsewhere.
      const bool slow = row->cold && *row->latency_ms >= slow_factor * median;
      if (row->cold && !slow) of.rows.push_back(row);
    }
  }
  std::optional<double> p() const {
    const auto test = stats::mann_whitney(cold, warm);
    return test ? std::optional(test->p) : std::nullopt;
  }
};

void report_shift(const Samples& samples, const ColdRows& cold, const AnalysisOptions& options,
                  std::vector<Finding>& findings) {
  const Group& group = *cold.group;
  const double without = *stats::mean(group.warm_ms);
  RowsInOrder all = group.warm;
  all.insert(all.end(), cold.rows.begin(), cold.rows.end());
  const double with = *stats::mean(latencies_ms(all));
  const double shift = with / without - 1;
  if (std::abs(shift) <= options.margin) return;
  Finding finding = about("cold_start_skew", Severity::kNote, samples, group);
  finding.size = 1 + std::abs(shift);
  const bool one = cold.rows.size() == 1;
  finding.text =
      fmt::format("{} left out; {} would move the mean by {:+.1f} %: {}",
                  one ? "1 cold row was" : fmt::format("{} cold rows were", cold.rows.size()),
                  one ? "it" : "they", shift * 100, means_text(without, with));
  add_rows(finding, cold.rows);
  findings.push_back(std::move(finding));
}

void find_starts_of_phase(const Samples& samples, Phase phase, const AnalysisOptions& options,
                          std::vector<Finding>& findings) {
  std::vector<ProcessStarts> starts;
  std::map<size_t, ColdArm> cold;  // by arm
  std::vector<double> others;
  for (const Group& group : samples.groups) {
    if (samples.strata[group.stratum].phase != phase) continue;
    cold[group.arm].add(group, options.cold_factor);
    auto found = process_starts(group);
    if (!found) continue;
    others.insert(others.end(), found->others.begin(), found->others.end());
    starts.push_back(*std::move(found));
  }
  std::ranges::sort(others);
  std::vector<std::optional<double>> p;
  for (ProcessStarts& of : starts) p.push_back(p_of_starts(others, options.cold_factor, of));
  p = holm_of(p);
  // Few samples can't give a small p: there no other slow sample in the phase is proof enough.
  const bool alone = count_from(others, options.cold_factor) == 0;
  std::vector<const Group*> named;
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool first = alone && starts[i].factors.front() >= options.cold_factor;
    if (*p[i] >= options.alpha && !first) continue;
    report_starts(samples, starts[i], options, findings);
    named.push_back(starts[i].group);
  }
  std::vector<std::optional<double>> p_cold;
  for (const auto& [arm, of] : cold) p_cold.push_back(of.p());
  p_cold = holm_of(p_cold);
  size_t next = 0;
  for (const auto& [arm, of] : cold) {
    const std::optional<double>& of_arm = p_cold[next++];
    if (!of_arm || *of_arm >= options.alpha) continue;
    for (const ColdRows& rows : of.groups) {
      const bool is_named = std::ranges::find(named, rows.group) != named.end();
      if (!is_named) report_shift(samples, rows, options, findings);
    }
  }
}

}  // namespace

void find_cold_starts(const Samples& samples, const AnalysisOptions& options,
                      std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) find_starts_of_phase(samples, phase, options, findings);
}

}  // namespace assay
