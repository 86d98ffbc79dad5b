// Figures of a model's quality beside a reference, with intervals.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/session/logits_error.h"
#include "stats/samples/intervals.h"

namespace assay::cli {

// A mean over positions. Positions of one window see the same text, so windows are the units of its
// interval: Student's over their means; absent for fewer than three, or where it can't be had.
struct QualityFigure {
  double value = 0;
  std::optional<stats::Interval> interval = {};
};

struct QualityFigures {
  int64_t windows = 0;
  int64_t positions = 0;
  QualityFigure reference_nll = {};  // nats a token
  QualityFigure nll = {};
  QualityFigure nll_change = {};  // paired
  QualityFigure kl = {};          // of the reference's distribution from the model's, nats
  // The 99th percentile over all positions; its interval by windows drawn with replacement
  // (percentiles of kResamples).
  QualityFigure kl_p99 = {};
  // Share of positions where both would choose one token. Its interval is at least Wilson's of all
  // positions, which also holds where no position differs.
  QualityFigure same_choice = {};
};

inline constexpr int kResamples = 2000;

// Windows of one length, at least one; figures that aren't finite are an error of the caller.
QualityFigures quality_figures(const std::vector<std::vector<engine::PositionError>>& windows,
                               uint64_t seed);

}  // namespace assay::cli
