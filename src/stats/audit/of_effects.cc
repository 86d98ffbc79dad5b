// Standardised differences: d by its conventions, Hedges' g, the pooled deviation.
#include "stats/audit/groups.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/effect.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

constexpr std::string_view kDeviationsUnknown = "deviations not printed";

bool is_normal(TestKind test) {
  return test == TestKind::kZ || test == TestKind::kZPooled;
}
bool is_pooled(TestKind test) {
  return test == TestKind::kStudent || test == TestKind::kZPooled;
}

// d over t: the factor that turns t into d. Where only n is known, it is the ratio of two mixtures
// of the variances (that of the standard error, that of d's deviation), extreme where a variance is
// 0.
MaybeReading d_over_t(Row x, Set set) {
  const auto a = x.exact(kNA);
  const auto b = x.exact(kNB);
  const TestKind test = set.test();
  if (set.effect() == Effect::kOfTAndDf) {
    if (is_normal(test)) return std::nullopt;
    const DfRange df = df_by_n(x, set);
    return Reading{quotient(point(2), root(df.df)), df.unknown};
  }
  if (!a) return std::nullopt;
  if (set.effect() == Effect::kDifferences || test == TestKind::kOneSample) {
    return Reading{point(1 / std::sqrt(*a))};
  }
  if (!b || *a < 2 || *b < 2) return std::nullopt;
  const double n_a = *a;
  const double n_b = *b;
  if (set.effect() == Effect::kOfT) return Reading{point(std::sqrt(1 / n_a + 1 / n_b))};
  // The square of the standard error is error_a v_a + error_b v_b, that of d's deviation
  // sd_a v_a + sd_b v_b.
  const double of_df = n_a + n_b - 2;
  double error_a = 1 / n_a;
  double error_b = 1 / n_b;
  if (is_pooled(test)) {
    error_a = (n_a - 1) / of_df * (1 / n_a + 1 / n_b);
    error_b = (n_b - 1) / of_df * (1 / n_a + 1 / n_b);
  }
  double sd_a = 0.5;
  double sd_b = 0.5;
  if (set.effect() == Effect::kPooled) {
    sd_a = (n_a - 1) / of_df;
    sd_b = (n_b - 1) / of_df;
  } else if (set.effect() == Effect::kSdA) {
    sd_a = 1;
    sd_b = 0;
  } else if (set.effect() == Effect::kSdB) {
    sd_a = 0;
    sd_b = 1;
  }
  const auto ratio = [](double over, double under) { return under > 0 ? over / under : kInfinite; };
  Interval of = hull(point(ratio(error_a, sd_a)), point(ratio(error_b, sd_b)));
  if (test == TestKind::kPaired) {  // the differences' variance is 0 to (sd_a + sd_b)^2
    of = {0, 2 * of.high};
  }
  const bool known = test != TestKind::kPaired && of.high <= of.low * (1 + 1e-12);
  if (known) of.high = of.low;
  return Reading{root(of), known ? "" : kDeviationsUnknown};
}

// d of a less b by the groups' figures.
MaybeReading d_of_groups(Row x, Set set) {
  const auto delta = mean_difference(x, set);
  if (!delta) return std::nullopt;
  const Effect effect = set.effect();
  if (set.test() == TestKind::kOneSample || effect == Effect::kDifferences ||
      effect == Effect::kOfT || effect == Effect::kOfTAndDf) {
    if (effect != Effect::kDifferences && x.has(kT)) return std::nullopt;  // of the t printed
    const MaybeReading factor = d_over_t(x, set);
    if (!factor) return std::nullopt;
    return over_spread(x, set, [&](const ErrorRange& error) {
      const Interval by =
          effect == Effect::kOfTAndDf ? quotient(point(2), root(error.df)) : factor->range;
      return std::optional(product(quotient(*delta, error.value), by));
    });
  }
  const auto sd_a = sample_sd(x, set, kSdA, kNA);
  const auto sd_b = sample_sd(x, set, kSdB, kNB);
  if (effect == Effect::kSdA) {
    return sd_a ? std::optional(Reading{quotient(*delta, *sd_a)}) : std::nullopt;
  }
  if (effect == Effect::kSdB) {
    return sd_b ? std::optional(Reading{quotient(*delta, *sd_b)}) : std::nullopt;
  }
  const auto spread = spread_of(x, set);
  if (!spread) return std::nullopt;
  const Pooling pooling = effect == Effect::kPooled ? Pooling::kByDf : Pooling::kMeanVariance;
  return Reading{quotient(*delta, pooled_sd(*spread, pooling))};
}

// d of a less b by the t printed.
MaybeReading d_of_t(Row x, Set set) {
  const auto t = x[is_normal(set.test()) && x.has(kZ) ? kZ : kT];
  const MaybeReading factor = d_over_t(x, set);
  if (!t || !factor) return std::nullopt;
  const bool known = x.has(kSdA) && x.has(kSdB) && x.has(kMeanA);
  if (known && !factor->unknown.empty()) return std::nullopt;  // the groups say it better
  return Reading{product(signed_by(*t, set.sign(kSignT)), factor->range), factor->unknown};
}

MaybeReading d_of_p(Row x, Set set) {
  const auto p = x[kP];
  const MaybeReading factor = d_over_t(x, set);
  if (!p || !factor || set.test() == TestKind::kOther) return std::nullopt;
  const DfRange df = df_by_n(x, set);
  const double tails = set.sides() == Sides::kTwo ? 2 : 1;
  const Interval t = over_corners(
      [&](double area, double freedom) {
        const double upper = area / tails;
        if (!(upper > 0)) return kInfinite;
        if (!(upper < 1)) return -kInfinite;
        // The quantile is taken at the smaller tail, which keeps its digits.
        const double tail = std::min(upper, 1 - upper);
        const auto q =
            std::isinf(freedom) ? normal_quantile(tail) : student_t_quantile(tail, freedom);
        if (!q) return std::nan("");
        return upper < 0.5 ? -*q : *q;
      },
      *p, df.df);
  const bool less = set.sides() == Sides::kLess;
  return Reading{product(less ? negative(t) : t, factor->range),
                 factor->unknown.empty() ? df.unknown : factor->unknown};
}

MaybeReading p_of_d(Row x, Set set) {
  const auto d = x[kD];
  const MaybeReading factor = d_over_t(x, set);
  if (!d || !factor) return std::nullopt;
  const DfRange df = df_by_n(x, set);
  const Interval t = quotient(signed_by(*d, set.sign(kSignD)), factor->range);
  const std::string_view unknown = factor->unknown.empty() ? df.unknown : factor->unknown;
  if (set.sides() == Sides::kTwo) return Reading{two_sided_tail(t, df.df), unknown};
  return Reading{upper_tail(set.sides() == Sides::kLess ? negative(t) : t, df.df), unknown};
}

template <typename D>
auto d_as_printed(const D& d_of) {
  return [d_of](Row x, Set set, size_t) -> MaybeReading {
    MaybeReading d = d_of(x, set);
    if (d) d->range = signed_by(d->range, set.sign(kSignD));
    return d;
  };
}

// The correction of d's bias for m degrees of freedom of its deviation.
std::optional<double> correction(Row x, Set set) {
  const auto a = x.exact(kNA);
  const auto b = x.exact(kNB);
  std::optional<double> m;
  if (set.effect() == Effect::kSdA || set.effect() == Effect::kDifferences) {
    if (a) m = *a - 1;
  } else if (set.effect() == Effect::kSdB) {
    if (b) m = *b - 1;
  } else if (a && b) {
    m = *a + *b - 2;
  }
  if (!m || *m < 1) return std::nullopt;
  if (set.get<Correction>(kCorrection) == Correction::kExact) return hedges_correction(*m);
  return 1 - 3 / (4 * *m - 1);
}

template <typename D>
auto corrected(const D& d_of) {
  return [d_of](Row x, Set set) -> MaybeReading {
    MaybeReading d = d_of(x, set);
    const auto factor = correction(x, set);
    if (!d || !factor) return std::nullopt;
    d->range = product(d->range, point(*factor));
    return d;
  };
}

}  // namespace

void add_effect_relations(std::vector<Relation>& table) {
  const std::vector<Axis> of_groups = {kTest, kDeviations, kEffect, kSignD};
  const std::vector<Axis> of_t = {kTest, kEffect, kSignT, kSignD};
  const std::vector<Axis> of_p = {kSides, kTest, kEffect, kSignD};
  table.push_back({kSdPooled,
                   "deviations and n",
                   {kDeviations, kPooling},
                   [](Row x, Set set, size_t) -> MaybeReading {
                     const auto spread = spread_of(x, set);
                     if (!spread) return std::nullopt;
                     return Reading{pooled_sd(*spread, set.get<Pooling>(kPooling))};
                   }});
  table.push_back({kD, "the groups", of_groups, d_as_printed(d_of_groups)});
  table.push_back({kD, "t", of_t, d_as_printed(d_of_t)});
  table.push_back({kD,
                   "delta and sd_pooled",
                   {kEffect, kPooling, kSignDelta, kSignD},
                   d_as_printed([](Row x, Set set) -> MaybeReading {
                     const auto delta = x[kDelta];
                     const auto sd = x[kSdPooled];
                     // Both figures pool alike, or they say nothing of one another.
                     const auto pooling = set.get<Pooling>(kPooling);
                     const bool pools =
                         (set.effect() == Effect::kPooled && pooling == Pooling::kByDf) ||
                         (set.effect() == Effect::kMeanVariance &&
                          pooling == Pooling::kMeanVariance);
                     if (!delta || !sd || !pools) return std::nullopt;
                     return Reading{quotient(signed_by(*delta, set.sign(kSignDelta)), *sd)};
                   })});
  table.push_back({kD, "p and n", of_p, d_as_printed(d_of_p), true});
  table.push_back(
      {kP, "d and n", of_p, [](Row x, Set set, size_t) { return p_of_d(x, set); }, true});
  std::vector<Axis> axes = of_groups;
  axes.push_back(kCorrection);
  table.push_back({kG, "the groups", axes, d_as_printed(corrected(d_of_groups))});
  table.push_back(
      {kG, "d and n", {kEffect, kCorrection}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto printed = [](Row y, Set) -> MaybeReading {
           const auto d = y[kD];
           return d ? std::optional(Reading{*d}) : std::nullopt;
         };
         return corrected(printed)(x, set);
       }});
  axes = of_t;
  axes.push_back(kCorrection);
  table.push_back({kG, "t", axes, d_as_printed(corrected(d_of_t)), true});
}

}  // namespace assay::stats
