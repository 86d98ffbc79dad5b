// Elimination of both factors' levels, the many by themselves and the few one by one.
#include "stats/hypotheses/additive_model.h"

#include <algorithm>

namespace assay::stats {
namespace {

size_t levels(std::span<const AnovaCell> cells, size_t AnovaCell::*level) {
  size_t count = 0;
  for (const AnovaCell& cell : cells) count = std::max(count, cell.*level + 1);
  return count;
}

}  // namespace

AdditiveModel::AdditiveModel(std::span<const AnovaCell> cells) {
  const size_t of_a = levels(cells, &AnovaCell::a);
  const size_t of_b = levels(cells, &AnovaCell::b);
  const bool a_is_major = of_a >= of_b;
  majors_ = std::max(of_a, of_b);
  minors_ = std::min(of_a, of_b);
  major_weights_.assign(majors_, 0);
  heaviest_.assign(majors_, cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto weight = static_cast<double>(cells[i].values.n);
    const size_t major = a_is_major ? cells[i].a : cells[i].b;
    cells_.push_back({major, a_is_major ? cells[i].b : cells[i].a, weight});
    major_weights_[major] += weight;
    size_t& heaviest = heaviest_[major];
    if (heaviest == cells.size() || weight > cells_[heaviest].weight) heaviest = i;
  }
  join();
  eliminate();
}

double AdditiveModel::cost(std::span<const AnovaCell> cells) {
  const auto few =
      static_cast<double>(std::min(levels(cells, &AnovaCell::a), levels(cells, &AnovaCell::b)));
  return static_cast<double>(cells.size()) * few / 2 + few * few * few / 6;
}

// The edges that eliminating each major level leaves among the minor levels of its cells.
void AdditiveModel::join() {
  edges_.assign(minors_ * minors_, 0);
  std::vector<std::vector<const Cell*>> of_major(majors_);
  for (const Cell& cell : cells_) of_major[cell.major].push_back(&cell);
  for (size_t major = 0; major < majors_; ++major) {
    for (const Cell* one : of_major[major]) {
      const double share = one->weight / major_weights_[major];
      for (const Cell* other : of_major[major]) {
        if (other->minor < one->minor) edge(one->minor, other->minor) += share * other->weight;
      }
    }
  }
}

void AdditiveModel::eliminate() {
  totals_.assign(minors_, 0);
  for (size_t k = minors_; k-- > 1;) {
    for (size_t j = 0; j < k; ++j) totals_[k] += edge(k, j);
    if (!(totals_[k] > 0)) {
      connected_ = false;
      return;
    }
    for (size_t i = 1; i < k; ++i) {
      const double share = edge(k, i) / totals_[k];
      if (share == 0) continue;
      for (size_t j = 0; j < i; ++j) edge(i, j) += share * edge(k, j);
    }
  }
}

// Distances are taken from the heaviest cell: where it has nearly all of its level's weight, it
// lies so close to the mean that a difference from that would have no digits.
void AdditiveModel::take_out_major_means(std::vector<double>& y) const {
  std::vector<double> center(majors_);
  for (size_t major = 0; major < majors_; ++major) center[major] = y[heaviest_[major]];
  std::vector<double> sums(majors_, 0);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] -= center[cells_[i].major];
    sums[cells_[i].major] += cells_[i].weight * y[i];
  }
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] -= sums[cells_[i].major] / major_weights_[cells_[i].major];
  }
}

// The minor factor's effects on y, from which take_out_major_means() took the other's; the first
// level's is 0.
std::vector<double> AdditiveModel::minor_effects(const std::vector<double>& y) const {
  std::vector<double> sums(minors_, 0);
  for (size_t i = 0; i < y.size(); ++i) sums[cells_[i].minor] += cells_[i].weight * y[i];
  for (size_t k = minors_; k-- > 1;) {
    for (size_t j = 0; j < k; ++j) sums[j] += sums[k] * (edge(k, j) / totals_[k]);
  }
  std::vector<double> effects(minors_, 0);
  for (size_t k = 1; k < minors_; ++k) {
    double sum = sums[k];
    for (size_t j = 0; j < k; ++j) sum += edge(k, j) * effects[j];
    effects[k] = sum / totals_[k];
  }
  return effects;
}

std::vector<double> AdditiveModel::residuals(std::vector<double> y) const {
  for (int pass = 0; pass < 2; ++pass) {  // the second takes out the rounding of the first
    take_out_major_means(y);
    const std::vector<double> effects = minor_effects(y);
    for (size_t i = 0; i < y.size(); ++i) y[i] -= effects[cells_[i].minor];
  }
  take_out_major_means(y);
  return y;
}

std::vector<double> less_level_means(std::span<const AnovaCell> cells, size_t AnovaCell::*level,
                                     std::vector<double> y) {
  std::vector<double> sums(levels(cells, level), 0);
  std::vector<double> weights(sums.size(), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    const auto weight = static_cast<double>(cells[i].values.n);
    sums[cells[i].*level] += weight * y[i];
    weights[cells[i].*level] += weight;
  }
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] -= sums[cells[i].*level] / weights[cells[i].*level];
  }
  return y;
}

}  // namespace assay::stats
