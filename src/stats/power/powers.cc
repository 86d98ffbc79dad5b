// Powers and logarithms in vectors.
#include "stats/power/powers.h"

#include <cassert>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stats/power/powers.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::stats::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
size_t spread_in(D d, double* values, size_t begin, size_t end, double center, double exponent) {
  const auto c = hn::Set(d, center);
  const auto e = hn::Set(d, exponent);
  size_t i = begin;
  for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) {
    const auto ratios = hn::Div(hn::LoadU(d, values + i), c);
    hn::StoreU(hn::Mul(c, hn::Exp(d, hn::Mul(e, hn::Log(d, ratios)))), d, values + i);
  }
  return i;
}

void spread(double* values, size_t n, double center, double exponent) {
  const size_t done = spread_in(hn::ScalableTag<double>(), values, 0, n, center, exponent);
  spread_in(hn::CappedTag<double, 1>(), values, done, n, center, exponent);
}

template <class D>
size_t logs_in(D d, const double* above, const double* below, double* logs, size_t begin,
               size_t end) {
  size_t i = begin;
  for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) {
    const auto ratios = hn::Div(hn::LoadU(d, above + i), hn::LoadU(d, below + i));
    hn::StoreU(hn::Log(d, ratios), d, logs + i);
  }
  return i;
}

void logs_of_ratios(const double* above, const double* below, double* logs, size_t n) {
  const size_t done = logs_in(hn::ScalableTag<double>(), above, below, logs, 0, n);
  logs_in(hn::CappedTag<double, 1>(), above, below, logs, done, n);
}

}  // namespace assay::stats::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::stats {
namespace {

HWY_EXPORT(spread);
HWY_EXPORT(logs_of_ratios);

}  // namespace

void spread_on_logs(std::span<double> values, double center, double exponent) {
  HWY_DYNAMIC_DISPATCH(spread)(values.data(), values.size(), center, exponent);
}

void log_ratios(std::span<const double> above, std::span<const double> below,
                std::span<double> logs) {
  assert(above.size() == below.size() && above.size() == logs.size());
  HWY_DYNAMIC_DISPATCH(logs_of_ratios)(above.data(), below.data(), logs.data(), logs.size());
}

}  // namespace assay::stats
#endif
