#include "engine/memory/buffer_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::engine {
namespace {

TEST(BufferPool, ReusesWhatWasGivenBack) {
  BufferPool pool;
  const std::byte* first = nullptr;
  {
    const Buffer buffer = *pool.allocate(10'000);
    first = buffer.data();
  }
  EXPECT_EQ(pool.used_bytes(), 0u);
  const Buffer again = *pool.allocate(10'000);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(pool.system_allocations(), 1u);
}

TEST(BufferPool, LoansAreApartAndAligned) {
  BufferPool pool;
  std::vector<Buffer> loans;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{513}, size_t{3'000'000}}) {
    loans.push_back(*pool.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(loans.back().data()) % 64, 0u);
    std::fill_n(loans.back().data(), bytes, static_cast<std::byte>(loans.size()));
  }
  EXPECT_EQ(loans[2].data()[512], std::byte{3});
  EXPECT_EQ(loans[3].data()[2'999'999], std::byte{4});
}

TEST(BufferPool, GrowingRequestsDoNotHoardWhatTheyOutgrew) {
  BufferPool pool;
  std::vector<Buffer> tensors(8);
  for (size_t step = 1; step <= 2000; ++step) {
    for (Buffer& tensor : tensors) {
      Buffer grown = *pool.allocate(step * 16'384);
      tensor = std::move(grown);
    }
  }
  // At the most nine of the latest size were in use: one grows while the old one is there.
  EXPECT_LE(pool.cached_bytes(), std::max<uint64_t>(pool.used_bytes() / 8 * 9, uint64_t{64} << 20));
  EXPECT_LT(pool.system_allocations(), 2000u);
  tensors.clear();
}

TEST(BufferPool, TheSameRequestsGetTheSameBlocksInWhateverOrderTheyCameBack) {
  BufferPool pool;
  const auto addresses = [&](const std::vector<size_t>& given_back) {
    std::vector<Buffer> loans;
    std::vector<std::byte*> at;
    for (const size_t bytes : {size_t{40'000}, size_t{600}, size_t{40'000}, size_t{39'000}}) {
      loans.push_back(*pool.allocate(bytes));
      at.push_back(loans.back().data());
    }
    for (const size_t loan : given_back) loans[loan] = Buffer();
    return at;
  };
  addresses({0, 1, 2, 3});  // from the system, in its own order
  const auto first = addresses({3, 1, 0, 2});
  EXPECT_EQ(addresses({2, 0, 3, 1}), first);
  EXPECT_EQ(addresses({0, 1, 2, 3}), first);
}

TEST(BufferPool, KeepsAsMuchAsWasInUseAtTheMostUntilThatIsForgotten) {
  constexpr size_t kBytes = size_t{48} << 20;
  BufferPool pool;
  for (int run = 0; run < 3; ++run) {
    std::vector<Buffer> loans;
    for (int i = 0; i < 3; ++i) loans.push_back(*pool.allocate(kBytes));
  }
  EXPECT_EQ(pool.system_allocations(), 3u);
  EXPECT_EQ(pool.cached_bytes(), 3 * kBytes);
  pool.forget_most();
  EXPECT_EQ(pool.cached_bytes(), kBytes) << "as much as is always kept";
}

TEST(BufferPool, AnImpossibleRequestIsAnError) {
  BufferPool pool;
  const auto buffer = pool.allocate(SIZE_MAX / 2);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().kind, ErrorKind::kEnvironment);
}

}  // namespace
}  // namespace assay::engine
