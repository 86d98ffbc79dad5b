// The dip by greatest convex minorant and least concave majorant, and its null distribution.
#include "stats/estimates/dip.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace assay::stats {
namespace {

constexpr size_t kSteps[] = {50, 60, 80, 100, 150, 200, 300, 400};
constexpr size_t kEverySize = 40;

size_t simulated_size(size_t n) {
  if (n <= kEverySize) return n;
  const auto* step = std::ranges::lower_bound(kSteps, n);
  return step != std::end(kSteps) ? *step : kSteps[std::size(kSteps) - 1];
}

// Below this sqrt(n) times the dip is in more than a tenth of uniform samples, of any size.
constexpr double kSmall = 0.38;

// Places count from 1, as in the published algorithm; x(i) is the i-th smallest.
class Dip {
 public:
  explicit Dip(std::span<const double> sorted)
      : sorted_(sorted), n_(sorted.size()), below_(n_ + 1), above_(n_ + 1) {}

  double compute() {
    if (n_ < 4 || sorted_.front() == sorted_.back()) return 1 / (2 * static_cast<double>(n_));
    fit_hulls();
    double dip = 1;
    for (low_ = 1, high_ = n_;;) {
      list_corners();
      const double distance = between_hulls();
      if (distance < dip) break;
      dip = std::max({dip, of_minorant(), of_majorant()});
      if (low_ == minorant_[at_minorant_] && high_ == majorant_[at_majorant_]) break;
      low_ = minorant_[at_minorant_];
      high_ = majorant_[at_majorant_];
    }
    return dip / (2 * static_cast<double>(n_));
  }

 private:
  double x(size_t i) const { return sorted_[i - 1]; }
  static double count(size_t from, size_t to) {
    return static_cast<double>(to) - static_cast<double>(from);
  }

  // below_[j]: the corner before j of the convex minorant of places 1 .. j; above_[k]: the one
  // after k of the concave majorant of k .. n.
  void fit_hulls() {
    below_[1] = 1;
    for (size_t j = 2; j <= n_; ++j) {
      for (below_[j] = j - 1;;) {
        const size_t a = below_[j];
        const size_t b = below_[a];
        if (a == 1 || (x(j) - x(a)) * count(b, a) < (x(a) - x(b)) * count(a, j)) break;
        below_[j] = b;
      }
    }
    above_[n_] = n_;
    for (size_t k = n_ - 1; k >= 1; --k) {
      for (above_[k] = k + 1;;) {
        const size_t a = above_[k];
        const size_t b = above_[a];
        if (a == n_ || (x(a) - x(k)) * count(a, b) < (x(b) - x(a)) * count(k, a)) break;
        above_[k] = b;
      }
    }
  }

  // Lists the hulls' corners between low and high: the minorant's from high to low, the majorant's
  // from low to high.
  void list_corners() {
    minorant_ = {high_};
    while (minorant_.back() > low_) minorant_.push_back(below_[minorant_.back()]);
    majorant_ = {low_};
    while (majorant_.back() < high_) majorant_.push_back(above_[majorant_.back()]);
  }

  // The largest distance between the hulls, and the corners where it is.
  double between_hulls() {
    at_minorant_ = minorant_.size() - 1;
    at_majorant_ = majorant_.size() - 1;
    if (minorant_.size() == 2 && majorant_.size() == 2) return 1;
    double largest = 0;
    size_t i = minorant_.size() - 2;
    size_t v = 1;
    do {
      const size_t g = minorant_[i];
      const size_t l = majorant_[v];
      if (g > l) {
        const size_t before = minorant_[i + 1];
        const double distance =
            count(before, l) + 1 - (x(l) - x(before)) * count(before, g) / (x(g) - x(before));
        if (distance >= largest) {
          largest = distance;
          at_minorant_ = i + 1;
          at_majorant_ = v;
        }
        ++v;
      } else {
        const size_t before = majorant_[v - 1];
        const double distance =
            (x(g) - x(before)) * count(before, l) / (x(l) - x(before)) - (count(before, g) - 1);
        if (distance >= largest) {
          largest = distance;
          at_minorant_ = i;
          at_majorant_ = v;
        }
        if (i > 0) --i;
      }
      v = std::min(v, majorant_.size() - 1);
    } while (minorant_[i] != majorant_[v]);
    return largest;
  }

  double of_minorant() const {
    double largest = 0;
    for (size_t j = at_minorant_; j + 1 < minorant_.size(); ++j) {
      const size_t from = minorant_[j + 1];
      const size_t to = minorant_[j];
      double most = 1;
      if (to - from > 1 && x(to) != x(from)) {
        const double slope = count(from, to) / (x(to) - x(from));
        for (size_t i = from; i <= to; ++i) {
          most = std::max(most, count(from, i) + 1 - (x(i) - x(from)) * slope);
        }
      }
      largest = std::max(largest, most);
    }
    return largest;
  }

  double of_majorant() const {
    double largest = 0;
    for (size_t j = at_majorant_; j + 1 < majorant_.size(); ++j) {
      const size_t from = majorant_[j];
      const size_t to = majorant_[j + 1];
      double most = 1;
      if (to - from > 1 && x(to) != x(from)) {
        const double slope = count(from, to) / (x(to) - x(from));
        for (size_t i = from; i <= to; ++i) {
          most = std::max(most, (x(i) - x(from)) * slope - (count(from, i) - 1));
        }
      }
      largest = std::max(largest, most);
    }
    return largest;
  }

  std::span<const double> sorted_;
  size_t n_;
  std::vector<size_t> below_;
  std::vector<size_t> above_;
  size_t low_ = 1;
  size_t high_ = 1;
  std::vector<size_t> minorant_;
  std::vector<size_t> majorant_;
  size_t at_minorant_ = 0;
  size_t at_majorant_ = 0;
};

}  // namespace

double dip(std::span<const double> sorted) {
  if (sorted.empty()) return 0;
  return Dip(sorted).compute();
}

const std::vector<double>& DipTest::null_of(size_t n) {
  const auto [known, fresh] = nulls_.try_emplace(n);
  if (!fresh) return known->second;
  Random random(0xD1B, n);
  std::vector<double> sample(n);
  known->second.reserve(kDraws);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    for (double& x : sample) x = random.uniform();
    std::ranges::sort(sample);
    known->second.push_back(std::sqrt(static_cast<double>(n)) * stats::dip(sample));
  }
  std::ranges::sort(known->second);
  return known->second;
}

double DipTest::p(double dip, size_t n) {
  if (n < 4) return 1;
  const double found = dip * std::sqrt(static_cast<double>(n));
  if (found < kSmall) return 1;
  const std::vector<double>& null = null_of(simulated_size(n));
  const auto at = [&](double share) {
    return null[static_cast<size_t>((1 - share) * static_cast<double>(null.size()))];
  };
  const double tenth = at(0.1);
  const double hundredth = at(0.01);
  if (found <= hundredth || hundredth <= tenth) {
    const auto above = null.end() - std::ranges::lower_bound(null, found);
    return static_cast<double>(above + 1) / static_cast<double>(null.size() + 1);
  }
  const double way =
      (found * found - hundredth * hundredth) / (hundredth * hundredth - tenth * tenth);
  return 0.01 * std::pow(0.1, way);
}

}  // namespace assay::stats
