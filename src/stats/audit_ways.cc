// Formulas of the audit, as a list by figure.
#include "stats/audit_ways.h"

#include <algorithm>
#include <cmath>

#include "stats/effect.h"
#include "stats/tests.h"

namespace assay::stats {
namespace {

using Values = std::span<const double>;
using Level = std::vector<AuditWay>;
using enum Figure;

// The groups' figures in the order of kGroups.
const std::vector<Figure> kGroups = {kMeanA, kMeanB, kSdA, kSdB, kNA, kNB};

Moments group_a(Values x) {
  return {static_cast<int64_t>(x[4]), x[0], x[2] * x[2]};
}
Moments group_b(Values x) {
  return {static_cast<int64_t>(x[5]), x[1], x[3] * x[3]};
}

enum class Variances { kWelch, kStudent };

std::optional<StandardError> error_of(Values x, Variances variances) {
  return variances == Variances::kWelch ? welch_standard_error(group_a(x), group_b(x))
                                        : pooled_standard_error(group_a(x), group_b(x));
}

const char* name_of(Variances variances) {
  return variances == Variances::kWelch ? "Welch" : "Student";
}

std::vector<Figure> with(std::vector<Figure> figures, Figure one_more) {
  figures.push_back(one_more);
  return figures;
}

// Every way, then every way with the other sign: b - a.
Level both_signs(Level ways) {
  const size_t count = ways.size();
  for (size_t i = 0; i < count; ++i) {
    AuditWay other = ways[i];
    other.name = other.name == "a - b" ? "b - a" : other.name + ", b - a";
    other.compute = [compute = ways[i].compute](Values x) -> std::optional<double> {
      const auto value = compute(x);
      return value ? std::optional(-*value) : std::nullopt;
    };
    ways.push_back(std::move(other));
  }
  return ways;
}

double two_sided(double t, double df) {
  const auto area = student_t_two_sided(t, df);
  return area ? area->p : std::nan("");
}

// p of t, two-sided and then one-sided, t being computed from some inputs.
template <typename T>
Level p_ways(const std::string& name, const std::vector<Figure>& inputs, bool means,
             const T& t_and_df) {
  Level ways;
  for (const double sides : {1.0, 0.5}) {
    ways.push_back({name + (sides == 1 ? ", two-sided" : ", one-sided"), inputs,
                    [=](Values x) -> std::optional<double> {
                      const auto at = t_and_df(x);
                      if (!at) return std::nullopt;
                      return sides * two_sided(at->first, at->second);
                    },
                    means});
  }
  return ways;
}

using TAndDf = std::optional<std::pair<double, double>>;

Level p_of_groups() {
  Level ways;
  for (const Variances variances : {Variances::kWelch, Variances::kStudent}) {
    const Level of = p_ways(name_of(variances), kGroups, true, [=](Values x) -> TAndDf {
      const auto error = error_of(x, variances);
      if (!error) return std::nullopt;
      return std::pair((x[0] - x[1]) / error->value, error->df);
    });
    ways.insert(ways.end(), of.begin(), of.end());
  }
  std::ranges::stable_sort(ways, {},
                           [](const AuditWay& w) { return w.name.ends_with("one-sided"); });
  return ways;
}

std::vector<Level> p_levels() {
  const auto of_f = [](Values x) -> std::optional<double> {
    const auto area = f_upper(x[0], x[1], x[2]);
    return area ? std::optional(area->p) : std::nullopt;
  };
  return {
      p_of_groups(),
      p_ways("t and df", {kT, kDf}, false,
             [](Values x) -> TAndDf { return std::pair(x[0], x[1]); }),
      p_ways("delta, se and df", {kDelta, kSe, kDf}, false,
             [](Values x) -> TAndDf {
               if (!(x[1] > 0)) return std::nullopt;
               return std::pair(x[0] / x[1], x[2]);
             }),
      p_ways("t and n, Student", {kT, kNA, kNB}, false,
             [](Values x) -> TAndDf { return std::pair(x[0], x[1] + x[2] - 2); }),
      {{"F and its df", {kF, kDf1, kDf2}, of_f}},
  };
}

Level of_groups(std::optional<double> (*compute)(Values, const StandardError&)) {
  Level ways;
  for (const Variances variances : {Variances::kWelch, Variances::kStudent}) {
    ways.push_back({name_of(variances), kGroups, [=](Values x) -> std::optional<double> {
                      const auto error = error_of(x, variances);
                      return error ? compute(x, *error) : std::nullopt;
                    }});
  }
  return ways;
}

std::optional<double> t_of(Values x, const StandardError& error) {
  return (x[0] - x[1]) / error.value;
}

std::vector<Level> t_levels() {
  Level by_error = {{"delta / se", {kDelta, kSe}, [](Values x) -> std::optional<double> {
                       if (!(x[1] > 0)) return std::nullopt;
                       return x[0] / x[1];
                     }}};
  return {both_signs(of_groups(t_of)), both_signs(by_error)};
}

std::vector<Level> df_levels() {
  // Means don't matter: without them the grid over the deviations can be the finer one.
  Level ways;
  for (const Variances variances : {Variances::kWelch, Variances::kStudent}) {
    ways.push_back(
        {name_of(variances), {kSdA, kSdB, kNA, kNB}, [=](Values x) -> std::optional<double> {
           const double all[] = {0, 0, x[0], x[1], x[2], x[3]};
           const auto error = error_of(all, variances);
           return error ? std::optional(error->df) : std::nullopt;
         }});
  }
  Level by_n = {
      {"n_a + n_b - 2", {kNA, kNB}, [](Values x) { return std::optional(x[0] + x[1] - 2); }}};
  return {ways, by_n};
}

std::vector<Level> se_levels() {
  Level ways;
  for (const Variances variances : {Variances::kWelch, Variances::kStudent}) {
    ways.push_back(
        {name_of(variances), {kSdA, kSdB, kNA, kNB}, [=](Values x) -> std::optional<double> {
           const double all[] = {0, 0, x[0], x[1], x[2], x[3]};
           const auto error = error_of(all, variances);
           return error ? std::optional(error->value) : std::nullopt;
         }});
  }
  Level by_t = {{"delta / t", {kDelta, kT}, [](Values x) -> std::optional<double> {
                   if (x[1] == 0) return std::nullopt;
                   return std::abs(x[0] / x[1]);
                 }}};
  return {ways, by_t};
}

std::optional<double> standardised(double difference, double square) {
  if (!(square > 0)) return std::nullopt;
  return difference / std::sqrt(square);
}

Level d_of_groups() {
  return {
      {"pooled sd", kGroups, [](Values x) { return cohen_d(group_a(x), group_b(x)); }},
      {"mean of variances", kGroups,
       [](Values x) { return standardised(x[0] - x[1], (x[2] * x[2] + x[3] * x[3]) / 2); }},
      {"sd of b (Glass)", kGroups, [](Values x) { return standardised(x[0] - x[1], x[3] * x[3]); }},
      {"sd of a (Glass)", kGroups, [](Values x) { return standardised(x[0] - x[1], x[2] * x[2]); }},
  };
}

std::optional<double> d_of_t(Values x) {
  if (!(x[1] > 0) || !(x[2] > 0)) return std::nullopt;
  return x[0] * std::sqrt(1 / x[1] + 1 / x[2]);
}

std::optional<double> corrected(std::optional<double> d, double m, bool exact) {
  if (!d) return std::nullopt;
  if (!exact) return *d * (1 - 3 / (4 * m - 1));
  const auto j = hedges_correction(m);
  return j ? std::optional(*d * *j) : std::nullopt;
}

std::vector<Level> d_levels() {
  return {both_signs(d_of_groups()), both_signs({{"t and n", {kT, kNA, kNB}, d_of_t}})};
}

std::vector<Level> g_levels() {
  Level of_figures;
  Level of_d;
  for (const bool exact : {true, false}) {
    const std::string name = exact ? "exact correction" : "1 - 3 / (4 m - 1)";
    of_figures.push_back({name, kGroups, [=](Values x) {
                            return corrected(cohen_d(group_a(x), group_b(x)), x[4] + x[5] - 2,
                                             exact);
                          }});
    of_d.push_back({name + " of d", {kD, kNA, kNB}, [=](Values x) {
                      return corrected(x[0], x[1] + x[2] - 2, exact);
                    }});
  }
  return {both_signs(of_figures), both_signs(of_d)};
}

// One end of the interval: -1 the lower, 1 the upper. With the other sign the ends change places.
std::vector<Level> interval_levels(double end) {
  Level of_figures;
  Level of_error;
  for (const double sign : {1.0, -1.0}) {
    const std::string suffix = sign > 0 ? "" : ", b - a";
    for (const Variances variances : {Variances::kWelch, Variances::kStudent}) {
      of_figures.push_back({name_of(variances) + suffix, with(kGroups, kConfidence),
                            [=](Values x) -> std::optional<double> {
                              const auto error = error_of(x, variances);
                              if (!error) return std::nullopt;
                              const auto t = student_t_quantile(0.5 + x[6] / 200, error->df);
                              if (!t) return std::nullopt;
                              return sign * (x[0] - x[1]) + end * *t * error->value;
                            }});
    }
    of_figures.push_back({"normal quantile" + suffix, with(kGroups, kConfidence),
                          [=](Values x) -> std::optional<double> {
                            const auto error = error_of(x, Variances::kWelch);
                            const auto z = normal_quantile(0.5 + x[6] / 200);
                            if (!error || !z) return std::nullopt;
                            return sign * (x[0] - x[1]) + end * *z * error->value;
                          }});
    of_error.push_back({"delta, se and df" + suffix,
                        {kDelta, kSe, kDf, kConfidence},
                        [=](Values x) -> std::optional<double> {
                          const auto t = student_t_quantile(0.5 + x[3] / 200, x[2]);
                          if (!t) return std::nullopt;
                          return sign * x[0] + end * *t * x[1];
                        }});
  }
  return {of_figures, of_error};
}

std::vector<Level> percent_levels() {
  const auto of = [](double part, double whole) -> std::optional<double> {
    if (whole == 0) return std::nullopt;
    return 100 * part / whole;
  };
  Level of_means = {
      {"of b", {kMeanA, kMeanB}, [=](Values x) { return of(x[0] - x[1], x[1]); }},
      {"b - a, of a", {kMeanA, kMeanB}, [=](Values x) { return of(x[1] - x[0], x[0]); }},
      {"b - a, of b", {kMeanA, kMeanB}, [=](Values x) { return of(x[1] - x[0], x[1]); }},
      {"of a", {kMeanA, kMeanB}, [=](Values x) { return of(x[0] - x[1], x[0]); }},
  };
  Level of_delta = {{"delta of b", {kDelta, kMeanB}, [=](Values x) { return of(x[0], x[1]); }}};
  Level of_ratio = {
      {"ratio - 1", {kRatio}, [](Values x) { return std::optional(100 * (x[0] - 1)); }}};
  return {of_means, both_signs(of_delta), both_signs(of_ratio)};
}

std::vector<Level> ratio_levels() {
  const auto over = [](double a, double b) -> std::optional<double> {
    if (b == 0) return std::nullopt;
    return a / b;
  };
  return {{{"a / b", {kMeanA, kMeanB}, [=](Values x) { return over(x[0], x[1]); }},
           {"b / a", {kMeanA, kMeanB}, [=](Values x) { return over(x[1], x[0]); }}},
          {{"1 + percent_delta / 100", {kPercentDelta}, [](Values x) {
              return std::optional(1 + x[0] / 100);
            }}}};
}

std::optional<double> squared_t(Values x, const StandardError& error) {
  return std::pow(*t_of(x, error), 2);
}

std::optional<double> eta_of(double f, double df1, double df2) {
  if (!(f >= 0) || !(df1 > 0) || !(df2 > 0)) return std::nullopt;
  return f * df1 / (f * df1 + df2);
}

Level as_means(Level ways) {
  for (AuditWay& way : ways) way.first_two_are_means = true;
  return ways;
}

std::vector<Level> f_levels() {
  Level groups = as_means(of_groups(squared_t));
  std::ranges::reverse(groups);  // an analysis of variance pools
  return {groups,
          {{"eta_squared and df",
            {kEtaSquared, kDf1, kDf2},
            [](Values x) -> std::optional<double> {
              if (!(x[0] >= 0 && x[0] < 1) || !(x[1] > 0)) return std::nullopt;
              return x[0] / x[1] / ((1 - x[0]) / x[2]);
            }}},
          {{"t^2", {kT}, [](Values x) { return std::optional(x[0] * x[0]); }}}};
}

std::vector<Level> eta_levels() {
  const auto of_t = [](Values x) { return eta_of(x[0] * x[0], 1, x[1]); };
  Level groups = as_means({{"two groups, pooled", kGroups, [](Values x) -> std::optional<double> {
                              const auto error = error_of(x, Variances::kStudent);
                              if (!error) return std::nullopt;
                              return eta_of(*squared_t(x, *error), 1, error->df);
                            }}});
  return {groups,
          {{"F and its df", {kF, kDf1, kDf2}, [](Values x) { return eta_of(x[0], x[1], x[2]); }}},
          {{"t and df", {kT, kDf}, of_t}}};
}

std::vector<Level> tost_levels() {
  const auto p_of = [](double delta, const StandardError& error,
                       double margin) -> std::optional<double> {
    if (!(margin > 0)) return std::nullopt;
    const auto test = tost(delta, error, -margin, margin);
    return test ? std::optional(test->p) : std::nullopt;
  };
  Level of_figures;
  for (const Variances variances : {Variances::kWelch, Variances::kStudent}) {
    of_figures.push_back({name_of(variances), with(kGroups, kMargin),
                          [=](Values x) -> std::optional<double> {
                            const auto error = error_of(x, variances);
                            return error ? p_of(x[0] - x[1], *error, x[6]) : std::nullopt;
                          },
                          true});
  }
  return {of_figures, {{"delta, se and df", {kDelta, kSe, kDf, kMargin}, [=](Values x) {
                          return p_of(x[0], {x[1], x[2]}, x[3]);
                        }}}};
}

}  // namespace

std::vector<std::vector<AuditWay>> audit_ways(Figure figure) {
  switch (figure) {
    case kDelta:
      return {both_signs(
          {{"a - b", {kMeanA, kMeanB}, [](Values x) { return std::optional(x[0] - x[1]); }}})};
    case kPercentDelta:
      return percent_levels();
    case kRatio:
      return ratio_levels();
    case kSe:
      return se_levels();
    case kT:
      return t_levels();
    case kDf:
      return df_levels();
    case kP:
      return p_levels();
    case kD:
      return d_levels();
    case kG:
      return g_levels();
    case kCiLow:
      return interval_levels(-1);
    case kCiHigh:
      return interval_levels(1);
    case kF:
      return f_levels();
    case kEtaSquared:
      return eta_levels();
    case kTostP:
      return tost_levels();
    default:
      return {};  // inputs
  }
}

}  // namespace assay::stats
