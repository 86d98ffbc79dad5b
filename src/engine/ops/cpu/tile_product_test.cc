// The tiles' product on an emulation of the instructions, which holds each use of a tile against
// its shape, and on the processor's own; the dot product of pairs, which it stands in for, beside
// it.
#include "engine/ops/cpu/tile_product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.h"
#include "engine/model/convert.h"
#include "engine/ops/cpu/amx.h"
#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/panel_product.h"

namespace assay::engine {
namespace {

using cpu::TileProduct;
using cpu::TileShapes;
constexpr int64_t kPanel = Packing::kPanel;

// The instructions as Intel describes them, but for the rounding of each sum.
struct EmulatedTiles {
  struct Tile {
    alignas(64) std::array<std::byte, 1024> bytes;
    float value(int64_t row, int64_t column) const { return at<float>(row, column); }
    float half(int64_t row, int64_t column) const { return bf16_to_f32(at<uint16_t>(row, column)); }
    template <typename T>
    T at(int64_t row, int64_t column) const {
      T result;
      std::memcpy(&result, &bytes[static_cast<size_t>(row * 64) + sizeof(T) * column], sizeof(T));
      return result;
    }
  };
  static inline std::optional<TileShapes> shapes;
  static inline std::array<Tile, 8> tiles;
  static inline int64_t multiplied = 0;

  static void configure(const TileShapes& s) {
    EXPECT_EQ(s.palette, 1);
    for (size_t tile = 0; tile < 16; ++tile) {
      EXPECT_EQ(s.rows[tile] == 0, s.row_bytes[tile] == 0);
      EXPECT_LE(s.rows[tile], tile < 8 ? 16 : 0);
      EXPECT_LE(s.row_bytes[tile], 64);
    }
    shapes = s;
    for (Tile& tile : tiles) tile.bytes.fill(std::byte{0});
  }
  static void release() { shapes.reset(); }

  static int64_t rows(size_t tile) {
    EXPECT_TRUE(shapes && shapes->rows[tile] > 0) << "tile " << tile << " has no shape";
    return shapes ? shapes->rows[tile] : 0;
  }
  static size_t row_bytes(size_t tile) { return shapes ? shapes->row_bytes[tile] : 0; }

  template <size_t tile>
  static void zero() {
    rows(tile);
    tiles[tile].bytes.fill(std::byte{0});
  }
  template <size_t tile>
  static void load(const void* from, int64_t pitch) {
    tiles[tile].bytes.fill(std::byte{0});
    for (int64_t r = 0; r < rows(tile); ++r) {
      std::memcpy(&tiles[tile].bytes[static_cast<size_t>(r * 64)],
                  static_cast<const std::byte*>(from) + r * pitch, row_bytes(tile));
    }
  }
  template <size_t tile>
  static void store(void* to, int64_t pitch) {
    for (int64_t r = 0; r < rows(tile); ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * pitch,
                  &tiles[tile].bytes[static_cast<size_t>(r * 64)], row_bytes(tile));
    }
  }
  template <size_t sums, size_t x, size_t weights>
  static void multiply() {
    ++multiplied;
    EXPECT_EQ(rows(sums), rows(x));
    EXPECT_EQ(row_bytes(sums), row_bytes(weights));
    EXPECT_EQ(row_bytes(x), static_cast<size_t>(rows(weights)) * 4);
    const Tile a = tiles[x], b = tiles[weights];
    for (int64_t r = 0; r < rows(sums); ++r) {
      for (int64_t c = 0; c < static_cast<int64_t>(row_bytes(sums) / 4); ++c) {
        float sum = tiles[sums].value(r, c);
        for (int64_t pair = 0; pair < rows(weights); ++pair) {
          for (int64_t i = 0; i < 2; ++i) sum += a.half(r, 2 * pair + i) * b.half(pair, 2 * c + i);
        }
        std::memcpy(&tiles[sums].bytes[static_cast<size_t>(r * 64 + 4 * c)], &sum, 4);
      }
    }
  }
};

// Elements whose last one ends at a page that can't be touched.
template <typename T>
class Guarded {
 public:
  explicit Guarded(size_t count) : count_(count) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t used = (count * sizeof(T) + page - 1) / page * page;
    bytes_ = used + page;
    map_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(map_, MAP_FAILED);
    EXPECT_EQ(::mprotect(static_cast<std::byte*>(map_) + used, page, PROT_NONE), 0);
    data_ = reinterpret_cast<T*>(static_cast<std::byte*>(map_) + used) - count;
  }
  ~Guarded() { ::munmap(map_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  T* data() { return data_; }
  size_t size() const { return count_; }
  T& operator[](int64_t i) { return data_[i]; }

 private:
  size_t count_;
  size_t bytes_ = 0;
  void* map_ = nullptr;
  T* data_ = nullptr;
};

using Multiply = std::function<void(const TileProduct&)>;

class TileCase {
 public:
  TileCase(int64_t rows, int64_t inputs)
      : rows_(rows),
        inputs_(inputs),
        x_pitch_(cpu::panel_row_pitch(inputs, DType::kBF16)),
        x_(static_cast<size_t>((rows - 1) * x_pitch_ + cpu::panel_row_inputs(inputs))),
        panel_(static_cast<size_t>(Packing::padded_inputs(inputs) * kPanel)),
        out_(static_cast<size_t>((rows - 1) * kOutPitch + kPanel)) {
    Random random(static_cast<uint64_t>(rows * 5000 + inputs));
    const auto value = [&] { return f32_to_bf16(static_cast<float>(random.uniform() - 0.5)); };
    constexpr uint16_t kNan = 0x7fc0;
    std::fill_n(x_.data(), x_.size(), kNan);  // between rows too
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < cpu::panel_row_inputs(inputs); ++i) {
        x_[r * x_pitch_ + i] = i < inputs ? value() : 0;
      }
    }
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t c = 0; c < kPanel; ++c) panel_[Packing::element(DType::kBF16, i, c)] = value();
    }
    std::fill_n(out_.data(), out_.size(), kUntouched);
  }

  void check(const Multiply& multiply) {
    SCOPED_TRACE(fmt::format("{} rows of {} inputs", rows_, inputs_));
    multiply({.x = x_.data(),
              .x_pitch = x_pitch_,
              .rows = rows_,
              .inputs = inputs_,
              .panel = panel_.data(),
              .out = out_.data(),
              .out_pitch = kOutPitch,
              .next = panel_.data()});
    const double tolerance = 2e-6 * std::sqrt(static_cast<double>(inputs_));
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < kPanel; ++c) {
        double expected = 0;
        for (int64_t i = 0; i < inputs_; ++i) {
          expected += double{bf16_to_f32(x_[r * x_pitch_ + i])} *
                      double{bf16_to_f32(panel_[Packing::element(DType::kBF16, i, c)])};
        }
        ASSERT_NEAR(out_[r * kOutPitch + c], expected, tolerance) << r << ", " << c;
      }
      for (int64_t c = kPanel; c < kOutPitch && r + 1 < rows_; ++c) {
        ASSERT_EQ(out_[r * kOutPitch + c], kUntouched) << r << ", " << c;
      }
    }
  }

 private:
  static constexpr int64_t kOutPitch = kPanel + 5;
  static constexpr float kUntouched = -77;
  int64_t rows_, inputs_, x_pitch_;
  Guarded<uint16_t> x_, panel_;
  Guarded<float> out_;
};

// Rows around one and two tiles, and several groups with each rest; inputs around a pair, half a
// tile, a tile, and one, two and three blocks.
void check_all(const Multiply& multiply) {
  for (const int64_t rows : {1, 9, 15, 16, 17, 31, 32, 33, 48, 49, 63, 64, 79, 97}) {
    for (const int64_t inputs : {1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 95, 96, 896, 900, 1800}) {
      TileCase(rows, inputs).check(multiply);
      if (testing::Test::HasFailure()) return;
    }
  }
  for (const int64_t inputs : {2688, 2689, 4864}) TileCase(34, inputs).check(multiply);
}

TEST(TileProduct, OnEmulatedTilesEqualsPlainLoops) {
  check_all(cpu::TilePanel<EmulatedTiles>::multiply);
  EXPECT_FALSE(EmulatedTiles::shapes) << "tiles are still in use";
}

// 64 rows of 128 inputs against 64 columns are 4 x 4 tiles of sums, of 4 steps each.
TEST(TileProduct, MultipliesEachTileOnce) {
  EmulatedTiles::multiplied = 0;
  TileCase(64, 128).check(cpu::TilePanel<EmulatedTiles>::multiply);
  EXPECT_EQ(EmulatedTiles::multiplied, 4 * 4 * 4);
}

TEST(TileProduct, OnTheProcessorsTilesEqualsPlainLoops) {
  if (!cpu::has_amx_bf16()) GTEST_SKIP() << "this processor or system has no AMX for bf16";
  check_all(cpu::amx_panel_product);
}

TEST(TileProduct, DotProductsOfPairsEqualPlainLoopsToo) {
  if (!cpu::has_bf16_dot()) GTEST_SKIP() << "this processor has no dot product of bf16";
  check_all([](const TileProduct& p) {
    // Its panels are aligned to vectors, which a guarded one needn't be.
    alignas(64) static std::array<uint16_t, 4864 * kPanel> panel;
    std::copy_n(p.panel, Packing::padded_inputs(p.inputs) * kPanel, panel.begin());
    cpu::bf16_block_product(p.x, p.x_pitch, p.rows, panel.data(), (p.inputs + 1) / 2, p.out,
                            p.out_pitch, false);
  });
}

}  // namespace
}  // namespace assay::engine
