// Counts of totals: their shares, intervals by each method, and tests of two.
#include "stats/audit/relations.h"
#include "stats/distributions/distributions.h"
#include "stats/hypotheses/proportions.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

Interval by_beta(double x, double n, double tail, double prior) {
  // prior 0: Clopper-Pearson (lower of Beta(x, n-x+1), upper of Beta(x+1, n-x)); 1/2: Jeffreys.
  const double more = prior > 0 ? 0 : 1;
  const auto low = beta_quantile(tail, x + prior, n - x + prior + more);
  const auto high = beta_quantile(1 - tail, x + prior + more, n - x + prior);
  return {x == 0 ? 0 : low.value_or(std::nan("")), x == n ? 1 : high.value_or(std::nan(""))};
}

// P(X >= x), X binomial: the incomplete beta function as a tail of F.
double at_least(double x, double n, double p) {
  if (x <= 0) return 1;
  if (x > n || p <= 0) return 0;
  const double more = n - x + 1;
  const auto area = f_upper(x * (1 - p) / (more * p), 2 * more, 2 * x);
  return area ? area->p : std::nan("");
}

// The p at which the chance of more than x and half of that of x make `tail`: between 0 and the
// observed share, in which it grows.
double mid_p_lower(double x, double n, double tail) {
  if (x <= 0) return 0;
  double low = 0;
  double high = x / n;
  constexpr int kHalvings = 45;  // 1e-13
  for (int i = 0; i < kHalvings; ++i) {
    const double p = (low + high) / 2;
    const double chance = (at_least(x, n, p) + at_least(x + 1, n, p)) / 2;
    (chance < tail ? low : high) = p;
  }
  return (low + high) / 2;
}

// Interval of the rate x of n by z, the normal quantile for the confidence.
Interval rate_interval(double x, double n, double confidence, RateInterval by) {
  const double tail = (1 - confidence) / 2;
  const double z = normal_quantile(1 - tail).value_or(std::nan(""));
  const double p = x / n;
  const auto cut = [](double low, double high) {
    return Interval{std::max(0.0, low), std::min(1.0, high)};
  };
  switch (by) {
    case RateInterval::kWilson: {
      const auto found =
          wilson_interval(static_cast<int64_t>(x), static_cast<int64_t>(n), confidence);
      return found.value_or(Interval{0, 1});
    }
    case RateInterval::kWald: {
      const double half = z * std::sqrt(p * (1 - p) / n);
      return cut(p - half, p + half);
    }
    case RateInterval::kAgrestiCoull: {
      const double more = n + z * z;
      const double centre = (x + z * z / 2) / more;
      const double half = z * std::sqrt(centre * (1 - centre) / more);
      return cut(centre - half, centre + half);
    }
    case RateInterval::kWilsonCorrected: {
      // Newcombe (1998), method 4.
      const double below =
          2 * n * p + z * z - 1 - z * std::sqrt(z * z - 2 - 1 / n + 4 * p * (n * (1 - p) + 1));
      const double above =
          2 * n * p + z * z + 1 + z * std::sqrt(z * z + 2 - 1 / n + 4 * p * (n * (1 - p) - 1));
      return cut(x == 0 ? 0 : below / (2 * (n + z * z)), x == n ? 1 : above / (2 * (n + z * z)));
    }
    case RateInterval::kClopperPearson:
      return by_beta(x, n, tail, 0);
    case RateInterval::kJeffreys:
      return by_beta(x, n, tail, 0.5);
    case RateInterval::kMidP:
      return {mid_p_lower(x, n, tail), 1 - mid_p_lower(n - x, n, tail)};
    case RateInterval::kOther:
      break;
  }
  return {0, 1};
}

struct OneRate {
  Figure count, total, rate, low, high;
};

// Factor from the rate as printed to a share. A percent sign was read already.
double unit_of(Row x, Set set, Figure figure) {
  return !x.is_percent(figure) && set.get<RateUnit>(kRateUnit) == RateUnit::kPercent ? 100 : 1;
}

// The counts that the row may mean: the one printed, or all that give the rate.
std::optional<Interval> counts_of(Row x, Set set, const OneRate& of) {
  if (const auto count = x.exact(of.count)) return point(*count);
  const auto rate = x[of.rate];
  const auto total = x.exact(of.total);
  if (!rate || !total) return std::nullopt;
  const double scale = *total / unit_of(x, set, of.rate);
  if (rate->low == rate->high) return point(std::clamp(std::round(rate->low * scale), 0.0, *total));
  const double slack = 1e-9 * *total;
  return Interval{std::max(0.0, std::ceil(rate->low * scale - slack)),
                  std::min(*total, std::floor(rate->high * scale + slack))};
}

void add_rate(std::vector<Relation>& table, const OneRate& of) {
  table.push_back(
      {of.rate, "count and total", {kRateUnit}, [=](Row x, Set set, size_t) -> MaybeReading {
         const auto count = x.exact(of.count);
         const auto total = x.exact(of.total);
         if (!count || !total) return std::nullopt;
         return Reading{point(*count / *total * unit_of(x, set, of.rate))};
       }});
  for (const Figure end : {of.low, of.high}) {
    table.push_back(
        {end,
         "count and total",
         {kRateUnit, kRateInterval},
         [=](Row x, Set set, size_t) -> MaybeReading {
           const auto counts = counts_of(x, set, of);
           const auto total = x.exact(of.total);
           constexpr double kMost = 1000;  // candidates worth trying
           if (!counts || !total || !(counts->low <= counts->high) ||
               counts->high - counts->low > kMost) {
             return std::nullopt;
           }
           const auto at = [&](double count) {
             const Interval interval = rate_interval(count, *total, x.exact_or(kConfidence, 0.95),
                                                     set.get<RateInterval>(kRateInterval));
             return (end == of.low ? interval.low : interval.high) * unit_of(x, set, end);
           };
           Interval all = point(at(counts->low));
           for (double count = counts->low + 1; count <= counts->high; ++count) {
             all = hull(all, point(at(count)));
           }
           if (std::isnan(all.low) || std::isnan(all.high)) return std::nullopt;
           return Reading{all};
         }});
  }
}

// (shares' difference) / its standard error: pooled, or pooled with Yates' correction, or unpooled.
double z_of(const Proportion& a, const Proportion& b, TestKind test) {
  const auto n_a = static_cast<double>(a.n);
  const auto n_b = static_cast<double>(b.n);
  const double p_a = static_cast<double>(a.successes) / n_a;
  const double p_b = static_cast<double>(b.successes) / n_b;
  const double pool = static_cast<double>(a.successes + b.successes) / (n_a + n_b);
  double difference = p_a - p_b;
  double variance = pool * (1 - pool) * (1 / n_a + 1 / n_b);
  if (test == TestKind::kCountsZ) variance = p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b;
  if (test == TestKind::kYates) {
    const double less = std::min(std::abs(difference), (1 / n_a + 1 / n_b) / 2);
    difference -= std::copysign(less, difference);
  }
  return difference / std::sqrt(variance);
}

// The signed root of G = 2 sum of observed ln(observed / expected) over the table's four cells.
// Yates: each observed count half nearer to its expected one. Williams (1976): G over q.
double root_of_g(const Proportion& a, const Proportion& b, TestKind test) {
  const auto n_a = static_cast<double>(a.n);
  const auto n_b = static_cast<double>(b.n);
  const auto hits = static_cast<double>(a.successes + b.successes);
  const double n = n_a + n_b;
  double above = static_cast<double>(a.successes) - hits * n_a / n;  // of one cell, and of all
  const double side = above < 0 ? -1 : 1;
  if (test == TestKind::kGYates) above -= side * std::min(0.5, std::abs(above));
  const auto part = [](double observed, double expected) {
    return observed > 0 ? observed * std::log(observed / expected) : 0;
  };
  double g = part(hits * n_a / n + above, hits * n_a / n);
  g += part(hits * n_b / n - above, hits * n_b / n);
  g += part((n - hits) * n_a / n - above, (n - hits) * n_a / n);
  g += part((n - hits) * n_b / n + above, (n - hits) * n_b / n);
  if (test == TestKind::kGWilliams) {
    g /= 1 + (n / n_a + n / n_b - 1) * (n / hits + n / (n - hits) - 1) / (6 * n);
  }
  return side * std::sqrt(std::max(0.0, 2 * g));
}

MaybeReading p_of_counts(Row x, Set set) {
  const auto of = [&](Figure count, Figure total) -> std::optional<Proportion> {
    const auto k = x.exact(count);
    const auto n = x.exact(total);
    if (!k || !n || *k > *n) return std::nullopt;
    return Proportion{static_cast<int64_t>(*k), static_cast<int64_t>(*n)};
  };
  const auto a = of(kCountA, kTotalA);
  const auto b = of(kCountB, kTotalB);
  if (!a || !b) return std::nullopt;
  const Sides sides = set.sides();
  const Side side = sides == Sides::kTwo       ? Side::kTwo
                    : sides == Sides::kGreater ? Side::kGreater
                                               : Side::kLess;
  // The unconditional tests go through all tables, 400 times.
  constexpr double kMostTables = 1e5;
  const bool small = static_cast<double>(a->n) * static_cast<double>(b->n) <= kMostTables;
  switch (set.test()) {
    case TestKind::kFisher: {
      const auto test = fisher_exact(*a, *b, side);
      return test ? std::optional(Reading{point(test->p)}) : std::nullopt;
    }
    case TestKind::kBoschloo: {
      const auto test = small ? boschloo_exact(*a, *b, side) : std::nullopt;
      return test ? std::optional(Reading{point(test->p)}) : std::nullopt;
    }
    case TestKind::kBarnard: {
      const auto test = small ? barnard_exact(*a, *b, side) : std::nullopt;
      return test ? std::optional(Reading{point(test->p)}) : std::nullopt;
    }
    case TestKind::kChiSquare:
    case TestKind::kYates:
    case TestKind::kCountsZ:
    case TestKind::kG:
    case TestKind::kGYates:
    case TestKind::kGWilliams: {
      const bool is_g = set.test() >= TestKind::kG;
      const double z = is_g ? root_of_g(*a, *b, set.test()) : z_of(*a, *b, set.test());
      if (!std::isfinite(z)) return std::nullopt;
      if (sides == Sides::kTwo) return Reading{two_sided_tail(point(z), point(kInfinite))};
      return Reading{upper_tail(point(sides == Sides::kGreater ? z : -z), point(kInfinite))};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

void add_count_relations(std::vector<Relation>& table) {
  add_rate(table, {kCountA, kTotalA, kRateA, kRateALow, kRateAHigh});
  add_rate(table, {kCountB, kTotalB, kRateB, kRateBLow, kRateBHigh});
  table.push_back({kP, "the counts", {kSides, kTest}, [](Row x, Set set, size_t) {
                     return p_of_counts(x, set);
                   }});
}

}  // namespace assay::stats
