// Retained shares and their smallest.
#include "portability/robustness.h"

#include <algorithm>

#include "analysis/findings/options.h"
#include "base/records/enum_words.h"
#include "base/text/text.h"
#include "stats/estimates/ratio.h"

namespace assay {
namespace {

constexpr double kRobust = 0.8;
constexpr double kSensitive = 0.5;
constexpr double kFragile = 0;

std::optional<stats::Known> known(const PerturbationPoint& point) {
  if (!point.ratio || !point.ratio->error) return std::nullopt;
  return stats::Known{point.ratio->log_ratio, *point.ratio->error};
}

// True if the mean's own t interval leaves out 0.
bool differs_from_zero(const PerturbationPoint& point) {
  const auto of = known(point);
  const auto interval = of ? stats::t_interval(of->value, of->error, kConfidence) : std::nullopt;
  return interval && !interval->contains(0);
}

std::string why_invalid(std::span<const PerturbationPoint> points) {
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
  if (!differs_from_zero(reference)) {
    return fmt::format("{} shows no difference that could be retained", reference.name);
  }
  return "";
}

}  // namespace

std::string_view robustness_band_name(RobustnessBand band) {
  return word_of(band, {"robust", "sensitive", "fragile", "catastrophic", "undecided", "invalid"});
}

RobustnessBand band_of_index(double index) {
  if (index >= kRobust) return RobustnessBand::kRobust;
  if (index >= kSensitive) return RobustnessBand::kSensitive;
  return index >= kFragile ? RobustnessBand::kFragile : RobustnessBand::kCatastrophic;
}

RobustnessIndex robustness_index(std::string axis, std::span<const PerturbationPoint> points) {
  RobustnessIndex result;
  result.axis = std::move(axis);
  for (const PerturbationPoint& point : points) {
    RetainedShare& share = result.points.emplace_back();
    share.name = point.name;
    share.lost = point.lost;
    share.gone = point.gone;
    if (point.ratio) share.log_ratio = point.ratio->log_ratio;
  }
  result.reason = why_invalid(points);
  if (!result.reason.empty()) return result;
  const stats::Known claimed = *known(points[0]);
  result.points[0].share = 1;
  const auto compared = std::ranges::count_if(
      points.subspan(1), [](const PerturbationPoint& point) { return point.ratio.has_value(); });
  const double tail = (1 - kConfidence) / 2;
  bool whole = true;  // every point has an interval
  for (size_t i = 1; i < points.size(); ++i) {
    RetainedShare& share = result.points[i];
    if (!share.log_ratio) continue;
    share.share = *share.log_ratio / claimed.value;
    result.index = std::min(result.index.value_or(*share.share), *share.share);
    const auto of = known(points[i]);
    if (of) share.interval = stats::quotient_interval(*of, claimed, tail);
    const auto of_all =
        of ? stats::quotient_interval(*of, claimed, tail / static_cast<double>(compared))
           : std::nullopt;
    whole = whole && share.interval && of_all;
    if (!whole) continue;
    const stats::Interval ends{share.interval->low, of_all->high};
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
