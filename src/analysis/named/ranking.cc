// Findings where mean and median disagree on which of two arms is faster.
#include <algorithm>
#include <cmath>

#include "analysis/contrast/row_statistics.h"
#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "base/text/listed.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// The rows of two arms, from the one that moves the difference of means most.
class Heaviest {
 public:
  Heaviest(const Group& slow, const Group& other)
      : slow_(by_size(slow)),
        other_(by_size(other)),
        slow_sum_(sum(slow_)),
        other_sum_(sum(other_)) {
    std::ranges::reverse(slow_);
  }

  // Takes rows away, largest of the slow arm and smallest of the other, until the slow arm's mean
  // is no longer above the other's.
  void take_until_equal() {
    while (slow_mean() > other_mean() && slow_left() > 1 && other_left() > 1) {
      const double largest = ms(slow_[slow_taken_]);
      const double smallest = ms(other_[other_taken_]);
      const double by_largest = (largest - slow_mean()) / (slow_left() - 1);
      const double by_smallest = (other_mean() - smallest) / (other_left() - 1);
      if (by_largest >= by_smallest) {
        slow_sum_ -= largest;
        ++slow_taken_;
      } else {
        other_sum_ -= smallest;
        ++other_taken_;
      }
    }
  }

  std::span<const Row* const> of_slow() const { return std::span(slow_).first(slow_taken_); }
  std::span<const Row* const> of_other() const { return std::span(other_).first(other_taken_); }

 private:
  static double ms(const Row* row) { return *row->latency_ms; }
  static std::vector<const Row*> by_size(const Group& group) {
    std::vector<const Row*> rows = group.warm;
    std::ranges::stable_sort(rows, {}, [](const Row* row) { return *row->latency_ms; });
    return rows;
  }
  static double sum(const std::vector<const Row*>& rows) {
    double total = 0;
    for (const Row* row : rows) total += *row->latency_ms;
    return total;
  }
  double slow_left() const { return static_cast<double>(slow_.size() - slow_taken_); }
  double other_left() const { return static_cast<double>(other_.size() - other_taken_); }
  double slow_mean() const { return slow_sum_ / slow_left(); }
  double other_mean() const { return other_sum_ / other_left(); }

  std::vector<const Row*> slow_;   // descending
  std::vector<const Row*> other_;  // ascending
  double slow_sum_;
  double other_sum_;
  size_t slow_taken_ = 0;
  size_t other_taken_ = 0;
};

std::string causes_text(const Samples& samples, const Group& slow, const Group& other,
                        const Heaviest& heaviest) {
  std::vector<std::string> parts;
  if (const auto rows = heaviest.of_slow(); !rows.empty()) {
    parts.push_back(fmt::format("its {} largest of {}, up to {} ms", rows.size(),
                                counted(slow.warm.size(), "sample"),
                                format_significant(*rows[0]->latency_ms)));
  }
  if (const auto rows = heaviest.of_other(); !rows.empty()) {
    parts.push_back(fmt::format("{}'s {} smallest of {}, down to {} ms", samples.arms[other.arm],
                                rows.size(), counted(other.warm.size(), "sample"),
                                format_significant(*rows[0]->latency_ms)));
  }
  const bool one = heaviest.of_slow().size() + heaviest.of_other().size() == 1;
  return fmt::format("{}, {} the mean", listed(parts), one ? "decides" : "decide");
}

// True if both rankings are more than chance: mean and median of equal arms disagree on which is
// faster in half of all bundles. The tests are by units, whose means and medians have to be ranked
// as those of the rows are.
bool both_significant(const ContrastInputs& in, const Group& a, const Group& b, double mean_ratio,
                      stats::QuantileBootstrap& quantiles) {
  const GroupPair pair{in.samples.index_of(a), in.samples.index_of(b)};
  const auto widening = pair_widening(in, pair);
  const auto means = test_of_rows(in, pair, KeptRows(a.warm.size(), true),
                                  KeptRows(b.warm.size(), true), widening);
  if (!means || means->p >= in.options.alpha) return false;
  if ((means->statistic > 0) != (mean_ratio > 1)) return false;
  const auto medians = quantile_ratio_by_units(in, pair, 0.5, widening, quantiles);
  if (!medians || !medians->interval || medians->interval->contains(1)) return false;
  return (medians->ratio > 1) != (mean_ratio > 1);
}

void compare(const ContrastInputs& in, const Group& a, const Group& b,
             stats::QuantileBootstrap& quantiles, std::vector<Finding>& findings) {
  const Samples& samples = in.samples;
  const AnalysisOptions& options = in.options;
  if (a.warm.empty() || b.warm.empty()) return;
  const double mean_ratio = *stats::mean(a.warm_ms) / *stats::mean(b.warm_ms);
  const double median_ratio = *stats::median(a.sorted_ms) / *stats::median(b.sorted_ms);
  if ((mean_ratio - 1) * (median_ratio - 1) >= 0) return;
  if (std::abs(mean_ratio - 1) < options.notable && std::abs(median_ratio - 1) < options.notable) {
    return;
  }
  if (!both_significant(in, a, b, mean_ratio, quantiles)) return;
  const Group& slow = mean_ratio > 1 ? a : b;  // by the mean
  const Group& other = mean_ratio > 1 ? b : a;
  Heaviest heaviest(slow, other);
  heaviest.take_until_equal();
  Finding finding = about("mean_median_disagreement", Severity::kWarning, samples, slow);
  finding.size = std::max(std::abs(mean_ratio - 1), std::abs(median_ratio - 1));
  finding.text = fmt::format(
      "slower than {} by the mean ({} against {} ms), faster by the median ({} against {} ms): {}",
      samples.arms[other.arm], format_significant(*stats::mean(slow.warm_ms)),
      format_significant(*stats::mean(other.warm_ms)),
      format_significant(*stats::median(slow.sorted_ms)),
      format_significant(*stats::median(other.sorted_ms)),
      causes_text(samples, slow, other, heaviest));
  for (const auto rows : {heaviest.of_slow(), heaviest.of_other()}) {
    for (const Row* row : rows) add_row(finding, *row);
  }
  findings.push_back(std::move(finding));
}

}  // namespace

void find_rank_disagreements(const ContrastInputs& in, stats::QuantileBootstrap& quantiles,
                             std::vector<Finding>& findings) {
  for_each_pair(in.samples,
                [&](const Group& a, const Group& b) { compare(in, a, b, quantiles, findings); });
}

}  // namespace assay
