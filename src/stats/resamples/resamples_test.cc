// Draws are the same with every instruction set, uniform, and applied as their definition says.
#include "stats/resamples/resamples.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "stats/resamples/resample_order.h"

namespace assay::stats {
namespace {

std::vector<uint8_t> drawn(uint64_t seed, size_t n, uint64_t slab) {
  std::vector<uint8_t> counts(n * kSlab, 0xFF);
  draw_slab(seed, n, slab, counts.data());
  return counts;
}

std::vector<double> tile_of(size_t n) {
  Random random(n);
  std::vector<double> values(n * kTile);
  for (double& x : values) x = random.uniform() - 0.5;
  return values;
}

TEST(Resamples, DoNotDependOnTheInstructionSet) {
  for (const size_t n : {2, 43, 131, 5000}) {
    const auto values = tile_of(n);
    std::vector<uint8_t> counts;
    std::vector<double> sums;
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      const auto here = drawn(42, n, 7);
      std::vector<double> here_sums(kTile * kSlab);
      sum_slab(here.data(), n, values.data(), here_sums.data());
      if (counts.empty()) {
        counts = here;
        sums = here_sums;
      }
      EXPECT_EQ(counts, here) << hwy::TargetName(target);
      EXPECT_EQ(sums, here_sums) << hwy::TargetName(target);
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Resamples, HoldAsManyValuesAsTheSample) {
  for (const size_t n : {2, 43, 1000}) {
    const auto counts = drawn(1, n, 3);
    for (size_t b = 0; b < kSlab; ++b) {
      size_t total = 0;
      for (size_t i = 0; i < n; ++i) total += counts[i * kSlab + b];
      EXPECT_EQ(total, n);
    }
  }
}

TEST(Resamples, DrawEveryValueAsOften) {
  constexpr size_t kN = 37;
  constexpr size_t kSlabs = 4000;
  std::vector<double> often(kN);
  for (size_t slab = 0; slab < kSlabs; ++slab) {
    const auto counts = drawn(9, kN, slab);
    for (size_t i = 0; i < kN * kSlab; ++i) often[i / kSlab] += counts[i];
  }
  const double expected = kSlabs * kSlab;
  double chi_square = 0;
  for (const double count : often) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 73);  // 36 degrees of freedom: beyond it in 0.03 % of seeds
  EXPECT_GT(chi_square, 12);
}

TEST(Resamples, SumsAreThoseOfCountsAndValues) {
  constexpr size_t kN = 43;
  const auto values = tile_of(kN);
  const auto counts = drawn(1, kN, 0);
  double sums[kTile * kSlab];
  sum_slab(counts.data(), kN, values.data(), sums);
  for (size_t s = 0; s < kTile; ++s) {
    for (size_t b = 0; b < kSlab; ++b) {
      double expected = 0;
      for (size_t i = 0; i < kN; ++i) expected += counts[i * kSlab + b] * values[i * kTile + s];
      EXPECT_DOUBLE_EQ(sums[s * kSlab + b], expected);
    }
  }
}

TEST(Resamples, PlacesAreThoseOfTheSortedResample) {
  for (const size_t n : {2, 9, 100}) {
    const auto counts = drawn(4, n, 1);
    for (const size_t place : {size_t{0}, n / 2, n - 2, n - 1}) {
      uint32_t at[kSlab];
      uint32_t after[kSlab];
      places_in_slab(counts.data(), n, place, at, after);
      for (size_t b = 0; b < kSlab; ++b) {
        std::vector<uint32_t> resample;
        for (uint32_t i = 0; i < n; ++i) resample.insert(resample.end(), counts[i * kSlab + b], i);
        resample.push_back(static_cast<uint32_t>(n));
        EXPECT_EQ(at[b], resample[place]);
        EXPECT_EQ(after[b], resample[place + 1]);
      }
    }
  }
}

TEST(ResampleOrder, IsAPermutationThatDiffersByStream) {
  for (const size_t slabs : {1, 2, 13, 625}) {
    const ResampleOrder order(42, 5, slabs);
    const ResampleOrder other(42, 6, slabs);
    std::vector<int> seen(slabs);
    size_t same = 0;
    for (size_t slab = 0; slab < slabs; ++slab) {
      ASSERT_LT(order.slab_of(slab), slabs);
      ++seen[order.slab_of(slab)];
      same += order.slab_of(slab) == other.slab_of(slab);
    }
    EXPECT_EQ(seen, std::vector<int>(slabs, 1));
    EXPECT_TRUE(slabs < 625 || same <= 2);
  }
}

}  // namespace
}  // namespace assay::stats
