// Drawing and applying resamples, in SIMD.
#include "stats/resamples/resamples.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stats/resamples/resamples.cc"
#include "hwy/foreach_target.h"  // must come first

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::stats::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One step of xoshiro128++ in every lane.
template <class D, class V>
HWY_INLINE V next_bits(D /*d*/, V& s0, V& s1, V& s2, V& s3) {
  const V bits = hn::Add(hn::RotateRight<32 - 7>(hn::Add(s0, s3)), s0);
  const V t = hn::ShiftLeft<9>(s1);
  s2 = hn::Xor(s2, s0);
  s3 = hn::Xor(s3, s1);
  s1 = hn::Xor(s1, s2);
  s0 = hn::Xor(s0, s3);
  s2 = hn::Xor(s2, t);
  s3 = hn::RotateRight<32 - 11>(s3);
  return bits;
}

// High halves of the products with n.
template <class D, class V>
HWY_INLINE V scaled(D d, V bits, V n) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, static_cast<uint32_t>(uint64_t{hn::GetLane(bits)} * hn::GetLane(n) >> 32));
#else
  const hn::RepartitionToWide<D> wide;
  const auto odd_bits = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, bits)));
  const auto even = hn::BitCast(d, hn::ShiftRight<32>(hn::MulEven(bits, n)));
  const auto odd = hn::BitCast(d, hn::MulEven(odd_bits, n));
  return hn::OddEven(odd, even);
#endif
}

void draw(const uint32_t* state, size_t n, uint8_t* counts) {
  const hn::CappedTag<uint32_t, kSlab> d;
  const size_t lanes = hn::Lanes(d);
  const auto size = hn::Set(d, static_cast<uint32_t>(n));
  HWY_ALIGN uint32_t drawn[kSlab];
  for (size_t first = 0; first < kSlab; first += lanes) {
    auto s0 = hn::LoadU(d, state + first);
    auto s1 = hn::LoadU(d, state + kSlab + first);
    auto s2 = hn::LoadU(d, state + 2 * kSlab + first);
    auto s3 = hn::LoadU(d, state + 3 * kSlab + first);
    uint8_t* column = counts + first;
    for (size_t i = 0; i < n; ++i) {
      hn::Store(scaled(d, next_bits(d, s0, s1, s2, s3), size), d, drawn);
      for (size_t lane = 0; lane < lanes; ++lane) ++column[drawn[lane] * kSlab + lane];
    }
  }
}

void sum(const uint8_t* counts, size_t n, const double* values, double* sums) {
  const hn::CappedTag<double, kSlab> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  for (size_t first = 0; first < kSlab; first += lanes) {
    auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
    for (size_t i = 0; i < n; ++i) {
      const auto c =
          hn::PromoteTo(d, hn::PromoteTo(d32, hn::LoadU(d8, counts + i * kSlab + first)));
      const double* x = values + i * kTile;
      a0 = hn::Add(a0, hn::Mul(c, hn::Set(d, x[0])));
      a1 = hn::Add(a1, hn::Mul(c, hn::Set(d, x[1])));
      a2 = hn::Add(a2, hn::Mul(c, hn::Set(d, x[2])));
      a3 = hn::Add(a3, hn::Mul(c, hn::Set(d, x[3])));
      a4 = hn::Add(a4, hn::Mul(c, hn::Set(d, x[4])));
      a5 = hn::Add(a5, hn::Mul(c, hn::Set(d, x[5])));
      a6 = hn::Add(a6, hn::Mul(c, hn::Set(d, x[6])));
      a7 = hn::Add(a7, hn::Mul(c, hn::Set(d, x[7])));
    }
    double* out = sums + first;
    hn::StoreU(a0, d, out);
    hn::StoreU(a1, d, out + kSlab);
    hn::StoreU(a2, d, out + 2 * kSlab);
    hn::StoreU(a3, d, out + 3 * kSlab);
    hn::StoreU(a4, d, out + 4 * kSlab);
    hn::StoreU(a5, d, out + 5 * kSlab);
    hn::StoreU(a6, d, out + 6 * kSlab);
    hn::StoreU(a7, d, out + 7 * kSlab);
  }
}

// A value's index in the resample's order is the number of values before which too few were drawn.
void places(const uint8_t* counts, size_t n, size_t place, uint32_t* at, uint32_t* after) {
  const hn::CappedTag<uint32_t, kSlab> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  const auto first_end = hn::Set(d, static_cast<uint32_t>(place + 1));
  const auto second_end = hn::Set(d, static_cast<uint32_t>(place + 2));
  const auto one = hn::Set(d, 1u);
  for (size_t first = 0; first < kSlab; first += lanes) {
    auto drawn = hn::Zero(d), before_first = drawn, before_second = drawn;
    for (size_t i = 0; i < n; ++i) {
      drawn = hn::Add(drawn, hn::PromoteTo(d, hn::LoadU(d8, counts + i * kSlab + first)));
      before_first = hn::Add(before_first, hn::IfThenElseZero(hn::Lt(drawn, first_end), one));
      before_second = hn::Add(before_second, hn::IfThenElseZero(hn::Lt(drawn, second_end), one));
    }
    hn::StoreU(before_first, d, at + first);
    hn::StoreU(before_second, d, after + first);
  }
}

}  // namespace assay::stats::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::stats {
namespace {

HWY_EXPORT(draw);
HWY_EXPORT(sum);
HWY_EXPORT(places);

}  // namespace

void draw_slab(uint64_t seed, size_t n, uint64_t slab, uint8_t* counts) {
  std::memset(counts, 0, n * kSlab);
  uint64_t mix = seed;
  mix = splitmix64(mix) ^ n;
  mix = splitmix64(mix) ^ slab;
  uint32_t state[4 * kSlab];
  for (size_t lane = 0; lane < kSlab; ++lane) {
    for (size_t word = 0; word < 4; word += 2) {
      const uint64_t bits = splitmix64(mix);
      state[word * kSlab + lane] = static_cast<uint32_t>(bits);
      state[(word + 1) * kSlab + lane] = static_cast<uint32_t>(bits >> 32);
    }
  }
  HWY_DYNAMIC_DISPATCH(draw)(state, n, counts);
}

void sum_slab(const uint8_t* counts, size_t n, const double* values, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum)(counts, n, values, sums);
}

void places_in_slab(const uint8_t* counts, size_t n, size_t place, uint32_t* at, uint32_t* after) {
  HWY_DYNAMIC_DISPATCH(places)(counts, n, place, at, after);
}

}  // namespace assay::stats
#endif
