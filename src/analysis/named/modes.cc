// Findings about the shape of a group's latencies: two modes, and none at all.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/contrast/verdict.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/estimates/dip.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr size_t kLeastRows = 10;
constexpr double kLeastShare = 0.1;  // of the rows, for a mode; fewer are a tail
constexpr size_t kLeastInMode = 3;   // rows: that share of the usual cell's 30
constexpr double kExplainedShare = 0.9;

// Equal values spread over the clock's step, the smallest distance between two that differ: a
// coarse clock shows steps, and each would be a mode. Two values are left alone: there is no
// telling a clock's step from two modes.
std::vector<double> without_steps(const std::vector<double>& sorted) {
  size_t distinct = 1;
  double step = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    const double gap = sorted[i] - sorted[i - 1];
    if (gap > 0 && (step == 0 || gap < step)) step = gap;
    distinct += gap > 0;
  }
  std::vector<double> spread = sorted;
  if (distinct < 3 || distinct == sorted.size()) return spread;
  for (size_t begin = 0; begin < sorted.size();) {
    size_t end = begin;
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    const auto ties = static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) {
      spread[i] += step * ((static_cast<double>(i - begin) + 0.5) / ties - 0.5);
    }
    begin = end;
  }
  return spread;
}

// Distribution of one group's rows, without those that compiled something.
struct Shape {
  const Group* group = nullptr;
  std::vector<const Row*> rows;
  std::vector<double> sorted_ms;
  double p = 1;
  double p_holm = 1;
};

// Two modes: how many of the ascending values belong to the lower one, by the cut that leaves the
// least spread of logarithms within the two.
size_t cut_of(const std::vector<double>& sorted_ms) {
  double total = 0;
  for (const double ms : sorted_ms) total += std::log(ms);
  const auto n = static_cast<double>(sorted_ms.size());
  double below = 0;
  double best = -1;
  size_t cut = 1;
  for (size_t i = 1; i < sorted_ms.size(); ++i) {
    below += std::log(sorted_ms[i - 1]);
    const auto k = static_cast<double>(i);
    const double apart = below / k - (total - below) / (n - k);
    if (const double between = k * (n - k) * apart * apart; between > best) {
      best = between;
      cut = i;
    }
  }
  return cut;
}

struct Modes {
  double limit = 0;  // rows up to here are of the lower mode
  size_t lower = 0;
  double lower_ms = 0;  // medians
  double upper_ms = 0;
};

Modes modes_of(const Shape& shape) {
  Modes modes;
  modes.lower = cut_of(shape.sorted_ms);
  const std::span<const double> all = shape.sorted_ms;
  modes.limit = all[modes.lower - 1];
  modes.lower_ms = *stats::median(all.first(modes.lower));
  modes.upper_ms = *stats::median(all.subspan(modes.lower));
  return modes;
}

// True if the answered prompt tells a row's mode: prompts of several lengths take their time each.
// A prompt that was answered once tells everything.
bool prompts_explain(const Shape& shape, const Modes& modes) {
  std::map<std::pair<std::string_view, int64_t>, std::pair<size_t, size_t>> prompts;
  for (const Row* row : shape.rows) {
    auto& [lower, upper] = prompts[{row->prompt_id.str(), row->padded_tokens}];
    ++(*row->latency_ms <= modes.limit ? lower : upper);
  }
  size_t told = 0;
  bool any_lower = false;
  bool any_upper = false;
  for (const auto& [prompt, counts] : prompts) {
    told += std::max(counts.first, counts.second);
    (counts.first > counts.second ? any_lower : any_upper) = true;
  }
  return any_lower && any_upper &&
         static_cast<double>(told) >= kExplainedShare * static_cast<double>(shape.rows.size());
}

// True if the modes are one after the other in time.
bool order_explains(const Shape& shape, const Modes& modes) {
  size_t upper_before = 0;
  size_t lower_after = modes.lower;
  size_t misplaced = shape.rows.size();
  for (const Row* row : shape.rows) {
    *row->latency_ms <= modes.limit ? --lower_after : ++upper_before;
    const size_t wrong = upper_before + lower_after;
    misplaced = std::min({misplaced, wrong, shape.rows.size() - wrong});
  }
  return static_cast<double>(misplaced) <=
         (1 - kExplainedShare) * static_cast<double>(shape.rows.size());
}

// True if `findings` have a change of the group or of its whole phase.
bool has_change(const Group& group, const Samples& samples, const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    const bool is_here =
        finding.stratum ? finding.stratum == group.stratum && finding.arm == samples.arms[group.arm]
                        : finding.phase == samples.strata[group.stratum].phase;
    return (finding.kind == "level_change" || finding.kind == "drift") && is_here;
  });
}

std::string mode_text(size_t rows, size_t of, double ms) {
  return fmt::format("{} ms in {} ({:.0f} %)", format_significant(ms), counted(rows, "row"),
                     100 * static_cast<double>(rows) / static_cast<double>(of));
}

void report(const Samples& samples, const Shape& shape, const AnalysisOptions& options,
            std::vector<Finding>& findings) {
  const Modes modes = modes_of(shape);
  const size_t n = shape.rows.size();
  const size_t upper = n - modes.lower;
  const size_t least = std::min(modes.lower, upper);
  if (least < kLeastInMode) return;
  if (static_cast<double>(least) < kLeastShare * static_cast<double>(n)) return;
  if (modes.upper_ms / modes.lower_ms - 1 < options.notable) return;
  if (prompts_explain(shape, modes)) return;
  if (has_change(*shape.group, samples, findings) && order_explains(shape, modes)) return;
  Finding finding = about("bimodal", Severity::kWarning, samples, *shape.group);
  finding.size = modes.upper_ms / modes.lower_ms - 1;
  finding.text = fmt::format(
      "the latencies have two modes, with medians of {} and {}; the mean, {} ms, describes neither "
      "(dip test p = {}, Holm-adjusted)",
      mode_text(modes.lower, n, modes.lower_ms), mode_text(upper, n, modes.upper_ms),
      format_significant(*stats::mean(shape.sorted_ms)), format_significant(shape.p_holm, 2));
  const bool rarer_is_lower = modes.lower < upper;
  for (const Row* row : shape.rows) {
    if ((*row->latency_ms <= modes.limit) == rarer_is_lower) add_row(finding, *row);
  }
  findings.push_back(std::move(finding));
}

Shape shape_of(const Group& group, const Latency& latency, stats::DipTest& test) {
  Shape shape;
  shape.group = &group;
  for (const Row* row : group.warm) {
    if (!carries_compilation(*row)) shape.rows.push_back(row);
  }
  if (shape.rows.size() < kLeastRows) return shape;
  shape.sorted_ms = stats::sorted(latencies_ms(shape.rows));
  std::vector<double> logs = without_steps(shape.sorted_ms);
  for (double& value : logs) value = std::log(value);
  // Neighbours that are alike count as the fewer rows that they are worth.
  const double worth = latency.n_effective.value_or(static_cast<double>(latency.n)) /
                       static_cast<double>(std::max<int64_t>(1, latency.n));
  const auto n = static_cast<size_t>(static_cast<double>(logs.size()) * std::min(1.0, worth));
  shape.p = test.p(stats::dip(logs), n);
  return shape;
}

}  // namespace

void find_modes(const Samples& samples, const std::vector<Latency>& latencies,
                const AnalysisOptions& options, std::vector<Finding>& findings) {
  stats::DipTest test;
  for (const Phase phase : kPhases) {
    std::vector<Shape> family;
    std::vector<std::optional<double>> p_values;
    for (size_t g = 0; g < samples.groups.size(); ++g) {
      if (samples.strata[samples.groups[g].stratum].phase != phase) continue;
      Shape shape = shape_of(samples.groups[g], latencies[g], test);
      if (shape.sorted_ms.empty()) continue;
      p_values.push_back(shape.p);
      family.push_back(std::move(shape));
    }
    p_values = holm_of(p_values);
    for (size_t i = 0; i < family.size(); ++i) {
      family[i].p_holm = *p_values[i];
      if (family[i].p_holm < options.alpha) report(samples, family[i], options, findings);
    }
  }
}

void find_constants(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    if (!is_constant(group)) continue;
    Finding finding = about("constant_latency", Severity::kWarning, samples, group);
    finding.size = static_cast<double>(group.sorted_ms.size());
    finding.text = fmt::format(
        "all {} warm rows took exactly {} ms: either the clock is too coarse to show their spread, "
        "or nobody measured them",
        group.sorted_ms.size(), format_significant(group.sorted_ms.front()));
    add_rows(finding, group.warm);
    findings.push_back(std::move(finding));
  }
}

}  // namespace assay
