// Least squares for a two-way table without interaction: an effect of each level of both factors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stats/hypotheses/anova.h"

namespace assay::stats {

// Weighted least squares of an additive model of two factors: cells differ in their levels, each
// has n >= 1 and weighs n.
//
// The factor with more levels is eliminated by itself (its levels never share a cell), so that the
// equations left are as many as the other factor has levels. They are those of a weighted graph
// (levels joined by the cells that they share), and eliminating a node by sums of its edges,
// without a subtraction (Grassmann, Taksar and Heyman 1985), keeps all digits however unequal the
// weights.
class AdditiveModel {
 public:
  explicit AdditiveModel(std::span<const AnovaCell> cells);

  // About how many multiplications the constructor costs.
  static double cost(std::span<const AnovaCell> cells);

  // True if cells join all levels: otherwise effects of one factor can't be told from the other's.
  bool connected() const { return connected_; }
  // y less the best effects of both factors; `y` and the result: [cell]. Only if connected.
  std::vector<double> residuals(std::vector<double> y) const;

 private:
  struct Cell {
    size_t major = 0;  // level of the factor with more levels
    size_t minor = 0;
    double weight = 0;
  };

  double& edge(size_t i, size_t j) { return edges_[i * minors_ + j]; }
  double edge(size_t i, size_t j) const { return edges_[i * minors_ + j]; }
  void join();
  void eliminate();
  void take_out_major_means(std::vector<double>& y) const;
  std::vector<double> minor_effects(const std::vector<double>& y) const;

  std::vector<Cell> cells_;
  size_t majors_ = 0;
  size_t minors_ = 0;
  std::vector<double> major_weights_;
  std::vector<size_t> heaviest_;  // cell of the major level
  std::vector<double> edges_;     // [minor, minor], below the diagonal; then as eliminated
  std::vector<double> totals_;    // of the edges to lower nodes, when the node is eliminated
  bool connected_ = true;
};

// The same values less their weighted means by level of one factor.
std::vector<double> less_level_means(std::span<const AnovaCell> cells, size_t AnovaCell::*level,
                                     std::vector<double> y);

}  // namespace assay::stats
