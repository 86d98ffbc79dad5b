// Power and the smallest difference that it is for.
#include "stats/audit/groups.h"
#include "stats/distributions/distributions.h"
#include "stats/distributions/root.h"
#include "stats/power/power.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

double normal_above(double z) {
  return normal_upper(z).p;
}

double quantile_of(double p, double df) {
  const auto q = std::isinf(df) ? normal_quantile(p) : student_t_quantile(p, df);
  return q.value_or(std::nan(""));
}

// Chance to find a difference of `shift` standard errors, shift >= 0.
double power_at(double shift, double df, double tail, bool two_sided, PowerBy by) {
  if (std::isinf(shift)) return 1;
  if (by == PowerBy::kNormal) df = kInfinite;
  const double critical = quantile_of(1 - tail, df);
  if (std::isinf(df)) {
    return normal_above(critical - shift) + (two_sided ? normal_above(critical + shift) : 0);
  }
  if (by == PowerBy::kQuantiles) {
    const auto above = student_t_upper(critical - shift, df);
    return above ? above->p : std::nan("");
  }
  const auto above = noncentral_t_upper(critical, df, shift);
  const auto below = two_sided ? noncentral_t_cdf(-critical, df, shift) : 0;
  return above && below ? *above + *below : std::nan("");
}

// The difference, in standard errors, that is found with `power`.
double shift_for(double power, double df, double tail, bool two_sided, PowerBy by) {
  if (by == PowerBy::kNormal) df = kInfinite;
  if (by == PowerBy::kNoncentral && !std::isinf(df)) {
    if (two_sided) {
      return minimum_detectable_difference({1, df}, 2 * tail, power).value_or(std::nan(""));
    }
    const auto shortfall = [&](double shift) -> std::optional<double> {
      return power_at(shift, df, tail, false, by) - power;
    };
    const double near = quantile_of(1 - tail, df) + quantile_of(power, df);
    return rising_root(shortfall, 0, near).value_or(std::nan(""));
  }
  return quantile_of(1 - tail, df) + quantile_of(power, df);
}

struct Design {
  double tail = 0;  // of the level, on one side
  bool two_sided = true;
  PowerBy by = PowerBy::kNoncentral;
};

Design design_of(Row x, Set set) {
  const bool two_sided = set.sides() == Sides::kTwo;
  const double alpha = x.exact_or(kAlpha, 0.05);
  return {two_sided ? alpha / 2 : alpha, two_sided, set.get<PowerBy>(kPowerBy)};
}

Interval power_range(const Interval& shift, const Interval& df, const Design& design) {
  return over_corners(
      [&](double s, double freedom) {
        return power_at(s, freedom, design.tail, design.two_sided, design.by);
      },
      absolute(shift), df);
}

Interval shift_range(Row x, const Interval& df, const Design& design) {
  const double power = x.exact_or(kPower, 0.8);
  return over_corners(
      [&](double freedom) {
        return shift_for(power, freedom, design.tail, design.two_sided, design.by);
      },
      df);
}

// Standard error of a difference for a deviation of 1: sqrt(1/n_a + 1/n_b), or 1 / sqrt(n_a).
std::optional<ErrorRange> unit_error(Row x, Set set) {
  const auto a = x.exact(kNA);
  const auto b = x.exact(kNB);
  const TestKind test = set.test();
  if (!a || *a < 2) return std::nullopt;
  if (test == TestKind::kPaired || test == TestKind::kOneSample) {
    return ErrorRange{point(1 / std::sqrt(*a)), point(*a - 1)};
  }
  if (!b || *b < 2) return std::nullopt;
  const bool normal = test == TestKind::kZ || test == TestKind::kZPooled;
  return ErrorRange{point(std::sqrt(1 / *a + 1 / *b)), point(normal ? kInfinite : *a + *b - 2)};
}

bool is_of_mde(Row x) {
  return x.has(kMde) || x.has(kMdeD);
}

}  // namespace

void add_power_relations(std::vector<Relation>& table) {
  const std::vector<Axis> of_groups = {kSides, kTest, kDeviations, kDfRounding, kPowerBy};
  const std::vector<Axis> of_n = {kSides, kTest, kPowerBy};
  table.push_back({kPower, "the groups", of_groups, [](Row x, Set set, size_t) -> MaybeReading {
                     const auto delta = mean_difference(x, set);
                     if (!delta || is_of_mde(x)) return std::nullopt;
                     return over_spread(x, set, [&](const ErrorRange& error) {
                       return std::optional(
                           power_range(quotient(*delta, error.value), error.df, design_of(x, set)));
                     });
                   }});
  table.push_back({kPower, "d and n", of_n, [](Row x, Set set, size_t) -> MaybeReading {
                     const auto d = x[kD];
                     const auto error = unit_error(x, set);
                     if (!d || !error || is_of_mde(x)) return std::nullopt;
                     return Reading{
                         power_range(quotient(*d, error->value), error->df, design_of(x, set))};
                   }});
  table.push_back(
      {kPower, "delta, se and df", of_n, [](Row x, Set set, size_t) -> MaybeReading {
         const auto delta = x[kDelta];
         const auto se = x[kSe];
         if (!delta || !se || is_of_mde(x)) return std::nullopt;
         const DfRange df = df_by_n(x, set);
         return Reading{power_range(quotient(*delta, *se), df.df, design_of(x, set)), df.unknown};
       }});
  table.push_back({kMde, "deviations and n", of_groups, [](Row x, Set set, size_t) -> MaybeReading {
                     return over_spread(x, set, [&](const ErrorRange& error) {
                       return std::optional(
                           product(shift_range(x, error.df, design_of(x, set)), error.value));
                     });
                   }});
  table.push_back(
      {kMde, "se and df", of_n, [](Row x, Set set, size_t) -> MaybeReading {
         const auto se = x[kSe];
         if (!se) return std::nullopt;
         const DfRange df = df_by_n(x, set);
         return Reading{product(shift_range(x, df.df, design_of(x, set)), *se), df.unknown};
       }});
  table.push_back({kMdeD, "n", of_n, [](Row x, Set set, size_t) -> MaybeReading {
                     const auto error = unit_error(x, set);
                     if (!error) return std::nullopt;
                     return Reading{
                         product(shift_range(x, error->df, design_of(x, set)), error->value)};
                   }});
}

}  // namespace assay::stats
