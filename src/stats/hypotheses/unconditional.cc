// Unconditional exact tests: the extreme tables, and the largest probability that they get.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stats/hypotheses/hypergeometric.h"
#include "stats/hypotheses/proportions.h"

namespace assay::stats {
namespace {

constexpr double kMostTables = 4e6;
constexpr int kGrid = 400;

// True for the tables (x_a, x_b) that are as extreme as the one at hand.
using Region = std::vector<std::vector<bool>>;  // [x_a][x_b]

std::vector<double> log_choose(int64_t n) {
  std::vector<double> logs(static_cast<size_t>(n + 1));
  for (int64_t k = 0; k < n; ++k) {
    logs[static_cast<size_t>(k + 1)] =
        logs[static_cast<size_t>(k)] +
        std::log(static_cast<double>(n - k) / static_cast<double>(k + 1));
  }
  return logs;
}

// The chance of a region as a function of the common proportion.
class Chance {
 public:
  Chance(const Region& region, int64_t n_a, int64_t n_b)
      : choose_a_(log_choose(n_a)), choose_b_(log_choose(n_b)) {
    // Runs of extreme x_b, so that a chance costs n_a + n_b and the number of runs.
    for (size_t x = 0; x < region.size(); ++x) {
      for (size_t y = 0; y < region[x].size();) {
        size_t end = y;
        while (end < region[x].size() && region[x][end]) ++end;
        if (end > y) runs_.push_back({x, y, end});
        y = std::max(end, y + 1);
      }
    }
  }

  double at(double p) const {
    const std::vector<double> of_a = masses(choose_a_, p);
    const std::vector<double> of_b = masses(choose_b_, p);
    std::vector<double> below(of_b.size() + 1);
    for (size_t y = 0; y < of_b.size(); ++y) below[y + 1] = below[y] + of_b[y];
    std::vector<double> beyond(of_b.size() + 1);  // from the other end, for small upper tails
    for (size_t y = of_b.size(); y-- > 0;) beyond[y] = beyond[y + 1] + of_b[y];
    double sum = 0;
    for (const Run& run : runs_) {
      const double mass = below[run.begin] < beyond[run.end] ? below[run.end] - below[run.begin]
                                                             : beyond[run.begin] - beyond[run.end];
      sum += of_a[run.x] * mass;
    }
    return sum;
  }

 private:
  struct Run {
    size_t x, begin, end;
  };

  static std::vector<double> masses(const std::vector<double>& choose, double p) {
    const auto n = static_cast<double>(choose.size() - 1);
    std::vector<double> mass;
    for (size_t k = 0; k < choose.size(); ++k) {
      const auto successes = static_cast<double>(k);
      mass.push_back(
          std::exp(choose[k] + successes * std::log(p) + (n - successes) * std::log1p(-p)));
    }
    return mass;
  }

  std::vector<double> choose_a_;
  std::vector<double> choose_b_;
  std::vector<Run> runs_;
};

// The largest chance: the best of a grid, then golden sections around its best places.
UnconditionalTest maximise(const Chance& chance) {
  std::vector<double> grid(kGrid + 1);
  const auto place = [](int i) {  // denser at the ends, where crash rates are
    const double s = std::sin(std::numbers::pi / 2 * i / kGrid);
    return s * s;
  };
  for (int i = 1; i < kGrid; ++i) grid[static_cast<size_t>(i)] = chance.at(place(i));
  const double best = std::ranges::max(grid);
  UnconditionalTest result;
  result.p = 0;
  for (int i = 1; i < kGrid; ++i) {
    const auto k = static_cast<size_t>(i);
    if (grid[k] < grid[k - 1] || grid[k] < grid[k + 1] || grid[k] < 0.9 * best) continue;
    double low = place(i - 1);
    double high = place(i + 1);
    constexpr double kGolden = 0.6180339887498949;
    for (int step = 0; step < 60 && high - low > 1e-12; ++step) {
      const double left = high - kGolden * (high - low);
      const double right = low + kGolden * (high - low);
      if (chance.at(left) < chance.at(right)) {
        low = left;
      } else {
        high = right;
      }
    }
    const double middle = low + (high - low) / 2;
    const double at_middle = chance.at(middle);
    const double p = std::max(at_middle, grid[k]);
    if (p > result.p) {
      result.p = std::min(1.0, p);
      result.at = at_middle >= grid[k] ? middle : place(i);
    }
  }
  return result;
}

bool is_testable(const Proportion& a, const Proportion& b) {
  return a.n > 0 && b.n > 0 && a.successes >= 0 && a.successes <= a.n && b.successes >= 0 &&
         b.successes <= b.n &&
         (static_cast<double>(a.n) + 1) * (static_cast<double>(b.n) + 1) <= kMostTables;
}

// Pooled z of a's proportion less b's; 0 where all or none are successes.
double pooled_z(int64_t x_a, int64_t n_a, int64_t x_b, int64_t n_b) {
  const auto a = static_cast<double>(n_a);
  const auto b = static_cast<double>(n_b);
  const double pooled = static_cast<double>(x_a + x_b) / (a + b);
  const double variance = pooled * (1 - pooled) * (1 / a + 1 / b);
  if (!(variance > 0)) return 0;
  return (static_cast<double>(x_a) / a - static_cast<double>(x_b) / b) / std::sqrt(variance);
}

template <typename F>
Region region_of(const Proportion& a, const Proportion& b, const F& is_extreme) {
  Region region(static_cast<size_t>(a.n + 1), std::vector<bool>(static_cast<size_t>(b.n + 1)));
  for (int64_t x = 0; x <= a.n; ++x) {
    for (int64_t y = 0; y <= b.n; ++y) {
      region[static_cast<size_t>(x)][static_cast<size_t>(y)] = is_extreme(x, y);
    }
  }
  return region;
}

// One-sided by Fisher's p of "a is larger".
UnconditionalTest boschloo_greater(const Proportion& a, const Proportion& b) {
  // Fisher's p of every table, a margin at a time.
  std::vector<std::vector<double>> log_p(static_cast<size_t>(a.n + 1),
                                         std::vector<double>(static_cast<size_t>(b.n + 1)));
  for (int64_t successes = 0; successes <= a.n + b.n; ++successes) {
    const Hypergeometric tables(a.n, b.n, successes);
    const std::vector<double> tails = tables.log_upper_tails();
    for (int64_t x = tables.first(); x <= tables.last(); ++x) {
      log_p[static_cast<size_t>(x)][static_cast<size_t>(successes - x)] =
          tails[static_cast<size_t>(x - tables.first())];
    }
  }
  const double limit = log_p[static_cast<size_t>(a.successes)][static_cast<size_t>(b.successes)];
  const double slack = 1e-13 * (1 + std::abs(limit));
  const Region region = region_of(a, b, [&](int64_t x, int64_t y) {
    return log_p[static_cast<size_t>(x)][static_cast<size_t>(y)] <= limit + slack;
  });
  UnconditionalTest test = maximise(Chance(region, a.n, b.n));
  test.statistic = std::exp(std::min(0.0, limit));
  return test;
}

}  // namespace

std::optional<UnconditionalTest> barnard_exact(const Proportion& a, const Proportion& b,
                                               Side side) {
  const int64_t successes = a.successes + b.successes;
  if (!is_testable(a, b) || successes == 0 || successes == a.n + b.n) return std::nullopt;
  const double z = pooled_z(a.successes, a.n, b.successes, b.n);
  const double slack = 1e-12 * (1 + std::abs(z));
  const Region region = region_of(a, b, [&](int64_t x, int64_t y) {
    const double here = pooled_z(x, a.n, y, b.n);
    if (side == Side::kGreater) return here >= z - slack;
    if (side == Side::kLess) return here <= z + slack;
    return std::abs(here) >= std::abs(z) - slack;
  });
  UnconditionalTest test = maximise(Chance(region, a.n, b.n));
  test.statistic = z;
  return test;
}

std::optional<UnconditionalTest> boschloo_exact(const Proportion& a, const Proportion& b,
                                                Side side) {
  if (!is_testable(a, b)) return std::nullopt;
  const auto flipped = [](const Proportion& x) { return Proportion{x.n - x.successes, x.n}; };
  if (side == Side::kGreater) return boschloo_greater(a, b);
  const auto less = boschloo_greater(flipped(a), flipped(b));
  if (side == Side::kLess) return less;
  const auto greater = boschloo_greater(a, b);
  UnconditionalTest both = less.p < greater.p ? less : greater;
  both.p = std::min(1.0, 2 * both.p);
  return both;
}

}  // namespace assay::stats
