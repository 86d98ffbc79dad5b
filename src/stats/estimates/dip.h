// Hartigan's dip: a test of one mode, and the chance that a sample of one mode dips as far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace assay::stats {

// The dip (Hartigan and Hartigan 1985): the largest distance of the empirical distribution function
// from the nearest one of a single mode, whatever its shape. Algorithm AS 217 (P. M. Hartigan 1985)
// with Maechler's corrections (R package diptest). At least 1 / 2n, and that where n < 4 or every
// value is the same. O(n).
double dip(std::span<const double> sorted);

// Chances of a dip under one mode. The reference is the uniform distribution, which dips furthest
// of all that have one mode (asymptotically), so that others are called bimodal less often:
// simulated once for each size asked about, with a fixed seed. Beyond the 1 % point, which the
// simulation knows well, ln p goes on linearly in the dip's square, as the tails of suprema of
// Gaussian processes do. Sizes above 40 are simulated in steps, the next larger one standing for
// those below it, and from the largest step on sqrt(n) times the dip has the distribution that it
// has there. Not for several threads at once.
class DipTest {
 public:
  // p of a dip of n values; n may be an effective size, below the number of values. It is 1 where n
  // < 4, and where the dip is so small that p is above 0.1.
  double p(double dip, size_t n);

 private:
  static constexpr size_t kDraws = 4000;
  const std::vector<double>& null_of(size_t n);
  std::map<size_t, std::vector<double>> nulls_;  // by size: sqrt(n) dip, ascending
};

}  // namespace assay::stats
