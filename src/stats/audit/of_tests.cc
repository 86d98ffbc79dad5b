// Standard error, t, z, degrees of freedom, p, interval and equivalence of a difference.
#include "stats/audit/groups.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

const std::vector<Axis> kOfGroups = {kTest, kDeviations, kDfRounding};

std::vector<Axis> with(std::vector<Axis> axes, std::initializer_list<Axis> more) {
  axes.insert(axes.end(), more);
  return axes;
}

bool has_spread(Row x) {
  return x.has(kSdA) && x.has(kSdB) && x.has(kNA) && x.has(kNB);
}

Interval p_of(const Interval& t, const Interval& df, Sides sides) {
  if (sides == Sides::kTwo) return two_sided_tail(t, df);
  return upper_tail(sides == Sides::kGreater ? t : negative(t), df);
}

double confidence_of(Row x) {
  return x.exact_or(kConfidence, 0.95);
}

// Quantile of the interval, by t or z.
Interval interval_quantile(Row x, Set set, const Interval& df) {
  const bool normal = set.get<IntervalBy>(kInterval) == IntervalBy::kZ;
  return t_quantile(1 - (1 - confidence_of(x)) / 2, normal ? point(kInfinite) : df);
}

// a less b, of a printed delta.
std::optional<Interval> printed_delta(Row x, Set set) {
  const auto delta = x[kDelta];
  return delta ? std::optional(signed_by(*delta, set.sign(kSignDelta))) : std::nullopt;
}

// t of a less b from delta and the width of its interval.
MaybeReading t_of_interval(Row x, Set set) {
  const auto delta = printed_delta(x, set);
  const auto low = x[kCiLow];
  const auto high = x[kCiHigh];
  if (!delta || !low || !high || has_spread(x)) return std::nullopt;
  const Interval width = difference(*high, *low);
  if (!(width.high > 0)) return std::nullopt;
  const DfRange df = df_by_n(x, set);
  const Interval twice = product(*delta, product(point(2), interval_quantile(x, set, df.df)));
  return Reading{quotient(twice, {std::max(0.0, width.low), width.high}), df.unknown};
}

MaybeReading t_of_error(Row x, Set set) {
  const auto delta = printed_delta(x, set);
  const auto se = x[kSe];
  if (!delta || !se) return std::nullopt;
  return Reading{quotient(*delta, *se)};
}

MaybeReading t_of_groups(Row x, Set set) {
  const auto delta = mean_difference(x, set);
  if (!delta) return std::nullopt;
  return over_spread(x, set,
                     [&](const ErrorRange& error) { return quotient(*delta, error.value); });
}

// t of pairs from delta and the deviation of their differences, where the means aren't printed.
MaybeReading t_of_differences(Row x, Set set) {
  const auto delta = printed_delta(x, set);
  const auto spread = spread_of_differences(x);
  if (!delta || !spread || x.has(kMeanA) || x.has(kSe)) return std::nullopt;
  const auto error = error_of(x, set, *spread);
  if (set.test() != TestKind::kPaired || !error) return std::nullopt;
  return Reading{quotient(*delta, error->value)};
}

bool is_normal(Set set) {
  return set.test() == TestKind::kZ || set.test() == TestKind::kZPooled;
}

// The relation's t with the sign of the printed one.
template <typename T>
auto t_as_printed(const T& t_of) {
  return [t_of](Row x, Set set, size_t) -> MaybeReading {
    MaybeReading t = t_of(x, set);
    if (t) t->range = signed_by(t->range, set.sign(kSignT));
    return t;
  };
}

void add_errors(std::vector<Relation>& table) {
  table.push_back({kSe, "deviations and n", kOfGroups, [](Row x, Set set, size_t) {
                     return over_spread(x, set, [](const ErrorRange& error) {
                       return std::optional(error.value);
                     });
                   }});
  const auto error_of_t = [](const Interval& delta, const Interval& t) {
    return quotient(absolute(delta), absolute(t));
  };
  table.push_back(of_figures(kSe, "delta and t", true, error_of_t, kDelta, kT));
  table.push_back({kSe,
                   "its interval",
                   {kTest, kInterval},
                   [](Row x, Set set, size_t) -> MaybeReading {
                     const auto low = x[kCiLow];
                     const auto high = x[kCiHigh];
                     if (!low || !high) return std::nullopt;
                     const DfRange df = df_by_n(x, set);
                     const Interval twice = product(point(2), interval_quantile(x, set, df.df));
                     return Reading{quotient(difference(*high, *low), twice), df.unknown};
                   },
                   true});
  table.push_back({kDf, "deviations and n", kOfGroups, [](Row x, Set set, size_t) -> MaybeReading {
                     if (is_normal(set)) return std::nullopt;
                     const bool rounds_down = set.get<DfRounding>(kDfRounding) != DfRounding::kNone;
                     return over_spread(x, set, [=](const ErrorRange& error) {
                       return std::optional(rounds_down ? Interval{std::floor(error.df.low),
                                                                   std::floor(error.df.high)}
                                                        : error.df);
                     });
                   }});
  table.push_back({kDf, "n", {kTest}, [](Row x, Set set, size_t) -> MaybeReading {
                     const auto a = x.exact(kNA);
                     const auto b = x.exact(kNB);
                     const bool of_two =
                         set.test() == TestKind::kWelch || set.test() == TestKind::kStudent;
                     if (has_spread(x) || is_normal(set) || !a || (of_two && !b))
                       return std::nullopt;
                     // A row without its printed df, so that n alone decides.
                     PublishedRow without;
                     without.numbers.emplace(kNA, PrintedNumber::exact(*a));
                     if (b) without.numbers.emplace(kNB, PrintedNumber::exact(*b));
                     const DfRange df = df_by_n(Figures(without, true), set);
                     return Reading{df.df, df.unknown};
                   }});
}

void add_statistics(std::vector<Relation>& table) {
  const std::vector<Axis> of_interval = {kTest, kInterval, kSignT, kSignDelta};
  for (const Figure figure : {kT, kZ}) {
    table.push_back(
        {figure, "the groups", with({kTest, kDeviations}, {kSignT}), t_as_printed(t_of_groups)});
    table.push_back({figure, "delta and se", {kSignT, kSignDelta}, t_as_printed(t_of_error)});
    table.push_back({figure, "delta and its interval", of_interval, t_as_printed(t_of_interval)});
    table.push_back({figure,
                     "delta, sd_diff and n",
                     {kTest, kSignT, kSignDelta},
                     t_as_printed(t_of_differences)});
  }
}

// p of a less b from t of it.
template <typename T>
auto p_by_n(const T& t_of) {
  return [t_of](Row x, Set set, size_t) -> MaybeReading {
    const MaybeReading t = t_of(x, set);
    if (!t) return std::nullopt;
    const DfRange df = df_by_n(x, set);
    return Reading{p_of(t->range, df.df, set.sides()), df.unknown};
  };
}

void add_p(std::vector<Relation>& table) {
  table.push_back({kP, "the groups", with({kSides}, {kTest, kDeviations, kDfRounding}),
                   [](Row x, Set set, size_t) -> MaybeReading {
                     const auto delta = mean_difference(x, set);
                     if (!delta) return std::nullopt;
                     return over_spread(x, set, [&](const ErrorRange& error) {
                       return std::optional(
                           p_of(quotient(*delta, error.value), error.df, set.sides()));
                     });
                   }});
  const auto printed = [](Row x, Set set, Figure figure) -> std::optional<Interval> {
    const auto t = x[figure];
    return t ? std::optional(signed_by(*t, set.sign(kSignT))) : std::nullopt;
  };
  table.push_back({kP, "t and df", {kSides, kSignT}, [=](Row x, Set set, size_t) -> MaybeReading {
                     const auto t = printed(x, set, kT);
                     const auto df = printed_df(x);
                     if (!t || !df) return std::nullopt;
                     return Reading{p_of(*t, *df, set.sides())};
                   }});
  table.push_back(
      {kP, "t and n", {kSides, kTest, kSignT}, [=](Row x, Set set, size_t) -> MaybeReading {
         const auto t = printed(x, set, kT);
         if (!t || x.has(kDf)) return std::nullopt;
         const DfRange df = df_by_n(x, set);
         return Reading{p_of(*t, df.df, set.sides()), df.unknown};
       }});
  table.push_back({kP, "z", {kSides, kSignT}, [=](Row x, Set set, size_t) -> MaybeReading {
                     const auto z = printed(x, set, kZ);
                     if (!z) return std::nullopt;
                     return Reading{p_of(*z, point(kInfinite), set.sides())};
                   }});
  const std::vector<Axis> of_delta = {kSides, kTest, kSignDelta};
  table.push_back({kP, "delta, se and df", of_delta, p_by_n([](Row x, Set set) -> MaybeReading {
                     return x.has(kT) ? std::nullopt : t_of_error(x, set);
                   })});
  table.push_back({kP, "delta, sd_diff and n", of_delta, p_by_n(t_of_differences)});
  table.push_back({kP, "delta and its interval", with(of_delta, {kInterval}),
                   p_by_n([](Row x, Set set) -> MaybeReading {
                     return x.has(kT) || x.has(kSe) ? std::nullopt : t_of_interval(x, set);
                   })});
}

// One end: -1 the lower, 1 the upper. Delta is that of the printed sign.
std::optional<Interval> end_of(Row x, Set set, double end, const Interval& delta,
                               const Interval& error, const Interval& df) {
  const Interval half = product(interval_quantile(x, set, df), error);
  return end < 0 ? difference(delta, half) : sum(delta, half);
}

void add_interval(std::vector<Relation>& table, Figure figure, Figure other, double end) {
  table.push_back({figure, "the groups", with(kOfGroups, {kInterval, kSignDelta}),
                   [=](Row x, Set set, size_t) -> MaybeReading {
                     auto delta = mean_difference(x, set);
                     if (!delta) return std::nullopt;
                     delta = signed_by(*delta, set.sign(kSignDelta));
                     return over_spread(x, set, [&](const ErrorRange& error) {
                       return end_of(x, set, end, *delta, error.value, error.df);
                     });
                   }});
  table.push_back(
      {figure, "delta, se and df", {kTest, kInterval}, [=](Row x, Set set, size_t) -> MaybeReading {
         const auto delta = x[kDelta];
         const auto se = x[kSe];
         if (!delta || !se || has_spread(x)) return std::nullopt;
         const DfRange df = df_by_n(x, set);
         return Reading{*end_of(x, set, end, *delta, *se, df.df), df.unknown};
       }});
  table.push_back({figure,
                   "delta, sd_diff and n",
                   {kTest, kInterval},
                   [=](Row x, Set set, size_t) -> MaybeReading {
                     const auto delta = x[kDelta];
                     const auto spread = spread_of_differences(x);
                     if (!delta || !spread || x.has(kMeanA) || x.has(kSe)) return std::nullopt;
                     const auto error = error_of(x, set, *spread);
                     if (set.test() != TestKind::kPaired || !error) return std::nullopt;
                     return Reading{*end_of(x, set, end, *delta, error->value, error->df)};
                   }});
  table.push_back(of_figures(figure, "delta and the other end", true, opposite_end, kDelta, other));
}

// Equivalence margins: low < mean_a - mean_b < high, or low < a / b < high of the ratio.
struct Margins {
  double low = 0;
  double high = 0;
  bool of_ratio = false;
};

std::optional<Margins> equivalence_of(Row x, Set set) {
  if (const auto margin = x.exact(kMargin)) return Margins{-*margin, *margin};
  const auto percent = x.exact(kMarginPercent);
  if (!percent) return std::nullopt;
  const double share = *percent / 100;
  switch (set.get<MarginOf>(kMarginOf)) {
    case MarginOf::kRatio:
      return Margins{1 - share, 1 + share, true};
    case MarginOf::kRatioInverse:
      return Margins{1 / (1 + share), 1 + share, true};
    default:
      return Margins{-share, share};  // of a mean
  }
}

Interval tost_p(const Interval& below, const Interval& above, const Interval& error,
                const Interval& df) {
  const Interval p_low = upper_tail(quotient(below, error), df);
  const Interval p_high = upper_tail(quotient(above, error), df);
  return {std::max(p_low.low, p_high.low), std::max(p_low.high, p_high.high)};
}

// p of mean_a > factor mean_b, or of <, as one test of the scaled group.
MaybeReading ratio_side(Row x, Set set, double factor, double side) {
  const auto a = x[kMeanA];
  const auto b = x[kMeanB];
  if (!a || !b || !(a->low > 0) || !(b->low > 0) || !(factor > 0)) return std::nullopt;
  const auto spread = spread_of(x, set);
  if (!spread) return std::nullopt;
  Spread scaled = *spread;
  scaled.sd_b = product(scaled.sd_b, point(factor));
  const auto error = error_of(x, set, scaled);
  if (!error) return std::nullopt;
  const Interval estimate = difference(*a, product(*b, point(factor)));
  return Reading{upper_tail(quotient(signed_by(estimate, side), error->value), error->df),
                 error->unknown};
}

MaybeReading tost_of_groups(Row x, Set set) {
  const auto bounds = equivalence_of(x, set);
  if (!bounds) return std::nullopt;
  if (bounds->of_ratio) {
    const MaybeReading low = ratio_side(x, set, bounds->low, 1);
    const MaybeReading high = ratio_side(x, set, bounds->high, -1);
    if (!low || !high) return std::nullopt;
    return Reading{
        {std::max(low->range.low, high->range.low), std::max(low->range.high, high->range.high)},
        low->unknown};
  }
  const auto delta = mean_difference(x, set);
  if (!delta) return std::nullopt;
  Interval unit = point(1);
  if (!x.has(kMargin)) {
    const auto mean = x[set.get<MarginOf>(kMarginOf) == MarginOf::kB ? kMeanB : kMeanA];
    if (!mean) return std::nullopt;
    unit = absolute(*mean);
  }
  return over_spread(x, set, [&](const ErrorRange& error) {
    const Interval margin = product(unit, point(bounds->high));
    return std::optional(
        tost_p(sum(*delta, margin), difference(margin, *delta), error.value, error.df));
  });
}

void add_equivalence(std::vector<Relation>& table) {
  table.push_back({kTostP, "the groups", with(kOfGroups, {kMarginOf}),
                   [](Row x, Set set, size_t) { return tost_of_groups(x, set); }});
  table.push_back(
      {kTostP, "delta, se and df", {kTest, kMarginOf}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto delta = x[kDelta];
         const auto se = x[kSe];
         const auto bounds = equivalence_of(x, set);
         if (!delta || !se || !bounds || bounds->of_ratio) return std::nullopt;
         Interval unit = point(1);
         if (!x.has(kMargin)) {
           const bool of_b = set.get<MarginOf>(kMarginOf) == MarginOf::kB;
           const auto mean = x[of_b ? kMeanB : kMeanA];
           if (!mean) return std::nullopt;
           unit = absolute(*mean);
         }
         const Interval margin = product(unit, point(bounds->high));
         const DfRange df = df_by_n(x, set);
         return Reading{tost_p(sum(*delta, margin), difference(margin, *delta), *se, df.df),
                        df.unknown};
       }});
}

}  // namespace

void add_test_relations(std::vector<Relation>& table) {
  add_errors(table);
  add_statistics(table);
  add_p(table);
  add_interval(table, kCiLow, kCiHigh, -1);
  add_interval(table, kCiHigh, kCiLow, 1);
  add_equivalence(table);
}

}  // namespace assay::stats
