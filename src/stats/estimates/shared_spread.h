// Variances of few values, helped by those of samples of the same kind.
//
// Three worker processes tell little of their own spread, but a run has many cells
// whose processes spread alike. The variances of one kind of cell are taken for draws around a
// common one (Smyth 2004, "Linear models and empirical Bayes methods", section 6.2): its size and
// the degrees of freedom that it is worth are estimated from the logarithms of all. Three things
// that he needn't mind are minded here. Ten variances of two degrees of freedom tell little of how
// much the cells differ, so the spread of their logarithms counts with two standard errors more
// (not of samples of two values, where nothing would be left to share). A process serves many
// cells, so that its slowness shows in all of them and their variances are one variance told again:
// the correlation of the cells' deviations says how many tellings are new. And a sample whose own
// variance is larger keeps it, since the mean of the others is no evidence against it.
// tests/calibration_few.cc has coverage and widths, docs/calibration.md the tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::stats {

// A sample's values less their mean. Values of two samples with one key were taken together.
struct KeyedDeviations {
  std::vector<int64_t> keys;
  std::vector<double> values;
};

struct SharedVariance {
  double variance = 0;  // at least the sample's own, which has the divisor n - 1
  double df = 0;        // degrees of freedom it is known with, at least the sample's n - 1
  bool stands_out = false;
};

// One for each sample, in their order. A sample has its own variance where it can't be told from no
// spread (one value, or all alike), where no other one is of use, and where it stands
// out: its variance over the common one is an F that chance reaches in less than 5 %. Two values
// may agree by chance, however wildly their cell spreads. So they have their own too where any
// sample stands out: the others may hide what that one shows.
std::vector<SharedVariance> share_variances(std::span<const KeyedDeviations> samples);

// Correlation of two samples' deviations, on average over all pairs of samples, at least 0, with
// one standard error of what no correlation would show. Fewer than two samples have none.
double shared_part(std::span<const KeyedDeviations> samples);

}  // namespace assay::stats
