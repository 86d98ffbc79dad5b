// Least and largest.
#include "analysis/contrast/process_range.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace assay {

std::optional<stats::Interval> range_of(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const auto [least, most] = std::ranges::minmax_element(values);
  return stats::Interval{*least, *most};
}

std::optional<stats::Interval> mean_process_range(ContrastUnit unit, const UnitSeries& series) {
  const bool few = std::ssize(series.mean_ms) < kLeastProcessesOfInterval;
  if (unit != ContrastUnit::kProcesses || !few) return std::nullopt;
  return range_of(series.mean_ms);
}

namespace {

// `of` is a figure of both arms that rises with the arm's value and falls with the baseline's.
template <typename Figure>
std::optional<stats::Interval> range_of_both(std::span<const double> arm,
                                             std::span<const double> baseline, bool paired,
                                             const Figure& of) {
  if (paired && arm.size() == baseline.size()) {
    std::vector<double> figures;
    for (size_t i = 0; i < arm.size(); ++i) figures.push_back(of(arm[i], baseline[i]));
    return range_of(figures);
  }
  const auto of_arm = range_of(arm);
  const auto of_baseline = range_of(baseline);
  if (!of_arm || !of_baseline) return std::nullopt;
  return stats::Interval{of(of_arm->low, of_baseline->high), of(of_arm->high, of_baseline->low)};
}

}  // namespace

std::optional<stats::Interval> ratio_range(std::span<const double> arm,
                                           std::span<const double> baseline, bool paired) {
  return range_of_both(arm, baseline, paired, std::divides<>());
}

std::optional<stats::Interval> difference_range(std::span<const double> arm,
                                                std::span<const double> baseline, bool paired) {
  return range_of_both(arm, baseline, paired, std::minus<>());
}

bool are_few_processes(int64_t arm, int64_t baseline) {
  return std::min(arm, baseline) < kLeastProcessesOfInterval;
}

bool has_few_processes(const Contrast& contrast) {
  return contrast.unit == ContrastUnit::kProcesses && !contrast.any_look &&
         are_few_processes(contrast.units_arm, contrast.units_baseline) &&
         contrast.shared_df.value_or(0) < kLeastFreedomOfInterval;
}

bool bears_out(const std::optional<stats::Interval>& ratio_range, Verdict verdict, double margin) {
  if (!ratio_range) return false;
  const double most = 1 + margin;
  switch (verdict) {
    case Verdict::kFaster:
      return ratio_range->high < 1 / most;
    case Verdict::kSlower:
      return ratio_range->low > most;
    case Verdict::kEquivalent:
      return ratio_range->low > 1 / most && ratio_range->high < most;
    case Verdict::kInconclusive:
      break;
  }
  return true;
}

}  // namespace assay
