// The columns of a table of published figures.
#pragma once

#include <span>
#include <string_view>

namespace assay::stats {

// The figures that a row may print, of two groups a and b; delta is a less b.
enum class Figure {
  kMeanA,
  kSdA,
  kNA,
  kMeanB,
  kSdB,
  kNB,
  kMu,
  kSdDiff,
  kCorrelation,
  kConfidence,
  kAlpha,
  kMargin,
  kMarginPercent,
  kStep,
  kSeA,
  kSeB,
  kMeanALow,
  kMeanAHigh,
  kMeanBLow,
  kMeanBHigh,
  kDelta,
  kPercentDelta,
  kPercentGain,
  kRatio,
  kSdPooled,
  kSe,
  kT,
  kZ,
  kDf,
  kP,
  kD,
  kG,
  kCiLow,
  kCiHigh,
  kTostP,
  kPower,
  kMde,
  kMdeD,
  kSs,
  kSsError,
  kSsTotal,
  kSsParts,
  kDf1,
  kDf2,
  kDfTotal,
  kDfParts,
  kMs,
  kMsError,
  kF,
  kEtaSquared,
  kPartialEtaSquared,
  kCountA,
  kTotalA,
  kRateA,
  kRateALow,
  kRateAHigh,
  kCountB,
  kTotalB,
  kRateB,
  kRateBLow,
  kRateBHigh,
  kOddsRatio,
  kOddsLow,
  kOddsHigh,
  kCountParts,
  kCountTotal,
  kParts,
  kTotal,
  kPartMeans,
  kPartNs,
  kTotalMean,
  kTotalN,
  kPList,
  kPAdjusted,
  kMin,
  kP5,
  kP10,
  kP25,
  kP50,
  kP75,
  kP90,
  kP95,
  kP99,
  kP999,
  kMax,
};

// Values that a figure can have, and how its text is read.
enum class Quantity {
  kNumber,
  kNonNegative,
  kPositive,
  kCount,        // whole, at least 1; no rounding
  kTally,        // whole, at least 0; no rounding
  kProbability,  // 0 to 1; "5 %" is 0.05
  kShare,        // 0 to 1; "29 %" is 0.29
  kRate,         // the same, or a percentage without its sign
  kLevel,        // of confidence or power: between 0 and 1, or a percentage
  kCoefficient,  // -1 to 1
};

enum class Role {
  kInput,
  kClaim,
  kEither,  // audited where the row determines it
};

struct FigureColumn {
  Figure figure;
  std::string_view name;  // in the table's header
  Role role;
  Quantity quantity;
  std::string_view meaning;  // one line for help and documentation
  bool is_list = false;      // numbers with ";" between them
  bool is_exact = false;     // taken as printed, without rounding
};
std::span<const FigureColumn> figure_columns();
const FigureColumn& column_of(Figure figure);
std::string_view figure_name(Figure figure);

// A column whose field stands for two figures: an interval "[4.2, 5.3]", a count "240 of 300".
struct PairColumn {
  std::string_view name;
  Figure first;
  Figure second;
  std::string_view meaning;
};
std::span<const PairColumn> pair_columns();

}  // namespace assay::stats
