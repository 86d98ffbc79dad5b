// Findings where a few samples decide which of two arms is faster.
#include <algorithm>
#include <cmath>

#include "analysis/contrast.h"
#include "analysis/named.h"
#include "base/text.h"
#include "stats/summary.h"

namespace assay {
namespace {

constexpr double kTrimmedShare = 0.05;

struct Variant {
  std::string name;
  double a = 0;
  double b = 0;
};

double mean_without_largest(const Group& group, size_t dropped) {
  return *stats::mean(std::span(group.sorted_ms).first(group.sorted_ms.size() - dropped));
}

double mean_without_first(const Group& group) {
  return *stats::mean(std::span(group.warm_ms).subspan(1));
}

std::vector<Variant> variants(const Group& a, const Group& b) {
  std::vector<Variant> all;
  const size_t rows = std::min(a.warm.size(), b.warm.size());
  if (rows < 3) return all;
  all.push_back({"the first sample", mean_without_first(a), mean_without_first(b)});
  for (const auto& [name, dropped] : {std::pair{"the largest", 1u}, {"the five largest", 5u}}) {
    if (rows < 2 * dropped + 1) continue;
    all.push_back({name, mean_without_largest(a, dropped), mean_without_largest(b, dropped)});
  }
  if (static_cast<double>(rows) * kTrimmedShare >= 1) {
    all.push_back({"5 % at each end", *stats::trimmed_mean(a.sorted_ms, kTrimmedShare),
                   *stats::trimmed_mean(b.sorted_ms, kTrimmedShare)});
  }
  return all;
}

// The group's first row and its five largest, in the order of the run.
void add_influential(Finding& finding, const Group& group) {
  std::vector<const Row*> rows = group.warm;
  std::ranges::stable_sort(
      rows, [](const Row* x, const Row* y) { return *x->latency_ms > *y->latency_ms; });
  rows.resize(std::min<size_t>(rows.size(), 5));
  if (std::ranges::find(rows, group.warm.front()) == rows.end()) rows.push_back(group.warm.front());
  std::ranges::sort(rows, {}, &Row::order_index);
  add_rows(finding, rows);
}

void compare(const Samples& samples, const Group& a, const Group& b, const AnalysisOptions& options,
             std::vector<Finding>& findings) {
  if (a.warm.empty() || b.warm.empty()) return;
  const double mean_a = *stats::mean(a.warm_ms);
  const double mean_b = *stats::mean(b.warm_ms);
  std::vector<std::string> flips;
  double size = 0;
  for (const Variant& variant : variants(a, b)) {
    const double before = mean_a / mean_b - 1;
    const double after = variant.a / variant.b - 1;
    if (before * after >= 0) continue;
    const double moved = std::max(std::abs(before), std::abs(after));
    if (moved < options.notable) continue;
    size = std::max(size, moved);
    flips.push_back(fmt::format("{} ({} against {} ms)", variant.name,
                                format_significant(variant.a), format_significant(variant.b)));
  }
  if (flips.empty()) return;
  Finding finding = about("ranking_sensitive", Severity::kWarning, samples, a);
  finding.size = size;
  finding.text = fmt::format("{} {} by the mean ({} against {} ms), and not without {}",
                             mean_a < mean_b ? "faster than" : "slower than", samples.arms[b.arm],
                             format_significant(mean_a), format_significant(mean_b),
                             join(flips, ", nor without "));
  add_influential(finding, a);
  add_influential(finding, b);
  findings.push_back(std::move(finding));
}

}  // namespace

void find_sensitive_rankings(const Samples& samples, const AnalysisOptions& options,
                             std::vector<Finding>& findings) {
  for_each_pair(samples,
                [&](const Group& a, const Group& b) { compare(samples, a, b, options, findings); });
}

}  // namespace assay
