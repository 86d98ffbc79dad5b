// Counting in vectors, picking out without branches.
#include "stats/samples/select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stats/samples/select.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::stats::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Those below x if `weight_ties` is 0; else twice those and the ones equal to x.
template <int weight_ties>
size_t count(const double* values, size_t n, double x) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  const auto at = hn::Set(d, x);
  size_t found = 0;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, values + i);
    found += hn::CountTrue(d, hn::Lt(v, at));
    if (weight_ties != 0) found += hn::CountTrue(d, hn::Le(v, at));
  }
  for (; i < n; ++i) {
    found += static_cast<size_t>(values[i] < x);
    if (weight_ties != 0) found += static_cast<size_t>(values[i] <= x);
  }
  return found;
}

size_t count_below(const double* values, size_t n, double x) {
  return count<0>(values, n, x);
}
size_t count_halves(const double* values, size_t n, double x) {
  return count<1>(values, n, x);
}

}  // namespace assay::stats::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::stats {
namespace {

HWY_EXPORT(count_below);
HWY_EXPORT(count_halves);

}  // namespace

KeptCounts keep_between(std::span<const double> values, double low, double high, double* kept) {
  KeptCounts counts;
  // Stored whether kept or not: a branch would be mispredicted, and a vector's compression of
  // 64-bit lanes is slower.
  for (const double x : values) {
    kept[counts.kept] = x;
    counts.kept += static_cast<size_t>(x >= low) & static_cast<size_t>(x <= high);
  }
  counts.below = HWY_DYNAMIC_DISPATCH(count_below)(values.data(), values.size(), low);
  return counts;
}

size_t count_below_in_halves(std::span<const double> values, double x) {
  return HWY_DYNAMIC_DISPATCH(count_halves)(values.data(), values.size(), x);
}

}  // namespace assay::stats
#endif
