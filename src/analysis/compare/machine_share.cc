// Analysis of covariance with the yardsticks as covariates.
#include "analysis/compare/machine_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {
namespace {

using Vector = std::array<double, kYardsticks>;
using Matrix = std::array<Vector, kYardsticks>;

// A yardstick whose logarithm varies by less didn't measure: standard deviation.
constexpr double kLeastVariation = 1e-6;
// Share of a yardstick's variance that the others have to leave unexplained for it to count as one
// of its own.
constexpr double kLeastOwn = 1e-6;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t k = 0; k < kYardsticks; ++k) sum += a[k] * b[k];
  return sum;
}

struct SideMeans {
  double log_figure = 0;
  Vector yardsticks{};
};

SideMeans means_of(const ProcessFigures& side) {
  SideMeans means;
  const auto count = static_cast<double>(side.size());
  for (size_t i = 0; i < side.size(); ++i) {
    means.log_figure += std::log(side.values_ms[i]) / count;
    for (size_t k = 0; k < kYardsticks; ++k) {
      means.yardsticks[k] += side.log_yardsticks[i][k] / count;
    }
  }
  return means;
}

// Sums of squares and products around the means of the side.
struct Sums {
  Matrix products{};  // of the yardsticks
  Vector with_figure{};
  double figure_square = 0;

  void add(const ProcessFigures& side, const SideMeans& means) {
    for (size_t i = 0; i < side.size(); ++i) {
      const double figure = std::log(side.values_ms[i]) - means.log_figure;
      Vector x;
      for (size_t k = 0; k < kYardsticks; ++k) {
        x[k] = side.log_yardsticks[i][k] - means.yardsticks[k];
      }
      for (size_t k = 0; k < kYardsticks; ++k) {
        for (size_t j = 0; j < kYardsticks; ++j) products[k][j] += x[k] * x[j];
        with_figure[k] += x[k] * figure;
      }
      figure_square += figure * figure;
    }
  }
};

// A = L L', by Cholesky.
class Factor {
 public:
  // Absent where a yardstick doesn't vary, or only as the others do. `count`: of processes.
  static std::optional<Factor> of(const Matrix& a, double count) {
    Factor factor;
    Matrix& lower = factor.lower_;
    for (size_t k = 0; k < kYardsticks; ++k) {
      for (size_t j = 0; j <= k; ++j) {
        double rest = a[k][j];
        for (size_t i = 0; i < j; ++i) rest -= lower[k][i] * lower[j][i];
        if (j < k) {
          lower[k][j] = rest / lower[j][j];
          continue;
        }
        const double least = kLeastVariation * kLeastVariation * count;
        if (a[k][k] < least || rest < kLeastOwn * a[k][k]) return std::nullopt;
        lower[k][k] = std::sqrt(rest);
      }
    }
    return factor;
  }

  // A^-1 b
  Vector solve(Vector b) const {
    for (size_t k = 0; k < kYardsticks; ++k) {
      for (size_t j = 0; j < k; ++j) b[k] -= lower_[k][j] * b[j];
      b[k] /= lower_[k][k];
    }
    for (size_t k = kYardsticks; k-- > 0;) {
      for (size_t j = k + 1; j < kYardsticks; ++j) b[k] -= lower_[j][k] * b[j];
      b[k] /= lower_[k][k];
    }
    return b;
  }

 private:
  Matrix lower_{};
};

bool can_be_fitted(const ProcessFigures& side) {
  return side.size() >= kFewestToAdjust && side.log_yardsticks.size() == side.size() &&
         std::ranges::all_of(side.values_ms, [](double ms) { return ms > 0 && std::isfinite(ms); });
}

}  // namespace

std::optional<MachineShare> take_machine_off(ProcessFigures& base, ProcessFigures& cand) {
  if (!can_be_fitted(base) || !can_be_fitted(cand)) return std::nullopt;
  const SideMeans left = means_of(base);
  const SideMeans right = means_of(cand);
  Sums sums;
  sums.add(base, left);
  sums.add(cand, right);
  const auto processes = static_cast<double>(base.size() + cand.size());
  const auto factor = Factor::of(sums.products, processes);
  if (!factor) return std::nullopt;
  const Vector slopes = factor->solve(sums.with_figure);
  const double freedom = processes - 2 - static_cast<double>(kYardsticks);
  const double unexplained = std::max(0.0, sums.figure_square - dot(slopes, sums.with_figure));
  const double explained = 1 - (unexplained / freedom) / (sums.figure_square / (processes - 2));
  if (!(explained > 0)) return std::nullopt;
  Vector apart;
  for (size_t k = 0; k < kYardsticks; ++k) apart[k] = right.yardsticks[k] - left.yardsticks[k];
  MachineShare share;
  std::ranges::transform(apart, share.yardsticks.begin(), [](double x) { return std::exp(x); });
  const double log_ratio = dot(slopes, apart);
  share.ratio = std::exp(log_ratio);
  share.explained = explained;
  const double of_slopes = unexplained / freedom * dot(apart, factor->solve(apart));
  const double missed = log_ratio * log_ratio * (1 - explained) / explained;
  share.error = {std::sqrt(of_slopes + missed), freedom};
  share.widening = (processes - 2) / freedom;
  for (ProcessFigures* side : {&base, &cand}) {
    for (size_t i = 0; i < side->size(); ++i) {
      Vector from_middle;
      for (size_t k = 0; k < kYardsticks; ++k) {
        from_middle[k] =
            side->log_yardsticks[i][k] - (left.yardsticks[k] + right.yardsticks[k]) / 2;
      }
      side->values_ms[i] *= std::exp(-dot(slopes, from_middle));
    }
  }
  return share;
}

std::optional<MachineShare> combined_share(const std::vector<MachineShare>& parts, size_t cells) {
  if (parts.empty()) return std::nullopt;
  const auto count = static_cast<double>(cells);
  Vector logs{};
  double log_ratio = 0;
  MachineShare whole;
  whole.error.df = std::numeric_limits<double>::infinity();
  for (const MachineShare& part : parts) {
    for (size_t k = 0; k < kYardsticks; ++k) {
      logs[k] += std::log(part.yardsticks[k]) / static_cast<double>(parts.size());
    }
    log_ratio += std::log(part.ratio) / count;
    whole.error.value += part.error.value / count;
    whole.explained += part.explained / static_cast<double>(parts.size());
    whole.error.df = std::min(whole.error.df, part.error.df);
    whole.widening = std::max(whole.widening, part.widening);
  }
  std::ranges::transform(logs, whole.yardsticks.begin(), [](double x) { return std::exp(x); });
  whole.ratio = std::exp(log_ratio);
  return whole;
}

}  // namespace assay
