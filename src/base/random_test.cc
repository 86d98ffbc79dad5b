#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <vector>

namespace assay {
namespace {

// The first outputs of the reference implementation for state 0.
TEST(Random, SplitMix64IsThePublishedOne) {
  uint64_t state = 0;
  EXPECT_EQ(splitmix64(state), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(splitmix64(state), 0x6E789E6AA1B965F4u);
}

TEST(Random, TheSameSeedAndStreamGiveTheSameNumbers) {
  Random a(42, 3), b(42, 3), other_stream(42, 4), other_seed(43, 3);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = a();
    EXPECT_EQ(value, b());
    seen.insert({value, other_stream(), other_seed()});
  }
  EXPECT_EQ(seen.size(), 3000u);
}

// Random checkpoints are byte-identical on any machine only as long as these values don't change.
TEST(Random, TheStreamNeverChanges) {
  Random random(42);
  const std::array<uint64_t, 3> first = {random(), random(), random()};
  Random again(42, 0);
  EXPECT_EQ(first, (std::array<uint64_t, 3>{again(), again(), again()}));
  EXPECT_EQ(first, (std::array<uint64_t, 3>{0x19E479E2AAA77BFBu, 0x5E3EFE753BE27527u,
                                            0xC3ED7125B780200Au}));
}

TEST(Random, BelowIsInBoundsAndReachesAll) {
  Random random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500);  // five standard deviations
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, UniformFillsTheUnitInterval) {
  Random random(2);
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = random.uniform();
    sum += x;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 0.001);
  EXPECT_LT(most, 1);
  EXPECT_GT(most, 0.999);
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Random, ShuffleKeepsAllAndMovesEach) {
  Random random(3);
  std::array<std::array<int, 4>, 4> places{};
  for (int trial = 0; trial < 24'000; ++trial) {
    std::vector<size_t> items(4);
    std::iota(items.begin(), items.end(), 0);
    random.shuffle(std::span(items));
    for (size_t place = 0; place < 4; ++place) ++places[items.at(place)][place];
    std::ranges::sort(items);
    EXPECT_EQ(items, (std::vector<size_t>{0, 1, 2, 3}));
  }
  for (const auto& of_item : places) {
    for (int count : of_item) EXPECT_NEAR(count, 6'000, 340);  // five standard deviations
  }
}

}  // namespace
}  // namespace assay
