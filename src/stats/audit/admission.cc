// Reads from a row's columns which tests and conventions they leave room for.
#include "stats/audit/admission.h"

#include <algorithm>
#include <utility>

namespace assay::stats {

Admission::Admission(const PublishedRow& row) : row_(row) {
  const auto has = [&](Figure figure) { return row.numbers.contains(figure); };
  const auto value = [&](Figure figure) { return row.numbers.at(figure).value; };
  using enum Figure;
  has_b_ = has(kMeanB) || has(kSdB) || has(kNB);
  has_scale_ = has(kSdA) || has(kSdB) || has(kT);
  has_mu_ = has(kMu);
  has_df_ = has(kDf);
  has_z_ = has(kZ) && !has(kT);
  is_paired_ = has(kSdDiff) || has(kCorrelation);
  may_be_paired_ = !(has(kNA) && has(kNB)) || value(kNA) == value(kNB);
  has_counts_ = has(kCountA) && has(kTotalA) && has(kCountB) && has(kTotalB);
  has_odds_ = has(kOddsRatio);
  for (const auto& [count, total] : {std::pair{kCountA, kTotalA}, {kCountB, kTotalB}}) {
    const bool both = has(count) && has(total);
    if (both && (value(count) == 0 || value(count) == value(total))) has_empty_cell_ = true;
  }
  for (const Figure figure : {kMeanA, kSdA, kT, kZ, kD, kDelta, kF}) {
    has_means_ = has_means_ || has(figure);
  }
}

bool Admission::admits(const ConventionSet& set, std::span<const Axis> axes) const {
  const bool of_test = std::ranges::find(axes, Axis::kTest) != axes.end();
  for (const Axis axis : axes) {
    if (!row_.declared.allows(axis, set.at(axis))) return false;
    const bool is_woolf =
        axis == Axis::kOddsBy && set.get<OddsBy>(axis) == OddsBy::kWoolf && has_empty_cell_;
    if (is_woolf && !row_.declared.is_declared(axis)) return false;
  }
  if (!of_test) return true;
  const bool one_group = set.test() == TestKind::kPaired || set.test() == TestKind::kOneSample;
  if (set.effect() == Effect::kDifferences && !one_group) return false;
  // A d without any deviation or t beside it is Cohen's unless the row says that it is Glass's.
  const bool is_normal = set.test() == TestKind::kZ || set.test() == TestKind::kZPooled;
  if (set.effect() == Effect::kOfTAndDf && is_normal) return false;
  const bool is_glass = set.effect() == Effect::kSdA || set.effect() == Effect::kSdB;
  if (is_glass && !has_scale_ && !row_.declared.is_declared(Axis::kEffect)) return false;
  return row_.declared.is_declared(Axis::kTest) || admits(set.test());
}

bool Admission::leaves_open(Figure figure) const {
  using enum Figure;
  switch (figure) {
    case kCiLow:
    case kCiHigh:
    case kMeanALow:
    case kMeanAHigh:
    case kMeanBLow:
    case kMeanBHigh:
      return row_.declared.is_other(Axis::kTest) || row_.declared.is_other(Axis::kInterval);
    case kP:
    case kTostP:
    case kPower:
    case kMde:
    case kMdeD:
      return row_.declared.is_other(Axis::kTest);
    default:
      return false;
  }
}

bool Admission::admits(TestKind test) const {
  const bool is_normal = test == TestKind::kZ || test == TestKind::kZPooled;
  const bool has_table = has_counts_ || has_odds_;
  if (test == TestKind::kWoolf && has_empty_cell_) return false;
  if (test >= TestKind::kFisher) return has_table;
  if (has_table && !has_means_) return false;
  if (has_z_ != is_normal && (has_z_ || has_df_)) return false;
  if (test == TestKind::kOneSample) return !has_b_ && !is_paired_;
  if (has_mu_) return false;
  return test == TestKind::kPaired ? may_be_paired_ : !is_paired_;
}

}  // namespace assay::stats
