// Bands of a ratio and of its interval.
#include "stats/estimates/reproduction.h"

#include <algorithm>
#include <cmath>

#include "base/records/enum_words.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay::stats {
namespace {

// 102 of 100 is 2 % away, and 102.0 / 100 - 1 is a little more than 0.02.
constexpr double kRoundingOfRatio = 1e-12;

ReproductionBand band_of(double distance, const BandLimits& limits) {
  distance -= kRoundingOfRatio;
  if (distance <= limits.strong) return ReproductionBand::kStrongMatch;
  if (distance <= limits.match) return ReproductionBand::kMatch;
  return distance <= limits.weak ? ReproductionBand::kWeak : ReproductionBand::kNone;
}

}  // namespace

std::string_view band_name(ReproductionBand band) {
  return word_of(band, {"strong_match", "match", "weak", "none", "null"});
}

Reproduction reproduction(std::span<const double> means, double published, const BandLimits& limits,
                          double confidence) {
  Reproduction found;
  const auto center = mean(means);
  if (!center) return found;
  found.ratio = *center / published;
  found.band = found.best = found.worst = band_of(std::abs(*found.ratio - 1), limits);
  const auto spread = moments(means);
  if (!spread || !(spread->variance > 0)) return found;
  StandardError error = error_of_mean(*spread);
  error.value /= published;
  found.interval = t_interval(*found.ratio, error, confidence);
  if (!found.interval) return found;
  const double low = std::abs(found.interval->low - 1);
  const double high = std::abs(found.interval->high - 1);
  found.best = band_of(found.interval->contains(1) ? 0 : std::min(low, high), limits);
  found.worst = band_of(std::max(low, high), limits);
  return found;
}

}  // namespace assay::stats
