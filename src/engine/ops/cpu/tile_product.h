// A product of bf16 by matrix tiles (Intel's AMX): the order of its instructions, as a template
// over the instructions themselves, so that a test runs it on any processor.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "engine/weight_layout.h"

#if defined(__x86_64__)  // clang assembles an instruction only in a function that may use it
#define ASSAY_TILES __attribute__((target("amx-tile,amx-bf16")))
#else
#define ASSAY_TILES
#endif

namespace assay::engine::cpu {

// The operand of LDTILECFG: rows, and bytes of a row, of each tile; both are 0 for an unused tile.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved = {};
  std::array<uint16_t, 16> row_bytes = {};
  std::array<uint8_t, 16> rows = {};
};
static_assert(sizeof(TileShapes) == 64);

// One panel (Packing in weight_layout.h): out[r, c] = sum over i < inputs of x[r, i] * panel[i, c],
// summed in fp32.
struct TileProduct {
  static constexpr int64_t kInputs = 32;  // inputs that one instruction sums over
  const uint16_t* x = nullptr;  // [rows, x_pitch]; zeros from `inputs` to a multiple of kInputs
  int64_t x_pitch = 0;          // elements; at least that multiple
  int64_t rows = 0;
  int64_t inputs = 0;
  const uint16_t* panel = nullptr;  // [padded inputs / 2, 64, 2]
  float* out = nullptr;             // [rows, out_pitch]; the first 64 of each row are written
  int64_t out_pitch = 0;
  // The panel of as many inputs that the caller multiplies next, if any; it is prefetched.
  const uint16_t* next = nullptr;
};

// Sums of up to 32 rows and 32 columns stay in tiles 0 to 3 while a block of inputs passes; tiles 4
// and 5 take rows of x, tiles 6 and 7 weights. All rows pass over 32 columns of a block before the
// next 32 do, so the block's weights are read from the first two caches.
//
// Tiles has static functions: configure(const TileShapes&) and release(), and for tiles by number
// zero<t>(), load<t>(address, bytes from row to row), store<t>(likewise) and multiply<sums, x,
// weights>().
template <typename Tiles>
class TilePanel {
 public:
  ASSAY_TILES static void multiply(const TileProduct& product) {
    const TilePanel panel(product);
    for (int64_t block = 0; block < panel.blocks_; ++block) panel.multiply_block(block);
    Tiles::release();
  }

 private:
  static constexpr int64_t kTile = 16;  // rows of x, or columns, in a tile
  static constexpr int64_t kGroup = 2 * kTile;
  static constexpr int64_t kPair = 2 * Packing::kPanel;  // a pair of inputs, in elements
  static constexpr int64_t kStep = TileProduct::kInputs / 2 * kPair;  // a tile's inputs
  static constexpr int64_t kPairBytes = kPair * 2;
  static constexpr int64_t kMostSteps = 28;  // of a block: 56 KiB of weights of 32 columns

  // Memory to be prefetched, some lines with each step of a block.
  struct Ahead {
    static constexpr int64_t kLine = 64;
    const char* at;
    const char* end;
    int64_t lines;
    void fetch() {
      for (int64_t i = 0; i < lines && at < end; ++i, at += kLine) __builtin_prefetch(at, 0, 2);
    }
  };

  explicit TilePanel(const TileProduct& product)
      : p_(product),
        steps_((p_.inputs + TileProduct::kInputs - 1) / TileProduct::kInputs),
        whole_steps_(Packing::padded_inputs(p_.inputs) / TileProduct::kInputs),
        blocks_((steps_ + kMostSteps - 1) / kMostSteps) {
    if (whole_steps_ == steps_) return;  // else the panel ends with half a step
    std::memcpy(last_.data(), p_.panel + whole_steps_ * kStep, sizeof last_ / 2);
  }

  int64_t first_step(int64_t block) const { return steps_ * block / blocks_; }

  ASSAY_TILES void multiply_block(int64_t block) const {
    const int64_t begin = first_step(block), end = first_step(block + 1);
    Ahead ahead = next_block(block);
    const int64_t whole = p_.rows / kGroup * kGroup, rest = p_.rows - whole;
    for (int64_t column = 0; column < Packing::kPanel; column += kGroup) {
      if (whole > 0) configure(kTile, kTile);
      for (int64_t row = 0; row < whole; row += kGroup) {
        multiply_group<true>(row, column, begin, end, ahead);
      }
      if (rest == 0) continue;
      configure(std::min(rest, kTile), std::max<int64_t>(rest - kTile, 0));
      if (rest > kTile) {
        multiply_group<true>(whole, column, begin, end, ahead);
      } else {
        multiply_group<false>(whole, column, begin, end, ahead);
      }
    }
  }

  // The weights of the block that follows this one, in this panel or the next.
  Ahead next_block(int64_t block) const {
    const bool inside = block + 1 < blocks_;
    const uint16_t* from = inside ? p_.panel + first_step(block + 1) * kStep : p_.next;
    if (from == nullptr) return {nullptr, nullptr, 0};
    const int64_t steps = inside ? first_step(block + 2) - first_step(block + 1) : first_step(1);
    const auto* at = reinterpret_cast<const char*>(from);
    const int64_t lines = steps * kStep * 2 / Ahead::kLine;
    const int64_t groups = Packing::kPanel / kGroup * ((p_.rows + kGroup - 1) / kGroup);
    const int64_t turns = groups * (first_step(block + 1) - first_step(block));
    return {at, at + lines * Ahead::kLine, (lines + turns - 1) / turns};
  }

  // Shapes for `first` rows in the upper tiles and `second` in the lower ones.
  ASSAY_TILES static void configure(int64_t first, int64_t second) {
    TileShapes shapes;
    const auto set = [&shapes](size_t tile, int64_t rows) {
      shapes.rows[tile] = static_cast<uint8_t>(rows);
      shapes.row_bytes[tile] = rows > 0 ? 64 : 0;
    };
    for (const size_t tile : {0, 1, 4}) set(tile, first);
    for (const size_t tile : {2, 3, 5}) set(tile, second);
    for (const size_t tile : {6, 7}) set(tile, kTile);
    Tiles::configure(shapes);
  }

  // Up to 32 rows and 32 columns over steps [begin, end), on top of earlier ones; `lower`: there
  // are more than 16 rows.
  template <bool lower>
  ASSAY_TILES void multiply_group(int64_t row, int64_t column, int64_t begin, int64_t end,
                                  Ahead& ahead) const {
    float* out = p_.out + row * p_.out_pitch + column;
    begin == 0 ? clear_sums<lower>() : load_sums<lower>(out);
    const uint16_t* x = p_.x + row * p_.x_pitch + begin * TileProduct::kInputs;
    const uint16_t* weights = p_.panel + begin * kStep + 2 * column;
    for (int64_t step = begin; step < std::min(end, whole_steps_); ++step) {
      ahead.fetch();
      multiply_step<lower>(x, weights);
      x += TileProduct::kInputs;
      weights += kStep;
    }
    if (end > whole_steps_) multiply_step<lower>(x, last_.data() + 2 * column);
    store_sums<lower>(out);
  }

  template <bool lower>
  ASSAY_TILES void multiply_step(const uint16_t* x, const uint16_t* weights) const {
    const int64_t x_bytes = p_.x_pitch * 2;
    Tiles::template load<6>(weights, kPairBytes);
    Tiles::template load<4>(x, x_bytes);
    Tiles::template load<7>(weights + 2 * kTile, kPairBytes);
    Tiles::template multiply<0, 4, 6>();
    if constexpr (lower) Tiles::template load<5>(x + kTile * p_.x_pitch, x_bytes);
    Tiles::template multiply<1, 4, 7>();
    if constexpr (lower) {
      Tiles::template multiply<2, 5, 6>();
      Tiles::template multiply<3, 5, 7>();
    }
  }

  template <bool lower>
  ASSAY_TILES static void clear_sums() {
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    if constexpr (lower) {
      Tiles::template zero<2>();
      Tiles::template zero<3>();
    }
  }

  template <bool lower>
  ASSAY_TILES void load_sums(const float* out) const {
    const int64_t bytes = p_.out_pitch * 4;
    Tiles::template load<0>(out, bytes);
    Tiles::template load<1>(out + kTile, bytes);
    if constexpr (lower) {
      Tiles::template load<2>(out + kTile * p_.out_pitch, bytes);
      Tiles::template load<3>(out + kTile * p_.out_pitch + kTile, bytes);
    }
  }

  template <bool lower>
  ASSAY_TILES void store_sums(float* out) const {
    const int64_t bytes = p_.out_pitch * 4;
    Tiles::template store<0>(out, bytes);
    Tiles::template store<1>(out + kTile, bytes);
    if constexpr (lower) {
      Tiles::template store<2>(out + kTile * p_.out_pitch, bytes);
      Tiles::template store<3>(out + kTile * p_.out_pitch + kTile, bytes);
    }
  }

  const TileProduct& p_;
  int64_t steps_;        // of kInputs each, the last one filled up
  int64_t whole_steps_;  // that the panel holds entirely
  int64_t blocks_;
  alignas(64) std::array<uint16_t, kStep> last_ = {};  // the weights of a last half step, and zeros
};

}  // namespace assay::engine::cpu
