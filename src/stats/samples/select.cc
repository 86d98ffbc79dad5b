// Counting and picking out, in vectors and without branches.
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

// Each value is stored whether kept or not: a branch would be mispredicted. AVX-512 moves the kept
// lanes together in a register; Highway's own Compress has a table for 64-bit lanes, which GCC
// copies for each vector, and its CompressStore takes AMD over a hundred cycles.
size_t keep(const double* values, size_t n, double low, double high, double* kept) {
  size_t count = 0;
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX3
  const hn::ScalableTag<double> d;
  const auto from = hn::Set(d, low);
  const auto to = hn::Set(d, high);
  static_assert(hn::MaxLanes(d) <= kKeepSlack);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, values + i);
    const auto inside = hn::And(hn::Ge(v, from), hn::Le(v, to));
    _mm512_storeu_pd(kept + count, _mm512_maskz_compress_pd(inside.raw, v.raw));
    count += hn::CountTrue(d, inside);
  }
#endif
  for (; i < n; ++i) {
    kept[count] = values[i];
    count += static_cast<size_t>(values[i] >= low) & static_cast<size_t>(values[i] <= high);
  }
  return count;
}

}  // namespace assay::stats::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::stats {
namespace {

HWY_EXPORT(keep);
HWY_EXPORT(count_below);
HWY_EXPORT(count_halves);

}  // namespace

KeptCounts keep_between(std::span<const double> values, double low, double high, double* kept) {
  KeptCounts counts;
  counts.kept = HWY_DYNAMIC_DISPATCH(keep)(values.data(), values.size(), low, high, kept);
  counts.below = HWY_DYNAMIC_DISPATCH(count_below)(values.data(), values.size(), low);
  return counts;
}

size_t count_below_in_halves(std::span<const double> values, double x) {
  return HWY_DYNAMIC_DISPATCH(count_halves)(values.data(), values.size(), x);
}

}  // namespace assay::stats
#endif
