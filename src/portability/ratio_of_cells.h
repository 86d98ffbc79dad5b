// Ratio of two cells' times: of two arms of one bundle by the units that ran side by side, and of
// one condition in two bundles by the units that repeat in each.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/pairs.h"
#include "analysis/contrast/verdict.h"
#include "portability/regime.h"

namespace assay {

// ln(arm / base) of two cells of one stratum of a bundle. Arms that ran side by side (blocks.h) are
// paired as contrasts pair them, with the error of compare/pairs.h: one value a round of processes;
// with one process one value a repetition that both have, side by side. Other arms are held against
// one another as two independent samples of processes, or of rows, by Welch's error and degrees of
// freedom (stats/estimates/ratio.h); there is a value for each unit of either arm. Absent: no
// repetition that both have, or means without a logarithm.
std::optional<PairedRatio> arms_ratio(const RegimeCell& arm, const RegimeCell& base);
// The same of one round alone, one value a repetition; `round` as its rows have it. Absent too
// where arms aren't paired.
std::optional<PairedRatio> arms_ratio_of_round(const RegimeCell& arm, const RegimeCell& base,
                                               int64_t round);

// ln(arm / base) of the means of each round that both served. None: arms aren't paired, or not by
// rounds.
std::vector<double> log_ratios_of_rounds(const RegimeCell& arm, const RegimeCell& base);

// ln of a ratio with its standard error.
struct LogRatioEstimate {
  double log_ratio = 0;
  std::optional<stats::StandardError> error;  // absent: nothing shows it
  // Least and largest ratio of the processes, if these are too few for an interval
  // (kLeastProcessesOfInterval).
  std::optional<stats::Interval> range = {};

  // With its t interval, and the range as what has to bear a verdict out.
  ShownRatio shown(double confidence) const;
};

// The range of arm / base where processes are the unit of their stratum and too few for an
// interval. Absent elsewhere.
std::optional<stats::Interval> range_of_few(const RegimeCell& arm, const RegimeCell& base);
// Geometric mean of several strata's ranges, end by end.
std::optional<stats::Interval> mean_range(std::span<const stats::Interval> ranges);

// Ratio of a condition's cells in two bundles, b / a. Both have warm rows.
LogRatioEstimate regimes_ratio(const CellMean& a, const CellMean& b);

// exp of the t interval; absent without an error, and where a range stands for it.
std::optional<stats::Interval> ratio_interval_of(const LogRatioEstimate& of, double confidence);

}  // namespace assay
