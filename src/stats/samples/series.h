// Structure of an ordered series of repetitions: dependence between neighbours, and the places
// where its level changes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay::stats {

// r_k = sum_t (x_t - mean)(x_(t+k) - mean) / sum_t (x_t - mean)^2, divided by n at every lag (Box
// and Jenkins 1976), k = 0..max_lag. Absent for n < 2, max_lag >= n, or a constant series.
std::optional<std::vector<double>> autocorrelation(std::span<const double> series, size_t max_lag);

// r_1 with its small-sample bias taken off, (n r_1 + 1) / (n - 4) (Kendall 1954), and the standard
// error that it has if the series is white noise: n / (n - 4) times that of r_1, whose variance
// is then (n^4 - 4n^3 + 3n^2 + 4n - 4) / ((n + 1) n^2 (n - 1)^2) (Dufour and Roy 1985). Absent for
// n < 6 or a constant series.
struct Lag1 {
  double r = 0;
  double error = 0;
};
std::optional<Lag1> lag1_autocorrelation(std::span<const double> series);

// Ljung and Box (1978): Q = n (n+2) sum_k r_k^2 / (n - k), chi-square with `lags` degrees of
// freedom if the series is white noise. Absent where autocorrelation is, or for lags < 1.
struct PortmanteauTest {
  double q = 0;
  double p = 1;
  double log_p = 0;
};
std::optional<PortmanteauTest> ljung_box(std::span<const double> series, size_t lags);

// n / tau, tau = 1 + 2 sum_k r_k, the sum cut by Geyer's initial positive and monotone sequence
// (1992): pairs r_2m + r_2m+1 as long as they are positive, none larger than the one before. At
// most n: an alternating series doesn't narrow an interval. The standard error of the mean of such
// a series is sqrt(n / size) times the one that assumes independence. Absent for n < 4 or a
// constant series. O(n times the lags that count).
struct EffectiveSize {
  double size = 0;
  double tau = 1;
};
std::optional<EffectiveSize> effective_sample_size(std::span<const double> series);

// Pettitt (1979): the split that separates a series best by ranks: K = max over t of
// |2 (ranks 1..t summed) - t (n+1)|, p = 2 exp(-6 K^2 / (n^3 + n^2)), an approximation that is good
// for p < 0.5; at most 1. Robust to single slow samples. Absent for n < 4 or a constant series.
struct ChangePoint {
  size_t index = 0;  // the first value of the new level
  double k = 0;
  double p = 1;
  double log_p = 0;
};
std::optional<ChangePoint> pettitt(std::span<const double> series);

// Binary segmentation: splits where Pettitt's test finds a change at level alpha, then each part
// again; parts of fewer than `least` values aren't split off. Ascending by index.
std::vector<ChangePoint> change_points(std::span<const double> series, double alpha = 0.01,
                                       size_t least = 5);

}  // namespace assay::stats
