// Retained shares and their smallest.
#include "portability/robustness.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/text/text.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr double kRobust = 0.8;
constexpr double kSensitive = 0.5;
constexpr double kFragile = 0;

// A point's mean and those of its resamples.
struct ResampledPoint {
  const PerturbationPoint* point = nullptr;
  double mean = 0;
  std::vector<double> deviations;  // from the mean; none: fewer than two values, or equal ones

  // Factor on them by which t of so few values is wider than resampling them shows, where `tail` of
  // the distribution lies beyond.
  double stretch(double tail) const {
    const auto count = static_cast<double>(point->values.size());
    const auto t = stats::student_t_quantile(1 - tail, point->df());
    const auto z = stats::normal_quantile(1 - tail);
    return (t && z ? std::sqrt(count / (count - 1)) * *t / *z : 1) * point->widening;
  }
};

ResampledPoint resample(const PerturbationPoint& point, double mean, size_t resamples,
                        Random random) {
  ResampledPoint resampled{.point = &point, .mean = mean, .deviations = {}};
  const std::vector<double>& values = point.values;
  const auto sd = stats::standard_deviation(values);
  if (!sd || !(*sd > 0)) return resampled;
  resampled.deviations.resize(resamples);
  for (double& deviation : resampled.deviations) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
    deviation = sum / static_cast<double>(values.size()) - mean;
  }
  return resampled;
}

// True if the mean's own t interval leaves out 0.
bool differs_from_zero(const PerturbationPoint& point, double mean, double confidence) {
  const auto sd = stats::standard_deviation(point.values);
  if (!sd || !(*sd > 0)) return false;
  const auto n = static_cast<double>(point.values.size());
  const stats::StandardError error{*sd / std::sqrt(n) * point.widening, point.df()};
  const auto interval = stats::t_interval(mean, error, confidence);
  return interval && !interval->contains(0);
}

// One point's share, and the quantile of its replicates that the index's upper end is made of.
struct ShareBounds {
  stats::Interval interval;
  double upper = 0;  // at the level of K points
};

// Shares of the resamples, ascending, as far apart as an end with so much beyond it needs.
std::vector<double> shares_for(const ResampledPoint& of_point, const ResampledPoint& of_reference,
                               double tail) {
  const double by_point = of_point.stretch(tail);
  const double by_reference = of_reference.stretch(tail);
  std::vector<double> shares(of_point.deviations.size());
  for (size_t b = 0; b < shares.size(); ++b) {
    shares[b] = (of_point.mean + by_point * of_point.deviations[b]) /
                (of_reference.mean + by_reference * of_reference.deviations[b]);
  }
  std::ranges::sort(shares);
  return shares;
}

std::optional<ShareBounds> share_bounds(const ResampledPoint& of_point,
                                        const ResampledPoint& of_reference, double all_points,
                                        double confidence) {
  if (of_point.deviations.empty() || of_reference.deviations.empty()) return std::nullopt;
  const double tail = (1 - confidence) / 2;
  const double tail_of_all = tail / all_points;
  const std::vector<double> shares = shares_for(of_point, of_reference, tail);
  const double upper =
      *stats::quantile(shares_for(of_point, of_reference, tail_of_all), 1 - tail_of_all);
  return ShareBounds{{*stats::quantile(shares, tail), *stats::quantile(shares, 1 - tail)}, upper};
}

std::string why_invalid(std::span<const PerturbationPoint> points, double confidence) {
  if (points.empty()) return "the claim was measured nowhere";
  const PerturbationPoint& reference = points.front();
  if (!reference.gone.empty()) return fmt::format("{}: {}", reference.name, reference.gone);
  if (!reference.lost.empty()) {
    return fmt::format("{}, where the claim is made, {}", reference.name, reference.lost);
  }
  const auto survivors = std::ranges::count_if(
      points, [](const PerturbationPoint& point) { return point.gone.empty(); });
  if (survivors < 2) {
    const auto gone = std::ranges::find_if(
        points, [](const PerturbationPoint& point) { return !point.gone.empty(); });
    return fmt::format(
        "expected two points, found {}{}", survivors,
        gone == points.end() ? "" : fmt::format(" ({}: {})", gone->name, gone->gone));
  }
  if (!differs_from_zero(reference, stats::mean(reference.values).value_or(0), confidence)) {
    return fmt::format("{} shows no difference that could be retained", reference.name);
  }
  return "";
}

}  // namespace

std::string_view robustness_band_name(RobustnessBand band) {
  switch (band) {
    case RobustnessBand::kRobust:
      return "robust";
    case RobustnessBand::kSensitive:
      return "sensitive";
    case RobustnessBand::kFragile:
      return "fragile";
    case RobustnessBand::kCatastrophic:
      return "catastrophic";
    case RobustnessBand::kUndecided:
      return "undecided";
    case RobustnessBand::kInvalid:
      break;
  }
  return "invalid";
}

RobustnessBand band_of_index(double index) {
  if (index >= kRobust) return RobustnessBand::kRobust;
  if (index >= kSensitive) return RobustnessBand::kSensitive;
  return index >= kFragile ? RobustnessBand::kFragile : RobustnessBand::kCatastrophic;
}

RobustnessIndex robustness_index(std::string axis, std::span<const PerturbationPoint> points,
                                 const RobustnessOptions& options) {
  RobustnessIndex result;
  result.axis = std::move(axis);
  for (const PerturbationPoint& point : points) {
    RetainedShare& share = result.points.emplace_back();
    share.name = point.name;
    share.lost = point.lost;
    share.gone = point.gone;
    if (point.lost.empty() && point.gone.empty()) share.log_ratio = stats::mean(point.values);
  }
  result.reason = why_invalid(points, options.confidence);
  if (!result.reason.empty()) return result;
  const double claimed = *result.points[0].log_ratio;
  result.points[0].share = 1;
  const auto resamples = static_cast<size_t>(options.resamples);
  const auto resampled = [&](size_t i) {
    return resample(points[i], *result.points[i].log_ratio, resamples, Random(options.seed, i));
  };
  const ResampledPoint of_reference = resampled(0);
  const auto compared = std::ranges::count_if(
      std::span(result.points).subspan(1), [](const auto& p) { return p.log_ratio.has_value(); });
  bool whole = true;  // every point has an interval
  for (size_t i = 1; i < points.size(); ++i) {
    RetainedShare& share = result.points[i];
    if (!share.log_ratio) continue;
    share.share = *share.log_ratio / claimed;
    result.index = std::min(result.index.value_or(*share.share), *share.share);
    const auto bounds =
        share_bounds(resampled(i), of_reference, static_cast<double>(compared), options.confidence);
    whole = whole && bounds;
    if (!bounds) continue;
    share.interval = bounds->interval;
    const stats::Interval ends{bounds->interval.low, bounds->upper};
    if (!result.interval) result.interval = ends;
    result.interval->low = std::min(result.interval->low, ends.low);
    result.interval->high = std::min(result.interval->high, ends.high);
  }
  if (!whole) result.interval.reset();
  const auto lost =
      std::ranges::find_if(points, [](const auto& point) { return !point.lost.empty(); });
  if (lost != points.end()) {
    result.reason = fmt::format("{} {}", lost->name, lost->lost);
    result.band = result.best = result.worst = RobustnessBand::kCatastrophic;
    return result;
  }
  if (!result.interval) {
    result.reason = "a point has too few values to show how sure its share is";
    result.band = result.best = result.worst = RobustnessBand::kUndecided;
    return result;
  }
  result.best = band_of_index(result.interval->high);
  result.worst = band_of_index(result.interval->low);
  result.band = result.best == result.worst ? result.best : RobustnessBand::kUndecided;
  return result;
}

}  // namespace assay
