// Two groups' means and deviations as ranges, and the standard error of their difference.
#pragma once

#include <optional>
#include <string_view>

#include "stats/audit/relations.h"

namespace assay::stats {

struct Spread {
  Interval sd_a;  // with n - 1, whatever the row prints
  Interval sd_b;
  double n_a = 0;
  double n_b = 0;
};
// Both groups' deviations and n, each n at least 2.
std::optional<Spread> spread_of(const Figures& figures, const ConventionSet& set);
// The groups of a paired test whose differences' deviation and n are printed; their own deviations,
// which it doesn't need, are 0.
std::optional<Spread> spread_of_differences(const Figures& figures);
// One deviation with n - 1.
std::optional<Interval> sample_sd(const Figures& figures, const ConventionSet& set, Figure sd,
                                  Figure n);

// Infinite df: normal.
struct ErrorRange {
  Interval value;
  Interval df;
  std::string_view unknown = {};
};
// Standard error of the difference under the set's test, or of mean_a alone (one sample); absent
// where the test doesn't exist for these groups.
std::optional<ErrorRange> error_of(const Figures& figures, const ConventionSet& set,
                                   const Spread& spread);

// sqrt((v_a + v_b) / 2) and the like, squared ranges being monotone in both.
Interval pooled_sd(const Spread& spread, Pooling pooling);

// mean_a less mean_b, or less mu where the test is of one sample.
std::optional<Interval> mean_difference(const Figures& figures, const ConventionSet& set);

// The degrees of freedom as printed; else those that n gives; else all there are.
struct DfRange {
  Interval df;
  std::string_view unknown = {};
};
DfRange df_by_n(const Figures& figures, const ConventionSet& set);
// The degrees of freedom as printed; an integer also stands for the values that round down to it.
std::optional<Interval> printed_df(const Figures& figures);

// f(error) over parts of the deviations' ranges, joined: t and df are then of nearly the same
// deviations, as they must be. A function of all of the range at once would let each choose.
template <typename F>
std::optional<Reading> over_spread(const Figures& figures, const ConventionSet& set, const F& f) {
  std::optional<Spread> whole = spread_of(figures, set);
  if (set.test() == TestKind::kPaired && !whole) whole = spread_of_differences(figures);
  if (set.test() == TestKind::kOneSample) {
    const auto sd = sample_sd(figures, set, Figure::kSdA, Figure::kNA);
    if (sd) whole = Spread{*sd, point(0), *figures.exact(Figure::kNA), 0};
  }
  if (!whole) return std::nullopt;
  const auto parts = [&](const Interval& sd) {
    return set.test() == TestKind::kWelch && sd.low < sd.high ? 6 : 1;
  };
  const auto part = [](const Interval& sd, int i, int count) {
    const double step = (sd.high - sd.low) / count;
    return Interval{i == 0 ? sd.low : sd.low + step * i,
                    i + 1 == count ? sd.high : sd.low + step * (i + 1)};
  };
  const int parts_a = parts(whole->sd_a);
  const int parts_b = parts(whole->sd_b);
  std::optional<Reading> all;
  for (int i = 0; i < parts_a; ++i) {
    for (int j = 0; j < parts_b; ++j) {
      Spread cell = *whole;
      cell.sd_a = part(whole->sd_a, i, parts_a);
      cell.sd_b = part(whole->sd_b, j, parts_b);
      const auto error = error_of(figures, set, cell);
      if (!error) return std::nullopt;
      const std::optional<Interval> found = f(*error);
      if (!found) return std::nullopt;
      if (!all) all = Reading{*found, error->unknown};
      all->range = hull(all->range, *found);
    }
  }
  return all;
}

}  // namespace assay::stats
