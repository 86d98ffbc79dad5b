// Findings where mean and median disagree on which of two arms is faster.
#include <algorithm>
#include <cmath>

#include "analysis/named.h"
#include "base/text.h"
#include "stats/summary.h"

namespace assay {
namespace {

// The largest samples of `slow`, fewest first, without which its mean is no longer above `target`.
std::vector<const Row*> heavy_tail(const Group& slow, double target) {
  std::vector<const Row*> by_size = slow.warm;
  std::ranges::stable_sort(
      by_size, [](const Row* a, const Row* b) { return *a->latency_ms > *b->latency_ms; });
  double sum = 0;
  for (const Row* row : by_size) sum += *row->latency_ms;
  auto left = static_cast<double>(by_size.size());
  size_t removed = 0;
  while (removed + 1 < by_size.size() && sum / left > target) {
    sum -= *by_size[removed++]->latency_ms;
    left -= 1;
  }
  by_size.resize(removed);
  return by_size;
}

void compare(const Samples& samples, const Group& a, const Group& b, const AnalysisOptions& options,
             std::vector<Finding>& findings) {
  if (a.warm.empty() || b.warm.empty()) return;
  const double mean_ratio = *stats::mean(a.warm_ms) / *stats::mean(b.warm_ms);
  const double median_ratio = *stats::median(a.sorted_ms) / *stats::median(b.sorted_ms);
  if ((mean_ratio - 1) * (median_ratio - 1) >= 0) return;
  if (std::abs(mean_ratio - 1) < options.notable && std::abs(median_ratio - 1) < options.notable) {
    return;
  }
  const Group& slow = mean_ratio > 1 ? a : b;  // by the mean
  const Group& other = mean_ratio > 1 ? b : a;
  const auto causes = heavy_tail(slow, *stats::mean(other.warm_ms));
  Finding finding = about("mean_median_disagreement", Severity::kWarning, samples, slow);
  finding.size = std::max(std::abs(mean_ratio - 1), std::abs(median_ratio - 1));
  finding.text = fmt::format(
      "slower than {} by the mean ({} against {} ms), faster by the median ({} against {} ms): "
      "its {} largest of {} samples, up to {} ms, decide the mean",
      samples.arms[other.arm], format_significant(*stats::mean(slow.warm_ms)),
      format_significant(*stats::mean(other.warm_ms)),
      format_significant(*stats::median(slow.sorted_ms)),
      format_significant(*stats::median(other.sorted_ms)), causes.size(), slow.warm.size(),
      format_significant(slow.sorted_ms.back()));
  add_rows(finding, causes);
  findings.push_back(std::move(finding));
}

}  // namespace

void find_rank_disagreements(const Samples& samples, const AnalysisOptions& options,
                             std::vector<Finding>& findings) {
  for_each_pair(samples,
                [&](const Group& a, const Group& b) { compare(samples, a, b, options, findings); });
}

}  // namespace assay
