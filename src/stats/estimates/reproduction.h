// Distance of a measured figure from a published one, in bands.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "stats/samples/intervals.h"

namespace assay::stats {

// Bands of |measured / published - 1|; kNull: nothing was measured.
enum class ReproductionBand { kStrongMatch, kMatch, kWeak, kNone, kNull };
std::string_view band_name(ReproductionBand band);  // strong_match | match | weak | none | null

// The largest distance of each band, itself included. 0 < strong <= match <= weak.
struct BandLimits {
  double strong = 0.02;
  double match = 0.05;
  double weak = 0.15;
};

struct Reproduction {
  ReproductionBand band = ReproductionBand::kNull;  // of the ratio
  std::optional<double> ratio;                      // mean / published
  std::optional<Interval>
      interval;  // of the ratio, by t; absent: fewer than two values, or all alike
  // Nearest and farthest band of the interval's points; `band` where there is no interval.
  ReproductionBand best = ReproductionBand::kNull;
  ReproductionBand worst = ReproductionBand::kNull;
};

// `means`: of invocations, which are what repeats. published > 0.
Reproduction reproduction(std::span<const double> means, double published, const BandLimits& limits,
                          double confidence = 0.95);

}  // namespace assay::stats
