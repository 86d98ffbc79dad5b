// Analyses of variance: sums of squares, F, shares of variance; and the p of F.
#include <numeric>

#include "stats/audit/groups.h"
#include "stats/distributions/distributions.h"

namespace assay::stats {
namespace {

using enum Figure;
using enum Axis;
using MaybeReading = std::optional<Reading>;
using Row = const Figures&;
using Set = const ConventionSet&;

constexpr std::string_view kOtherFactors = "sums of squares of other factors not printed";
constexpr std::string_view kOtherDf = "df of other factors not printed";

bool is_one_or_absent(const std::optional<double>& df) {
  return !df || *df == 1;
}

// ss / (ss + ss_error) = F df1 / (F df1 + df2).
Interval share_of_f(const Interval& f, const Interval& df1, const Interval& df2) {
  return over_corners(
      [](double x, double m, double n) { return std::isinf(x) ? 1 : x * m / (x * m + n); }, f, df1,
      df2);
}

std::optional<Interval> partial_of_f(Row x) {
  const auto f = x[kF];
  const auto df1 = x[kDf1];
  const auto df2 = x[kDf2];
  if (!f || !df1 || !df2) return std::nullopt;
  return share_of_f(*f, *df1, *df2);
}

std::optional<Interval> partial_of_t(Row x) {
  const auto t = x[kT];
  const auto df = printed_df(x);
  if (!t || !df || x.has(kF)) return std::nullopt;
  return share_of_f(square(*t), point(1), *df);
}

std::optional<Interval> partial_of_ss(Row x) {
  const auto ss = x[kSs];
  const auto error = x[kSsError];
  if (!ss || !error) return std::nullopt;
  return over_corners(
      [](double s, double e) { return s == 0 && e == 0 ? std::nan("") : s / (s + e); }, *ss,
      *error);
}

std::optional<Interval> classical_of_ss(Row x) {
  const auto ss = x[kSs];
  auto total = x[kSsTotal];
  const std::vector<Interval> parts = x.list(kSsParts);
  if (!total && !parts.empty()) total = std::accumulate(parts.begin(), parts.end(), point(0), sum);
  if (!ss || !total) return std::nullopt;
  return quotient(*ss, *total);
}

// Other factors' sums of squares are in the total too, so the share of it is at most the partial.
template <typename Partial>
auto eta_by(const Partial& partial_of) {
  return [partial_of](Row x, Set set, size_t) -> MaybeReading {
    const std::optional<Interval> partial = partial_of(x);
    if (!partial) return std::nullopt;
    if (set.get<Eta>(kEta) == Eta::kPartial) return Reading{*partial};
    if (classical_of_ss(x)) return std::nullopt;
    return Reading{{0, partial->high}, kOtherFactors};
  };
}

void add_eta(std::vector<Relation>& table) {
  table.push_back(
      {kEtaSquared, "the groups", {kTest, kDeviations}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto delta = mean_difference(x, set);
         if (!delta || set.test() != TestKind::kStudent || partial_of_f(x)) {
           return std::nullopt;
         }
         return over_spread(x, set, [&](const ErrorRange& error) {
           return std::optional(
               share_of_f(square(quotient(*delta, error.value)), point(1), error.df));
         });
       }});
  table.push_back({kEtaSquared,
                   "sums of squares and total",
                   {kEta},
                   [](Row x, Set set, size_t) -> MaybeReading {
                     const auto share = classical_of_ss(x);
                     if (!share || set.get<Eta>(kEta) != Eta::kClassical) return std::nullopt;
                     return Reading{*share};
                   }});
  table.push_back({kEtaSquared, "sums of squares", {kEta}, eta_by(partial_of_ss)});
  table.push_back({kEtaSquared, "F and its df", {kEta}, eta_by(partial_of_f)});
  table.push_back({kEtaSquared, "t and df", {kEta}, eta_by(partial_of_t)});
  struct Source {
    std::string_view from;
    std::optional<Interval> (*partial_of)(Row);
  };
  for (const auto& [from, partial_of] :
       {Source{"sums of squares", partial_of_ss}, Source{"F and its df", partial_of_f},
        Source{"t and df", partial_of_t}}) {
    table.push_back(
        {kPartialEtaSquared, from, {}, [partial = partial_of](Row x, Set, size_t) -> MaybeReading {
           const auto share = partial(x);
           return share ? std::optional(Reading{*share}) : std::nullopt;
         }});
  }
}

// True if one effect and the error make up the whole table: the row says so, lists two parts, or
// its degrees of freedom add up.
bool is_one_way(Row x, Set set) {
  if (set.get<SumsBy>(kSumsOfSquares) == SumsBy::kOneWay) return true;
  if (x.list(kSsParts).size() == 2 || x.list(kDfParts).size() == 2) return true;
  const auto df1 = x.exact(kDf1);
  const auto df2 = x.exact(kDf2);
  const auto df = x.exact(kDfTotal);
  return df1 && df2 && df && *df1 + *df2 == *df;
}

// The parts are all there are; without them the row's own two are some of them.
MaybeReading total_of_parts(Row x, Set set) {
  const std::vector<Interval> parts = x.list(kSsParts);
  if (parts.empty()) return std::nullopt;
  const Interval all = std::accumulate(parts.begin(), parts.end(), point(0), sum);
  const bool overlap = set.get<SumsBy>(kSumsOfSquares) == SumsBy::kAdjusted;
  if (parts.size() <= 2 || !overlap) return Reading{all};
  // Under Type II and III each effect and the error lie in the total, but effects overlap.
  double least = 0;
  for (const Interval& part : parts) least = std::max(least, part.low);
  return Reading{{least, kInfinite}, "Type II and III need not add up"};
}

void add_sums(std::vector<Relation>& table) {
  table.push_back({kSsTotal, "its parts", {kSumsOfSquares}, [](Row x, Set set, size_t) {
                     return total_of_parts(x, set);
                   }});
  table.push_back(
      {kSsTotal, "ss and ss_error", {kSumsOfSquares}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto ss = x[kSs];
         const auto error = x[kSsError];
         if (!ss && !error) return std::nullopt;
         const Interval both = sum(ss.value_or(point(0)), error.value_or(point(0)));
         if (ss && error && is_one_way(x, set)) return Reading{both};
         // Whatever the type, the total holds an effect and the error apart from one another.
         return Reading{{both.low, kInfinite}, kOtherFactors};
       }});
  table.push_back({kDfTotal, "its parts", {}, [](Row x, Set, size_t) -> MaybeReading {
                     const std::vector<Interval> parts = x.list(kDfParts);
                     if (parts.empty()) return std::nullopt;
                     return Reading{std::accumulate(parts.begin(), parts.end(), point(0), sum)};
                   }});
  table.push_back(
      {kDfTotal, "df1 and df2", {kSumsOfSquares}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto df1 = x[kDf1];
         const auto df2 = x[kDf2];
         if (!df1 && !df2) return std::nullopt;
         if (df1 && df2 && is_one_way(x, set)) return Reading{sum(*df1, *df2)};
         const Interval both = sum(df1.value_or(point(0)), df2.value_or(point(0)));
         return Reading{{both.low, kInfinite}, kOtherDf};
       }});
  table.push_back(of_figures(kMs, "ss and df1", false, quotient, kSs, kDf1));
  table.push_back(of_figures(kMsError, "ss_error and df2", false, quotient, kSsError, kDf2));
  table.push_back(of_figures(kSs, "ms and df1", true, product, kMs, kDf1));
  table.push_back(of_figures(kSsError, "ms_error and df2", true, product, kMsError, kDf2));
}

void add_f(std::vector<Relation>& table) {
  table.push_back(
      {kF, "the groups", {kTest, kDeviations}, [](Row x, Set set, size_t) -> MaybeReading {
         const auto delta = mean_difference(x, set);
         if (!delta || !is_one_or_absent(x.exact(kDf1))) return std::nullopt;
         return over_spread(x, set, [&](const ErrorRange& error) {
           return std::optional(square(quotient(*delta, error.value)));
         });
       }});
  table.push_back(of_figures(kF, "mean squares", false, quotient, kMs, kMsError));
  const auto f_of_sums = [](const Interval& ss, const Interval& error, const Interval& df1,
                            const Interval& df2) {
    return quotient(quotient(ss, df1), quotient(error, df2));
  };
  table.push_back(
      of_figures(kF, "sums of squares and df", false, f_of_sums, kSs, kSsError, kDf1, kDf2));
  table.push_back({kF, "t", {}, [](Row x, Set, size_t) -> MaybeReading {
                     const auto t = x[kT];
                     if (!t || !is_one_or_absent(x.exact(kDf1))) return std::nullopt;
                     return Reading{square(*t)};
                   }});
  const auto f_of_share = [](const Interval& share, const Interval& df1, const Interval& df2) {
    return over_corners(
        [](double s, double m, double n) { return s >= 1 ? kInfinite : s / m / ((1 - s) / n); },
        share, df1, df2);
  };
  table.push_back(of_figures(kF, "partial_eta_squared and df", true, f_of_share, kPartialEtaSquared,
                             kDf1, kDf2));
  const auto p_of_f = [](const Interval& f, const Interval& df1, const Interval& df2) {
    return over_corners(
        [](double at, double m, double n) {
          if (std::isinf(at)) return 0.0;
          const auto area = f_upper(at, m, n);
          return area ? area->p : std::nan("");
        },
        f, df1, df2);
  };
  table.push_back(of_figures(kP, "F and its df", false, p_of_f, kF, kDf1, kDf2));
}

}  // namespace

void add_variance_relations(std::vector<Relation>& table) {
  add_sums(table);
  add_f(table);
  add_eta(table);
}

}  // namespace assay::stats
