// Products of many rows are cut into pieces of rows and one tile of columns; threads take the next
// piece when they are done, because cores are not equally fast where others use them too.
#include "engine/device/cpu/schedule.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "engine/ops/cpu/bf16_product.h"
#include "engine/ops/cpu/block_product.h"
#include "engine/ops/cpu/panel_product.h"
#include "engine/ops/cpu/quantized_layout.h"

namespace assay::engine {
namespace {

// Rows of a piece: its products and a block of weights fit the second-level cache together.
constexpr int64_t kPieceRows = 512;
constexpr int64_t kPiecesAThread = 4;  // at least, where there are rows enough
constexpr int64_t kLeastRows = 28;
constexpr size_t kLineFloats = 16;

size_t whole_lines(int64_t floats) {
  return (static_cast<size_t>(floats) + kLineFloats - 1) / kLineFloats * kLineFloats;
}

// The type of the panels that are multiplied: blocks are decoded to it.
DType panel_type(const ProductStage& product) {
  return product.in_blocks() ? DType::kBF16 : traits(product.format).element;
}

int64_t tile_bytes(const ProductStage& product) {
  const int64_t tile = product.packing.tile;
  if (product.in_blocks()) {
    const auto panel = cpu::block_tile_bytes(product.format, product.inputs);
    return tile / Packing::kPanel * static_cast<int64_t>(panel);
  }
  return Packing::padded_inputs(product.inputs) * tile *
         static_cast<int64_t>(traits(product.format).block_bytes);
}

// Floats of a share's scratch before the products.
size_t product_scratch(const ProductStage& product) {
  const int64_t row = product.inputs;  // that a prologue makes
  const int64_t panels =
      product.in_blocks() ? cpu::block_scratch_floats(row) : cpu::panel_scratch_floats();
  return whole_lines(std::max(panels, row));
}

// Floats of rows of x of a product in blocks.
size_t block_rows(int64_t rows, const cpu::BlockInputs& form) {
  return whole_lines(rows * form.row_bytes() / static_cast<int64_t>(sizeof(float)) + 1);
}

}  // namespace

Schedule::Schedule(std::vector<Stage> stages, ThreadPool& pool)
    : stages_(std::move(stages)),
      pool_(pool),
      next_piece_(stages_.size()),
      shared_(stages_.size(), nullptr),
      shared_floats_(stages_.size(), 0) {
  legs_.reserve(2 * stages_.size());
}

bool Schedule::is_made(const Stage& stage) {
  return stage.functions.prologue != nullptr || stage.product->in_blocks() ||
         cpu::panel_x_dtype(panel_type(*stage.product)) != DType::kF32;
}

Schedule::Pieces Schedule::pieces_of(const Stage& stage, int64_t rows) const {
  const int64_t tiles = tile_count(stage.product->packing);
  const int64_t wanted = kPiecesAThread * static_cast<int64_t>(pool_.size());
  const int64_t splits =
      std::max((rows + kPieceRows - 1) / kPieceRows, (wanted + tiles - 1) / tiles);
  int64_t step = std::clamp<int64_t>((rows + splits - 1) / splits, kLeastRows, kPieceRows);
  if (cpu::panel_uses_tiles(panel_type(*stage.product))) {
    step = (step + cpu::kTileRows - 1) / cpu::kTileRows * cpu::kTileRows;
  }
  return {rows, step, tiles, tiles * ((rows + step - 1) / step)};
}

Status Schedule::reserve(const StageMemory& memory, const DimValues& dims) {
  bool grows = memory_.data() == nullptr;
  const auto want = [&](size_t& room, size_t floats) {
    grows = grows || floats > room;
    room = std::max(room, floats);
  };
  want(kernel_floats_, whole_lines(memory.scratch_floats));
  for (size_t i = 0; i < stages_.size(); ++i) {
    want(shared_floats_[i], whole_lines(memory.shared_floats[i]));
    const Stage& stage = stages_[i];
    const int64_t rows = stage.rows.value(dims);
    if (!stage.product) continue;
    const ProductStage& product = *stage.product;
    if (rows <= kMatvecRows) {
      if (!product.in_blocks()) continue;
      want(product_floats_, product_scratch(product) +
                                block_rows(rows, cpu::BlockInputs(rows, product.inputs)) +
                                whole_lines(rows * product.packing.tile));
      continue;
    }
    const int64_t products = pieces_of(stage, rows).row_step * product.packing.tile;
    want(product_floats_, product_scratch(product) + whole_lines(products));
    if (product.in_blocks()) {
      want(x_floats_, block_rows(rows, cpu::BlockInputs(rows, product.inputs)));
    } else if (is_made(stage)) {
      want(x_floats_, whole_lines(rows * cpu::panel_row_pitch(product.inputs, DType::kF32)));
    }
  }
  return grows ? allocate() : Status();
}

Status Schedule::allocate() {
  size_t total = x_floats_ + pool_.size() * (kernel_floats_ + product_floats_);
  for (const size_t floats : shared_floats_) total += floats;
  memory_ = HugeMemory();  // before the new one: the two need not fit side by side
  ASSAY_TRY(memory_, HugeMemory::allocate(total * sizeof(float)));
  std::memset(memory_.data(), 0, total * sizeof(float));  // touched here, not in the first step
  auto* next = reinterpret_cast<float*>(memory_.data());
  for (size_t i = 0; i < stages_.size(); ++i) {
    shared_[i] = next;
    next += shared_floats_[i];
  }
  x_ = next;
  shares_memory_ = next + x_floats_;
  return {};
}

void Schedule::run(const DimValues& dims, int64_t capacity) {
  for (auto& next : next_piece_) next.store(0, std::memory_order_relaxed);
  legs_.clear();
  for (size_t i = 0; i < stages_.size(); ++i) {
    const int64_t rows = stages_[i].rows.value(dims);
    const bool many = stages_[i].product && rows > kMatvecRows;
    const bool few = stages_[i].product && !many && stages_[i].product->in_blocks();
    if (many && is_made(stages_[i])) legs_.push_back({i, rows, Leg::Work::kMakeX});
    legs_.push_back({i, rows,
                     many  ? Leg::Work::kManyRows
                     : few ? Leg::Work::kFewRows
                           : Leg::Work::kWhole});
  }
  pool_.run_stages(legs_.size(), [&](size_t leg, size_t share) {
    work(legs_[leg], share, {dims.batch, dims.q_len, dims.kv_len, capacity});
  });
}

void Schedule::work(const Leg& leg, size_t share, const std::array<int64_t, 4>& dims) {
  const Stage& stage = stages_[leg.stage];
  const KernelArgs args{.buffers = stage.buffers.data(),
                        .dims = {dims[0], dims[1], dims[2], dims[3]},
                        .scratch = shares_memory_ + share * (kernel_floats_ + product_floats_),
                        .shared = shared_[leg.stage]};
  switch (leg.work) {
    case Leg::Work::kFewRows:
      return few_rows(stage, args, leg.rows, share);
    case Leg::Work::kMakeX:
      return make_x(stage, args, leg.rows, share);
    case Leg::Work::kManyRows:
      return many_rows(leg.stage, args, leg.rows);
    case Leg::Work::kWhole:
      stage.functions.run(&args, static_cast<int64_t>(share), static_cast<int64_t>(pool_.size()));
  }
}

const float* Schedule::row_of_x(const Stage& stage, const KernelArgs& args, int64_t row,
                                float* made) {
  const ProductStage& product = *stage.product;
  if (stage.functions.prologue == nullptr) {
    return static_cast<const float*>(stage.buffers[product.x]) + row * product.inputs;
  }
  stage.functions.prologue(&args, row, row + 1, made);
  return made;
}

// A share of the tiles of a product in blocks. Each share makes all of x for itself: threads that
// waited for one another would take longer.
void Schedule::few_rows(const Stage& stage, const KernelArgs& args, int64_t rows, size_t share) {
  const ProductStage& product = *stage.product;
  const int64_t tiles = tile_count(product.packing), tile = product.packing.tile;
  const auto threads = static_cast<int64_t>(pool_.size()), at = static_cast<int64_t>(share);
  const int64_t begin = tiles * at / threads, end = tiles * (at + 1) / threads;
  if (begin == end) return;
  const cpu::BlockInputs form(rows, product.inputs);
  float* const scratch = args.scratch + kernel_floats_;
  float* const made = scratch + product_scratch(product);
  float* const products = made + block_rows(rows, form);
  auto* const x = reinterpret_cast<std::byte*>(made);
  for (int64_t row = 0; row < rows; ++row) {
    form.make(row_of_x(stage, args, row, scratch), product.input_order, x + row * form.row_bytes());
  }
  for (int64_t t = begin; t < end; ++t) {
    cpu::block_product(form,
                       {.x = x,
                        .rows = rows,
                        .inputs = product.inputs,
                        .format = product.format,
                        .tiles = product.panels + t * tile_bytes(product),
                        .tile_count = tile / Packing::kPanel,
                        .out = products,
                        .out_pitch = tile},
                       scratch);
    stage.functions.epilogue(&args, 0, rows, t, t + 1, products, tile);
  }
}

// A share of the rows of x as the panel product wants them, into x_: the prologue's
// results, or the buffer's own rows, rounded if that is faster.
void Schedule::make_x(const Stage& stage, const KernelArgs& args, int64_t rows, size_t share) {
  const ProductStage& product = *stage.product;
  const DType dtype = cpu::panel_x_dtype(panel_type(product));
  const int64_t pitch = cpu::panel_row_pitch(product.inputs, dtype);
  const cpu::BlockInputs form(rows, product.inputs);
  float* made = args.scratch + kernel_floats_;
  const auto threads = static_cast<int64_t>(pool_.size());
  const auto at = static_cast<int64_t>(share);
  for (int64_t row = rows * at / threads; row < rows * (at + 1) / threads; ++row) {
    if (product.in_blocks()) {
      form.make(row_of_x(stage, args, row, made), product.input_order,
                reinterpret_cast<std::byte*>(x_) + row * form.row_bytes());
      continue;
    }
    const float* values =
        row_of_x(stage, args, row, dtype == DType::kF32 ? x_ + row * pitch : made);
    if (dtype == DType::kF32) continue;
    auto* rounded = reinterpret_cast<uint16_t*>(x_) + row * pitch;
    cpu::round_to_bf16(values, product.inputs, rounded);
    std::fill_n(rounded + product.inputs, cpu::panel_row_inputs(product.inputs) - product.inputs,
                uint16_t{0});
  }
}

void Schedule::many_rows(size_t index, const KernelArgs& args, int64_t rows) {
  const Stage& stage = stages_[index];
  const ProductStage& product = *stage.product;
  const DType dtype = panel_type(product);
  Inputs x{stage.buffers[product.x], cpu::panel_x_dtype(dtype), product.inputs};
  if (is_made(stage)) x = {x_, x.dtype, cpu::panel_row_pitch(product.inputs, x.dtype)};
  const Pieces pieces = pieces_of(stage, rows);
  const auto take = [&] { return next_piece_[index].fetch_add(1, std::memory_order_relaxed); };
  // A piece that is taken early can be prefetched; another thread can't take it any more.
  const bool early = !product.in_blocks() && cpu::panel_uses_tiles(dtype);
  for (int64_t piece = take(), next = 0; piece < pieces.count; piece = next) {
    if (early) next = take();
    multiply_piece(stage, args, x, pieces, piece, early && next < pieces.count ? next : -1);
    if (!early) next = take();
  }
}

// The products of one piece and their epilogue; `next`: the piece that this thread multiplies
// then, if it is known, else -1.
void Schedule::multiply_piece(const Stage& stage, const KernelArgs& args, const Inputs& x,
                              const Pieces& pieces, int64_t piece, int64_t next) {
  const ProductStage& product = *stage.product;
  const int64_t tile = product.packing.tile, panel_count = tile / Packing::kPanel;
  const auto panels = [&](int64_t of) {
    return product.panels + of % pieces.tiles * tile_bytes(product);
  };
  float* scratch = args.scratch + kernel_floats_;
  float* products = scratch + product_scratch(product);
  const int64_t begin = piece / pieces.tiles * pieces.row_step;
  const int64_t end = std::min(pieces.rows, begin + pieces.row_step);
  const int64_t column = piece % pieces.tiles;
  if (product.in_blocks()) {
    const cpu::BlockInputs form(pieces.rows, product.inputs);
    cpu::block_product(form,
                       {.x = reinterpret_cast<const std::byte*>(x_) + begin * form.row_bytes(),
                        .rows = end - begin,
                        .inputs = product.inputs,
                        .format = product.format,
                        .tiles = panels(piece),
                        .tile_count = panel_count,
                        .out = products,
                        .out_pitch = tile},
                       scratch);
  } else {
    const int64_t x_bytes = begin * x.pitch * static_cast<int64_t>(dtype_size_bytes(x.dtype));
    cpu::panel_product({.x = static_cast<const std::byte*>(x.data) + x_bytes,
                        .x_dtype = x.dtype,
                        .x_pitch = x.pitch,
                        .rows = end - begin,
                        .inputs = product.inputs,
                        .panels = panels(piece),
                        .dtype = panel_type(product),
                        .panel_count = panel_count,
                        .next = next < 0 ? nullptr : panels(next),
                        .out = products,
                        .out_pitch = tile},
                       scratch);
  }
  stage.functions.epilogue(&args, begin, end, column, column + 1, products, tile);
}

}  // namespace assay::engine
