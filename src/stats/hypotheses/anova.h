// Two-way analysis of variance with interaction, cells of any size.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stats/samples/summary.h"

namespace assay::stats {

// One combination of levels. Its mean, variance and n are all the analysis needs, so published
// figures serve as well as rows. n = 1 has no variance (0).
struct AnovaCell {
  size_t a = 0;  // level of the first factor, from 0
  size_t b = 0;  // of the second
  Moments values;
};

struct AnovaTerm {
  double sum_of_squares = 0;
  double df = 0;
  std::optional<double> f;  // absent without residual degrees of freedom or variance
  std::optional<double> p;
  std::optional<double> log_p;
  std::optional<double> eta_squared;          // SS / total SS
  std::optional<double> partial_eta_squared;  // SS / (SS + residual SS)
};

struct TwoWayAnova {
  AnovaTerm a;
  AnovaTerm b;
  AnovaTerm interaction;
  double residual_sum_of_squares = 0;
  double residual_df = 0;
  double total_sum_of_squares = 0;  // about the grand mean
};

enum class SumsOfSquares {
  kTypeII,   // each main effect given the other one, the interaction given both (Yates 1934)
  kTypeIII,  // each term given all others, effects coded to sum to 0
};

// F tests against the residual mean square of the full model. Assumes independent normal errors of
// one variance. Unbalanced cells are allowed; Type III is absent if a combination of levels has no
// values, and either is for fewer than 2 levels of a factor, a cell given twice, main effects
// that the cells can't tell apart, sums of squares that overflow, or a table too large. Terms
// without degrees of freedom (an interaction of which the cells hold nothing) have no F. Sums of
// squares are squared lengths of a term's part of the cell means, not differences of residuals.
// With c cells and k levels of the factor that has fewer, time is c k / 2 + k^3 / 6, so that
// thousands of levels beside a few cost nothing; memory is c + k^2.
std::optional<TwoWayAnova> two_way_anova(std::span<const AnovaCell> cells, SumsOfSquares type);

// True if two_way_anova() would take more than 4e9 multiplications (1,500 levels of both factors
// fit).
bool anova_is_too_large(std::span<const AnovaCell> cells);

// The cells of rows: levels a[i], b[i] of value y[i]. Absent if the variance of a cell of several
// values isn't a number (moments()).
std::optional<std::vector<AnovaCell>> anova_cells(std::span<const size_t> a,
                                                  std::span<const size_t> b,
                                                  std::span<const double> y);

}  // namespace assay::stats
