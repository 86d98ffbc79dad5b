// The conventions by which published figures follow from one another, as axes with their options.
//
// A set takes one option of every axis. All figures of a row are held against one set: a t by
// Welch's test and degrees of freedom by Student's don't fit together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::stats {

enum class Axis : uint8_t {
  kSides,
  kTest,
  kDeviations,
  kDfRounding,
  kInterval,
  kEffect,
  kSignT,
  kSignD,
  kSignDelta,
  kCorrection,
  kPooling,
  kPowerBy,
  kMarginOf,
  kRatioOf,
  kPercentOf,
  kGainOf,
  kEta,
  kSumsOfSquares,
  kRateUnit,
  kRateInterval,
  kOddsOf,
  kOddsBy,
  kWeights,
  kAdjustment,
};
constexpr size_t kAxes = 24;

// The options, the usual one first. kOther stands for methods that no figures determine (a
// resample, a permutation, Tukey's range): taken only if declared.
enum class Sides : uint8_t { kTwo, kGreater, kLess };
enum class TestKind : uint8_t {
  kWelch,
  kStudent,
  kPaired,
  kOneSample,
  kZ,        // sd_a^2 / n_a + sd_b^2 / n_b, normal
  kZPooled,  // of the pooled deviation, normal
  kFisher,   // here and below: of two counts
  kChiSquare,
  kYates,
  kCountsZ,  // unpooled
  kWoolf,    // of the log odds ratio
  kBoschloo,
  kBarnard,
  kG,
  kGYates,
  kGWilliams,
  kOther,
};
enum class Divisor : uint8_t { kSample, kPopulation };  // divided by n - 1, by n
// Rounding down of Welch's degrees of freedom: where they are printed, or before they are used.
enum class DfRounding : uint8_t { kNone, kPrinted, kUsed };
enum class IntervalBy : uint8_t { kT, kZ, kOther };
enum class Effect : uint8_t {
  kPooled,
  kMeanVariance,
  kSdB,
  kSdA,
  kOfT,       // t sqrt(1/n_a + 1/n_b)
  kOfTAndDf,  // 2 t / sqrt(df)
  kDifferences,
};
enum class Sign : uint8_t { kAMinusB, kBMinusA };
enum class Correction : uint8_t { kExact, kApproximate };
enum class Pooling : uint8_t { kByDf, kMeanVariance, kByN };
enum class PowerBy : uint8_t { kNoncentral, kQuantiles, kNormal };
enum class MarginOf : uint8_t { kB, kA, kRatio, kRatioInverse };
enum class RatioOf : uint8_t { kAOverB, kBOverA };
enum class PercentOf : uint8_t {
  kOfB,
  kBackOfA,
  kBackOfB,
  kOfA,
  kOfMean,  // of both means' mean
  kBackOfMean,
  kLogarithm,  // 100 ln (a / b)
  kBackLogarithm,
  kOther,
};
enum class Eta : uint8_t { kPartial, kClassical };
// Type I or equal cells; Type II or III; one factor, whose sum and the error's are all there are.
enum class SumsBy : uint8_t { kAddUp, kAdjusted, kOneWay };
enum class RateUnit : uint8_t { kShare, kPercent };
enum class RateInterval : uint8_t {
  kWilson,
  kWald,
  kClopperPearson,
  kAgrestiCoull,
  kJeffreys,
  kWilsonCorrected,
  kMidP,
  kOther,
};
// Counts as they are, or a half added to each cell of the table.
enum class OddsBy : uint8_t { kWoolf, kHaldane, kOther };
enum class Weights : uint8_t { kByN, kEqual };
enum class Adjustment : uint8_t {
  kHolm,
  kBonferroni,
  kBenjaminiHochberg,
  kHochberg,
  kHommel,
  kSidak,
  kHolmSidak,
  kBenjaminiYekutieli,
  kOther,
};

class ConventionSet {
 public:
  uint8_t& at(Axis axis) { return options_[static_cast<size_t>(axis)]; }
  uint8_t at(Axis axis) const { return options_[static_cast<size_t>(axis)]; }
  template <typename Option>
  Option get(Axis axis) const {
    return static_cast<Option>(at(axis));
  }
  TestKind test() const { return get<TestKind>(Axis::kTest); }
  Sides sides() const { return get<Sides>(Axis::kSides); }
  Effect effect() const { return get<Effect>(Axis::kEffect); }
  // 1, or -1 where the figure is printed as b less a.
  double sign(Axis axis) const { return get<Sign>(axis) == Sign::kAMinusB ? 1 : -1; }

 private:
  std::array<uint8_t, kAxes> options_ = {};
};

struct ConventionOption {
  std::string_view name;      // as a report has it; empty where the usual one goes without saying
  std::string_view keywords;  // words that declare it, with blanks between
  bool only_declared = false;
  bool is_other = false;  // figures don't determine its result
};
struct ConventionAxis {
  Axis axis;
  std::string_view name;  // of the column in which a row declares it, where it can
  std::span<const ConventionOption> options;
  bool can_be_declared = true;
};
std::span<const ConventionAxis> convention_axes();
const ConventionAxis& axis_of(Axis axis);

// The options that a row may use. A declared option is binding.
class Declared {
 public:
  bool allows(Axis axis, uint8_t option) const;
  // True if the row says that its convention is none of the known ones.
  bool is_other(Axis axis) const;
  bool is_declared(Axis axis) const { return allowed_[static_cast<size_t>(axis)] != 0; }
  // One keyword of the axis, however it is written: "Welch", "two-sided", "two sided". The error
  // names the expected words and the found one.
  Status declare(const ConventionAxis& axis, std::string_view keyword);
  // Takes over the axes that `other` declares and this doesn't.
  void default_to(const Declared& other);

 private:
  std::array<uint32_t, kAxes> allowed_ = {};  // a bit an option; 0: not declared
};

}  // namespace assay::stats
