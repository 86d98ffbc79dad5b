// Differences, ratios and percentages of two means; one mean with its error and interval.
#include "stats/audit/groups.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

void add_differences(std::vector<Relation>& table) {
  table.push_back({kDelta, "the means", {kSignDelta}, [](Row x, Set set, size_t) -> MaybeReading {
                     const auto a = x[kMeanA];
                     const auto b = x[kMeanB];
                     if (!a || !b) return std::nullopt;
                     return Reading{signed_by(difference(*a, *b), set.sign(kSignDelta))};
                   }});
  table.push_back(
      {kDelta, "mean_a and mu", {kSignDelta}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto a = x[kMeanA];
         const auto mu = x[kMu];
         if (!a || !mu) return std::nullopt;
         return Reading{signed_by(difference(*a, *mu), set.sign(kSignDelta))};
       }});
}

Interval ratio_by(const Interval& a_over_b, Set set) {
  return set.get<RatioOf>(kRatioOf) == RatioOf::kAOverB ? a_over_b : quotient(point(1), a_over_b);
}

void add_ratio(std::vector<Relation>& table) {
  table.push_back({kRatio, "the means", {kRatioOf}, [](Row x, Set set, size_t) -> MaybeReading {
                     const auto a = x[kMeanA];
                     const auto b = x[kMeanB];
                     if (!a || !b) return std::nullopt;
                     return Reading{ratio_by(quotient(*a, *b), set)};
                   }});
}

// 100 (r - 1) and the like, r = a / b. The change relative to both means' mean and the logarithmic
// change need a positive r.
MaybeReading percent_of(const Interval& a_over_b, PercentOf base) {
  const auto as_percent = [](const Interval& change) {
    return Reading{product(point(100), change)};
  };
  switch (base) {
    case PercentOf::kOfMean:
    case PercentOf::kBackOfMean:
    case PercentOf::kLogarithm:
    case PercentOf::kBackLogarithm: {
      if (!(a_over_b.low > 0) || std::isinf(a_over_b.high)) return std::nullopt;
      const bool of_mean = base == PercentOf::kOfMean || base == PercentOf::kBackOfMean;
      const bool back = base == PercentOf::kBackOfMean || base == PercentOf::kBackLogarithm;
      return as_percent(over_corners(
          [=](double r) {
            const double change = of_mean ? 2 * (r - 1) / (r + 1) : std::log(r);
            return back ? -change : change;
          },
          a_over_b));
    }
    case PercentOf::kOther:
      return std::nullopt;
    default:
      break;
  }
  const bool of_a = base == PercentOf::kBackOfA || base == PercentOf::kOfA;
  const Interval r = of_a ? quotient(point(1), a_over_b) : a_over_b;
  const Interval change = difference(r, point(1));
  const bool negated = base == PercentOf::kBackOfB || base == PercentOf::kOfA;
  return as_percent(negated ? negative(change) : change);
}

void add_percent(std::vector<Relation>& table, Figure figure, Axis axis) {
  table.push_back({figure, "the means", {axis}, [=](Row x, Set set, size_t) -> MaybeReading {
                     const auto a = x[kMeanA];
                     const auto b = x[kMeanB];
                     if (!a || !b) return std::nullopt;
                     return percent_of(quotient(*a, *b), set.get<PercentOf>(axis));
                   }});
  table.push_back(
      {figure, "the ratio", {axis, kRatioOf}, [=](Row x, Set set, size_t) -> MaybeReading {
         const auto ratio = x[kRatio];
         if (!ratio) return std::nullopt;
         return percent_of(ratio_by(*ratio, set), set.get<PercentOf>(axis));
       }});
  // One mean and delta give the other mean.
  table.push_back({figure,
                   "delta and one mean",
                   {axis, kSignDelta},
                   [=](Row x, Set set, size_t) -> MaybeReading {
                     auto delta = x[kDelta];
                     const auto a = x[kMeanA];
                     const auto b = x[kMeanB];
                     if (!delta || (a && b) || (!a && !b)) return std::nullopt;
                     delta = signed_by(*delta, set.sign(kSignDelta));
                     const Interval one = point(1);
                     const Interval r = b ? sum(one, quotient(*delta, *b))
                                          : quotient(one, difference(one, quotient(*delta, *a)));
                     return percent_of(r, set.get<PercentOf>(axis));
                   }});
}

struct OneMean {
  Figure mean, sd, n, se, low, high;
};

// Half the interval over the standard error.
std::optional<Interval> half_width_factor(Row x, Set set, Figure n) {
  const auto count = x.exact(n);
  const bool normal = set.get<IntervalBy>(kInterval) == IntervalBy::kZ;
  if (!normal && (!count || *count < 2)) return std::nullopt;
  return t_quantile(1 - (1 - x.exact_or(kConfidence, 0.95)) / 2,
                    point(normal ? kInfinite : *count - 1));
}

std::optional<Interval> error_of_mean(Row x, Set set, const OneMean& of) {
  const auto sd = sample_sd(x, set, of.sd, of.n);
  if (!sd) return std::nullopt;
  return product(*sd, point(1 / std::sqrt(*x.exact(of.n))));
}

void add_one_mean(std::vector<Relation>& table, const OneMean& of) {
  table.push_back({of.se, "sd and n", {kDeviations}, [=](Row x, Set set, size_t) -> MaybeReading {
                     const auto error = error_of_mean(x, set, of);
                     return error ? std::optional(Reading{*error}) : std::nullopt;
                   }});
  table.push_back(
      {of.sd,
       "interval and n",
       {kDeviations, kInterval},
       [=](Row x, Set set, size_t) -> MaybeReading {
         const auto low = x[of.low];
         const auto high = x[of.high];
         const auto factor = half_width_factor(x, set, of.n);
         const auto n = x.exact(of.n);
         if (!low || !high || !factor || !n || *n < 2 || x.has(of.mean)) {
           return std::nullopt;
         }
         const double by = set.get<Divisor>(kDeviations) == Divisor::kSample ? *n : *n - 1;
         const Interval twice = product(point(2), *factor);
         return Reading{product(quotient(difference(*high, *low), twice), point(std::sqrt(by)))};
       }});
  for (const double end : {-1.0, 1.0}) {
    const Figure figure = end < 0 ? of.low : of.high;
    const Figure other = end < 0 ? of.high : of.low;
    const auto at = [=](const Interval& mean, const Interval& half) {
      return Reading{end < 0 ? difference(mean, half) : sum(mean, half)};
    };
    table.push_back({figure,
                     "mean, sd and n",
                     {kDeviations, kInterval},
                     [=](Row x, Set set, size_t) -> MaybeReading {
                       const auto mean = x[of.mean];
                       const auto error = error_of_mean(x, set, of);
                       const auto factor = half_width_factor(x, set, of.n);
                       if (!mean || !error || !factor) return std::nullopt;
                       return at(*mean, product(*factor, *error));
                     }});
    table.push_back(
        {figure, "mean, its error and n", {kInterval}, [=](Row x, Set set, size_t) -> MaybeReading {
           const auto mean = x[of.mean];
           const auto error = x[of.se];
           const auto factor = half_width_factor(x, set, of.n);
           if (!mean || !error || !factor) return std::nullopt;
           return at(*mean, product(*factor, *error));
         }});
    table.push_back(
        of_figures(figure, "mean and the other end", true, opposite_end, of.mean, other));
  }
}

}  // namespace

void add_mean_relations(std::vector<Relation>& table) {
  add_one_mean(table, {kMeanA, kSdA, kNA, kSeA, kMeanALow, kMeanAHigh});
  add_one_mean(table, {kMeanB, kSdB, kNB, kSeB, kMeanBLow, kMeanBHigh});
  add_differences(table);
  add_ratio(table);
  add_percent(table, kPercentDelta, kPercentOf);
  add_percent(table, kPercentGain, kGainOf);
}

}  // namespace assay::stats
