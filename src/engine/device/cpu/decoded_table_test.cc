// Rows of a table in blocks, each decoded when it is first wanted.
#include "engine/device/cpu/decoded_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/random_blocks.h"

namespace assay::engine {
namespace {

TEST(DecodedTable, DecodesTheRowsThatAreWantedAndNoOthers) {
  Random random(4);
  constexpr int64_t kRows = 3000, kWidth = 256;  // many pages
  std::vector<std::byte> bytes = random_blocks(random, WeightFormat::kQ4_K, Shape{kRows, kWidth});
  auto made = DecodedTable::make({bytes.data(), WeightFormat::kQ4_K, Shape{kRows, kWidth}});
  ASSERT_TRUE(made);
  DecodedTable table = std::move(*made);
  const std::vector<int32_t> wanted = {2999, 0, 17, 17};
  table.want(wanted);
  std::vector<float> expected(kWidth);
  for (int32_t row = 0; row < kRows; ++row) {
    decode_row({bytes.data(), WeightFormat::kQ4_K, Shape{kRows, kWidth}}, row, expected.data());
    if (std::ranges::find(wanted, row) == wanted.end()) std::ranges::fill(expected, 0.0f);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), table.data() + row * kWidth)) << row;
  }
  std::ranges::fill(bytes, std::byte{0});
  const float before = table.data()[17 * kWidth];
  table.want(wanted);  // are there: the blocks aren't read again
  EXPECT_EQ(table.data()[17 * kWidth], before);
  EXPECT_NE(before, 0);
}

}  // namespace
}  // namespace assay::engine
