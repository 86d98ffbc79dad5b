// The standard error of two groups' difference, by each test.
#include "stats/audit/groups.h"

namespace assay::stats {
namespace {

using enum Figure;

constexpr std::string_view kNoCorrelation = "correlation not printed";
constexpr std::string_view kNoDeviations = "deviations not printed";
constexpr std::string_view kNoDf = "df not printed";

// Satterthwaite's degrees of freedom by u = (v_a / n_a) / (v_b / n_b): one peak, n_a + n_b - 2 at
// u = (n_a - 1) / (n_b - 1).
double welch_df(double u, double m_a, double m_b) {
  if (std::isinf(u)) return m_a;
  const double share = u / (u + 1);
  return 1 / (share * share / m_a + (1 - share) * (1 - share) / m_b);
}

Interval welch_df_range(const Spread& x) {
  const double m_a = x.n_a - 1;
  const double m_b = x.n_b - 1;
  const Interval u = quotient({x.sd_a.low * x.sd_a.low / x.n_a, x.sd_a.high * x.sd_a.high / x.n_a},
                              {x.sd_b.low * x.sd_b.low / x.n_b, x.sd_b.high * x.sd_b.high / x.n_b});
  if (!(u.low >= 0)) return {std::min(m_a, m_b), m_a + m_b};
  const double low = welch_df(u.low, m_a, m_b);
  const double high = welch_df(u.high, m_a, m_b);
  const double peak = m_a / m_b;
  return {std::min(low, high), u.low <= peak && peak <= u.high ? m_a + m_b : std::max(low, high)};
}

// sqrt(a^2 + b^2 - 2 r a b), convex in (a, b): largest at a corner, smallest on an edge.
Interval difference_sd(const Interval& a, const Interval& b, const Interval& r) {
  const auto at = [](double x, double y, double c) {
    return std::sqrt(std::max(0.0, x * x + y * y - 2 * c * x * y));
  };
  Interval range = over_corners([&](double x, double y) { return at(x, y, r.low); }, a, b);
  range.low = range.high;
  for (const double y : {b.low, b.high}) {
    range.low = std::min(range.low, at(std::clamp(r.high * y, a.low, a.high), y, r.high));
  }
  for (const double x : {a.low, a.high}) {
    range.low = std::min(range.low, at(x, std::clamp(r.high * x, b.low, b.high), r.high));
  }
  return range;
}

std::optional<ErrorRange> paired_error(const Figures& figures, const Spread& x) {
  if (x.n_a != x.n_b) return std::nullopt;
  const double scale = 1 / std::sqrt(x.n_a);
  const Interval df = point(x.n_a - 1);
  const auto scaled = [&](const Interval& sd) { return product(sd, point(scale)); };
  if (const auto sd = figures[kSdDiff]) return ErrorRange{scaled(*sd), df};
  if (const auto r = figures[kCorrelation]) {
    return ErrorRange{scaled(difference_sd(x.sd_a, x.sd_b, *r)), df};
  }
  return ErrorRange{scaled(difference_sd(x.sd_a, x.sd_b, {-1, 1})), df, kNoCorrelation};
}

}  // namespace

std::optional<Interval> sample_sd(const Figures& figures, const ConventionSet& set, Figure sd,
                                  Figure n) {
  const auto printed = figures[sd];
  const auto count = figures.exact(n);
  if (!printed || !count || *count < 2) return std::nullopt;
  if (set.get<Divisor>(Axis::kDeviations) == Divisor::kSample) return printed;
  return product(*printed, point(std::sqrt(*count / (*count - 1))));
}

std::optional<Spread> spread_of(const Figures& figures, const ConventionSet& set) {
  const auto sd_a = sample_sd(figures, set, kSdA, kNA);
  const auto sd_b = sample_sd(figures, set, kSdB, kNB);
  if (!sd_a || !sd_b) return std::nullopt;
  return Spread{*sd_a, *sd_b, *figures.exact(kNA), *figures.exact(kNB)};
}

std::optional<Spread> spread_of_differences(const Figures& figures) {
  const auto n = figures.exact(figures.has(kNA) ? kNA : kNB);
  if (!figures.has(kSdDiff) || !n || *n < 2) return std::nullopt;
  return Spread{point(0), point(0), *n, figures.exact(kNB).value_or(*n)};
}

Interval pooled_sd(const Spread& x, Pooling pooling) {
  const double w_a = pooling == Pooling::kByDf ? x.n_a - 1 : pooling == Pooling::kByN ? x.n_a : 1;
  const double w_b = pooling == Pooling::kByDf ? x.n_b - 1 : pooling == Pooling::kByN ? x.n_b : 1;
  return over_corners(
      [=](double a, double b) { return std::sqrt((w_a * a * a + w_b * b * b) / (w_a + w_b)); },
      x.sd_a, x.sd_b);
}

std::optional<ErrorRange> error_of(const Figures& figures, const ConventionSet& set,
                                   const Spread& x) {
  const auto unpooled = [&] {
    return over_corners(
        [&](double a, double b) { return std::sqrt(a * a / x.n_a + b * b / x.n_b); }, x.sd_a,
        x.sd_b);
  };
  const auto pooled = [&] {
    return product(pooled_sd(x, Pooling::kByDf), point(std::sqrt(1 / x.n_a + 1 / x.n_b)));
  };
  switch (set.test()) {
    case TestKind::kWelch: {
      Interval df = welch_df_range(x);
      if (set.get<DfRounding>(Axis::kDfRounding) == DfRounding::kUsed) {
        df = {std::floor(df.low), std::floor(df.high)};
      }
      return ErrorRange{unpooled(), df};
    }
    case TestKind::kStudent:
      return ErrorRange{pooled(), point(x.n_a + x.n_b - 2)};
    case TestKind::kPaired:
      return paired_error(figures, x);
    case TestKind::kOneSample:
      return ErrorRange{product(x.sd_a, point(1 / std::sqrt(x.n_a))), point(x.n_a - 1)};
    case TestKind::kZ:
      return ErrorRange{unpooled(), point(kInfinite)};
    case TestKind::kZPooled:
      return ErrorRange{pooled(), point(kInfinite)};
    default:
      return std::nullopt;
  }
}

std::optional<Interval> mean_difference(const Figures& figures, const ConventionSet& set) {
  const auto a = figures[kMeanA];
  const auto b = figures[set.test() == TestKind::kOneSample ? kMu : kMeanB];
  return a && b ? std::optional(difference(*a, *b)) : std::nullopt;
}

std::optional<Interval> printed_df(const Figures& figures) {
  auto df = figures[kDf];
  if (df && df->low < df->high && figures.is_integer(kDf)) df->high = df->low + 1.5;
  if (df) df->low = std::max(df->low, 1e-9);
  return df;
}

DfRange df_by_n(const Figures& figures, const ConventionSet& set) {
  const TestKind test = set.test();
  if (test == TestKind::kZ || test == TestKind::kZPooled) return {point(kInfinite)};
  if (const auto df = printed_df(figures)) return {*df};
  const auto a = figures.exact(kNA);
  const auto b = figures.exact(kNB);
  if ((test == TestKind::kPaired || test == TestKind::kOneSample) && a && *a > 1) {
    return {point(*a - 1)};
  }
  if (!a || !b || *a < 2 || *b < 2) return {{1, kInfinite}, kNoDf};
  const double most = *a + *b - 2;
  if (test == TestKind::kWelch) return {{std::min(*a, *b) - 1, most}, kNoDeviations};
  return {point(most)};
}

}  // namespace assay::stats
