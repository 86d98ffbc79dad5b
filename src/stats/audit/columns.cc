// The columns of a table of published figures.
#include "stats/audit/columns.h"

#include <algorithm>
#include <array>

namespace assay::stats {
namespace {

using enum Figure;
using enum Quantity;
using enum Role;

constexpr std::array kColumns = {
    FigureColumn{kMeanA, "mean_a", kEither, kNumber, "mean of group a"},
    FigureColumn{kSdA, "sd_a", kEither, kNonNegative, "its standard deviation"},
    FigureColumn{kNA, "n_a", kInput, kCount, "its number of values"},
    FigureColumn{kMeanB, "mean_b", kEither, kNumber, "mean of group b"},
    FigureColumn{kSdB, "sd_b", kEither, kNonNegative, "its standard deviation"},
    FigureColumn{kNB, "n_b", kInput, kCount, "its number of values"},
    FigureColumn{kMu, "mu", kInput, kNumber, "reference mean of a one-sample test"},
    FigureColumn{kSdDiff, "sd_diff", kInput, kNonNegative,
                 "deviation of a paired test's differences"},
    FigureColumn{kCorrelation, "r", kInput, kCoefficient, "correlation of a paired test's values"},
    FigureColumn{kConfidence, "confidence", kInput, kLevel, "of intervals; 0.95 if absent", false,
                 true},
    FigureColumn{kAlpha, "alpha", kInput, kLevel, "level of mde and power; 0.05 if absent", false,
                 true},
    FigureColumn{kMargin, "margin", kInput, kPositive, "of tost_p, a difference", false, true},
    FigureColumn{kMarginPercent, "margin_percent", kInput, kPositive,
                 "of tost_p, percent of a mean", false, true},
    FigureColumn{kStep, "step", kInput, kPositive,
                 "values are whole multiples of it: 1, or 1 / items of a scale", false, true},
    FigureColumn{kSeA, "se_a", kClaim, kNonNegative, "standard error of mean_a"},
    FigureColumn{kSeB, "se_b", kClaim, kNonNegative, "standard error of mean_b"},
    FigureColumn{kMeanALow, "mean_a_low", kClaim, kNumber, "lower end of mean_a's interval"},
    FigureColumn{kMeanAHigh, "mean_a_high", kClaim, kNumber, "upper end of mean_a's interval"},
    FigureColumn{kMeanBLow, "mean_b_low", kClaim, kNumber, "lower end of mean_b's interval"},
    FigureColumn{kMeanBHigh, "mean_b_high", kClaim, kNumber, "upper end of mean_b's interval"},
    FigureColumn{kDelta, "delta", kClaim, kNumber, "mean_a - mean_b"},
    FigureColumn{kPercentDelta, "percent_delta", kClaim, kNumber,
                 "difference in percent of a mean"},
    FigureColumn{kPercentGain, "percent_gain", kClaim, kNumber,
                 "the same, for a table that prints a change and a gain"},
    FigureColumn{kRatio, "ratio", kClaim, kNumber, "of the means; \"1.67x\" is read"},
    FigureColumn{kSdPooled, "sd_pooled", kClaim, kNonNegative, "both groups' standard deviation"},
    FigureColumn{kSe, "se", kClaim, kNonNegative, "standard error of delta"},
    FigureColumn{kT, "t", kClaim, kNumber, "delta / se"},
    FigureColumn{kZ, "z", kClaim, kNumber, "the same of a z test"},
    FigureColumn{kDf, "df", kClaim, kPositive, "degrees of freedom of t"},
    FigureColumn{kP, "p", kClaim, kProbability, "of t, z, f or the counts; \"<0.001\" is read"},
    FigureColumn{kD, "d", kClaim, kNumber, "Cohen's d, Glass's, or that of a paired test"},
    FigureColumn{kG, "g", kClaim, kNumber, "Hedges' g"},
    FigureColumn{kCiLow, "ci_low", kClaim, kNumber, "lower end of delta's interval"},
    FigureColumn{kCiHigh, "ci_high", kClaim, kNumber, "upper end of delta's interval"},
    FigureColumn{kTostP, "tost_p", kClaim, kProbability, "p of equivalence within margin"},
    FigureColumn{kPower, "power", kEither, kLevel,
                 "to find mde or mde_d (0.8 if absent); without those, to find d or delta"},
    FigureColumn{kMde, "mde", kClaim, kPositive, "smallest difference found with power"},
    FigureColumn{kMdeD, "mde_d", kClaim, kPositive, "the same in standard deviations"},
    FigureColumn{kSs, "ss", kEither, kNonNegative, "sum of squares of f's effect"},
    FigureColumn{kSsError, "ss_error", kEither, kNonNegative, "sum of squares of f's error"},
    FigureColumn{kSsTotal, "ss_total", kClaim, kNonNegative, "total sum of squares"},
    FigureColumn{kSsParts, "ss_parts", kInput, kNonNegative, "all that add up to ss_total", true},
    FigureColumn{kDf1, "df1", kEither, kPositive, "first degrees of freedom of f", false, true},
    FigureColumn{kDf2, "df2", kEither, kPositive, "second degrees of freedom of f"},
    FigureColumn{kDfTotal, "df_total", kClaim, kPositive, "total degrees of freedom", false, true},
    FigureColumn{kDfParts, "df_parts", kInput, kTally, "all that add up to df_total", true},
    FigureColumn{kMs, "ms", kClaim, kNonNegative, "ss / df1"},
    FigureColumn{kMsError, "ms_error", kClaim, kNonNegative, "ss_error / df2"},
    FigureColumn{kF, "f", kClaim, kNonNegative, "F of an analysis of variance"},
    FigureColumn{kEtaSquared, "eta_squared", kClaim, kShare,
                 "share of variance, classical or partial"},
    FigureColumn{kPartialEtaSquared, "partial_eta_squared", kClaim, kShare, "ss / (ss + ss_error)"},
    FigureColumn{kCountA, "count_a", kInput, kTally,
                 "count in a; \"240 of 300\" gives total_a too"},
    FigureColumn{kTotalA, "total_a", kInput, kCount, "of how many"},
    FigureColumn{kRateA, "rate_a", kClaim, kRate, "count_a / total_a, a share or percent"},
    FigureColumn{kRateALow, "rate_a_low", kClaim, kRate, "lower end of its interval"},
    FigureColumn{kRateAHigh, "rate_a_high", kClaim, kRate, "upper end of its interval"},
    FigureColumn{kCountB, "count_b", kInput, kTally, "count in b"},
    FigureColumn{kTotalB, "total_b", kInput, kCount, "of how many"},
    FigureColumn{kRateB, "rate_b", kClaim, kRate, "count_b / total_b"},
    FigureColumn{kRateBLow, "rate_b_low", kClaim, kRate, "lower end of its interval"},
    FigureColumn{kRateBHigh, "rate_b_high", kClaim, kRate, "upper end of its interval"},
    FigureColumn{kOddsRatio, "odds_ratio", kClaim, kPositive, "of the two counts"},
    FigureColumn{kOddsLow, "odds_ratio_low", kClaim, kNonNegative, "lower end of its interval"},
    FigureColumn{kOddsHigh, "odds_ratio_high", kClaim, kPositive, "upper end of its interval"},
    FigureColumn{kCountParts, "count_parts", kInput, kTally, "counts that add up to count_total",
                 true},
    FigureColumn{kCountTotal, "count_total", kClaim, kTally, "their sum"},
    FigureColumn{kParts, "parts", kInput, kNumber, "figures that add up to total", true},
    FigureColumn{kTotal, "total", kClaim, kNumber, "their sum"},
    FigureColumn{kPartMeans, "part_means", kInput, kNumber, "means of the parts of total_mean",
                 true},
    FigureColumn{kPartNs, "part_ns", kInput, kCount, "their numbers of values", true},
    FigureColumn{kTotalMean, "total_mean", kClaim, kNumber, "mean over part_means"},
    FigureColumn{kTotalN, "total_n", kClaim, kCount, "sum of part_ns"},
    FigureColumn{kPList, "p_list", kInput, kProbability, "p of a family", true},
    FigureColumn{kPAdjusted, "p_adjusted", kClaim, kProbability, "the same, adjusted", true},
    FigureColumn{kMin, "min", kClaim, kNumber, "smallest value"},
    FigureColumn{kP5, "p5", kClaim, kNumber, "5th percentile"},
    FigureColumn{kP10, "p10", kClaim, kNumber, "10th percentile"},
    FigureColumn{kP25, "p25", kClaim, kNumber, "25th percentile"},
    FigureColumn{kP50, "p50", kClaim, kNumber, "median"},
    FigureColumn{kP75, "p75", kClaim, kNumber, "75th percentile"},
    FigureColumn{kP90, "p90", kClaim, kNumber, "90th percentile"},
    FigureColumn{kP95, "p95", kClaim, kNumber, "95th percentile"},
    FigureColumn{kP99, "p99", kClaim, kNumber, "99th percentile"},
    FigureColumn{kP999, "p999", kClaim, kNumber, "99.9th percentile"},
    FigureColumn{kMax, "max", kClaim, kNumber, "largest value"},
};

constexpr std::array kPairs = {
    PairColumn{"mean_a_ci", kMeanALow, kMeanAHigh, "mean_a_low and mean_a_high: \"[4.2, 5.3]\""},
    PairColumn{"mean_b_ci", kMeanBLow, kMeanBHigh, "mean_b_low and mean_b_high"},
    PairColumn{"ci", kCiLow, kCiHigh, "ci_low and ci_high"},
    PairColumn{"rate_a_ci", kRateALow, kRateAHigh, "rate_a_low and rate_a_high"},
    PairColumn{"rate_b_ci", kRateBLow, kRateBHigh, "rate_b_low and rate_b_high"},
    PairColumn{"odds_ratio_ci", kOddsLow, kOddsHigh, "odds_ratio_low and odds_ratio_high"},
};

}  // namespace

std::span<const FigureColumn> figure_columns() {
  return kColumns;
}

const FigureColumn& column_of(Figure figure) {
  return *std::ranges::find(kColumns, figure, &FigureColumn::figure);
}

std::string_view figure_name(Figure figure) {
  return column_of(figure).name;
}

std::span<const PairColumn> pair_columns() {
  return kPairs;
}

}  // namespace assay::stats
