// The robustness index: how much of a claim's effect is left where something else changes.
//
// docs/judgements.md, "Robustness index", defines it; docs/calibration.md has how often each band
// is given wrongly.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/contrast/estimate.h"

namespace assay {

enum class RobustnessBand {
  kRobust,        // at least 0.8 of the claim's log ratio is left at every point
  kSensitive,     // at least 0.5
  kFragile,       // at least 0
  kCatastrophic,  // a point turns the claim round, or lost rows
  kUndecided,     // the index's interval allows several bands
  kInvalid,       // fewer than two points survive
};
// robust | sensitive | fragile | catastrophic | undecided | invalid
std::string_view robustness_band_name(RobustnessBand band);
RobustnessBand band_of_index(double index);

// The claim at one point.
struct PerturbationPoint {
  std::string name;
  std::optional<Estimate> ratio = {};  // absent: it lost rows, or is gone
  std::string lost = {};  // rows it lost, in words: the point is there, the claim isn't
  std::string gone = {};  // why it doesn't survive; empty: it does
};

struct RetainedShare {
  std::string name;
  std::optional<double> log_ratio;
  std::optional<double> share;  // of the reference's log ratio; of the reference 1
  std::optional<stats::Interval> interval;
  std::string lost;
  std::string gone;
};

struct RobustnessIndex {
  std::string axis;
  std::vector<RetainedShare> points;  // the reference first
  std::optional<double> index;        // the smallest share
  std::optional<stats::Interval> interval;
  RobustnessBand band = RobustnessBand::kInvalid;  // the only one that the interval allows
  RobustnessBand best = RobustnessBand::kInvalid;  // that it allows
  RobustnessBand worst = RobustnessBand::kInvalid;
  std::string reason;  // of a band that no index gives
};

// `points`: the reference first, at which the claim was made. With L its log ratio there and L_i at
// point i, the index is min over i of L_i / L. Points that lost rows count as survivors, and make
// the band catastrophic; the index is then of the others. Intervals of shares are Fieller's
// (stats::quotient_interval()). With K points beside the reference, the index's interval is from
// the lowest lower end to the lowest upper end, the latter of one-sided level (1 -
// kConfidence) / 2K, because the lowest of K ends that each hold falls short more often than one of
// them does. The band is undecided where that interval allows several, or a point's error isn't
// known. Invalid, with the reason: fewer than two points survive, the reference lost rows or is
// gone, or its log ratio's own interval (t) holds 0.
RobustnessIndex robustness_index(std::string axis, std::span<const PerturbationPoint> points);

}  // namespace assay
