// Threads, blocks and memory so that loads are in flight on all multiprocessors at all times.
#include "engine/codegen/cuda/cuda_product_shape.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "engine/block_cells.h"
#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_form.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr int64_t kPieceBytes = 16;
constexpr int64_t kMostHeld = 16;          // pieces of weights that a thread has registers for
constexpr int64_t kThreadsTogether = 512;  // of a multiprocessor: 128 registers each
// Weights in blocks, one row:
constexpr int64_t kFewTurns = 4;   // of a block
constexpr int64_t kMostSlots = 4;  // of a warp, if there are warps enough
constexpr int64_t kMostWarps = 16;
// Shared memory of a block, static and asked for: the least that any GPU from sm_80 on has.
constexpr int64_t kMostShared = 98 * 1024;
constexpr int64_t kMostStaticShared = 48 * 1024 - 512;  // beside what sums over a block take
// Blocks whose registers leave no room for another may have more, of which sums of many rows take
// most.
constexpr int64_t kMostSharedOfHopper = 150 * 1024, kMostSharedOfManyRows = 200 * 1024;
constexpr int64_t kAllSharedOfHopper = 220 * 1024;  // of a multiprocessor
// Blocks of up to 8 rows with twice the ring, and their registers, of which the compiler by itself
// takes fewer and is slower.
constexpr int64_t kMostSharedOfTwoLaps = 164 * 1024, kRegistersOfTwoLaps = 112;

// Blocks may have their first weights long before the kernels ahead end: so much of their next ones
// comes nearer meanwhile. More of it would delay what those kernels read. With one row an H200 was
// faster up to so many inputs (docs/engine-figures.md).
constexpr int64_t kNearOfOneRow = 2 << 20, kNearOfFewRows = 4 << 20;  // bytes of all blocks
constexpr int64_t kMostNearInputs = 2048;

int64_t near_bytes(int64_t of_all, int64_t blocks, int64_t there) {
  constexpr int64_t kLine = 128;
  return std::min(of_all / blocks / kLine * kLine, there);
}

struct Sizes {
  int64_t element, pitch, columns, rows;  // rows: of a block at a time, a power of two
  bool known_one;                         // a run has one row
  bool hopper;                            // the GPU, whose multiprocessors have more memory
  int64_t most_shared = kMostShared;
};

int64_t shared_inputs_bytes(const ProductKernel& product, int64_t rows) {
  return cuda_inputs_in_place(product) ? 0 : rows * ceil_div(product.inputs, 4) * 16;
}

// Warps and pieces so that few of them have nothing behind the last of `units`, of which a warp
// takes `lanes` a piece.
bool share_out(int64_t units, int64_t lanes, int64_t most_pieces, std::span<const int> numbers,
               CudaProductShape& shape) {
  std::optional<int64_t> least;
  for (const int64_t warps : numbers) {
    const int64_t pieces = ceil_div(units, warps * lanes);
    const int64_t idle = warps * lanes * pieces - units;
    if (pieces > most_pieces || (least && idle >= *least)) continue;
    least = idle;
    shape.threads = warps * 32;
    shape.pieces = pieces;
  }
  return least.has_value();
}

// A warp keeps its inputs of x, 8 registers a piece and 8 rows, and of up to 8 rows twice as many;
// a block reads x once for a multiprocessor. A block of few columns has a ring for as much as is
// worth asking for before the kernels ahead have ended. One of many columns of up to 8 rows has
// twice that, so that loads go on while its sums meet.
bool on_tensor_cores(const ProductKernel& product, const Sizes& sizes,
                     const std::optional<KernelBuffer::Blocks>& blocks, CudaProductShape& shape) {
  constexpr int64_t kMostInputs = 2048, kColumns = 16, kFewLaps = 2;
  constexpr std::array kWarps = {16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4};
  const int64_t run = blocks ? CudaSlot::kInputs : kCudaTensorRun;
  shape = {.form = CudaProductForm::kTensor, .rows = sizes.rows, .columns = kColumns};
  const int64_t inputs_bytes = shared_inputs_bytes(product, shape.rows);
  const int64_t units = ceil_div(sizes.pitch, run);
  shape.splits = ceil_div(units, kMostInputs / run);
  if (shape.splits > kCudaMultiprocessors) return false;
  shape.blocks = std::min(kCudaMultiprocessors / shape.splits, sizes.columns / kColumns);
  const bool many_columns = sizes.columns > kFewLaps * kColumns * shape.blocks;
  const bool twice = sizes.hopper && !blocks && shape.rows <= kProductRows && many_columns;
  if (twice) shape.registers = kRegistersOfTwoLaps;
  const int64_t most_shared = twice ? kMostSharedOfTwoLaps : sizes.most_shared;
  const std::span<const int> warps(kWarps);
  share_out(ceil_div(units, shape.splits), 1, kCudaTensorRun * 2 / run,
            blocks ? warps : warps.first(9), shape);
  const int64_t own_bytes = inputs_bytes + (blocks ? cuda_block_sums_bytes(shape) : 0);
  if (own_bytes > kMostStaticShared) return false;
  const int64_t slot_bytes =
      blocks ? cuda_slot(blocks->format).bytes : kColumns * kCudaTensorRun * 2;
  const int64_t lap_bytes = shape.threads / 32 * shape.pieces * slot_bytes;
  // A block that seldom meets loses less time to it; two laps keep loads in flight meanwhile.
  for (const int64_t tasks : {4, 2, 1}) {
    if (tasks > 1 && !blocks) continue;
    shape.round = tasks * cuda_task_columns(shape.rows);
    shape.laps = (most_shared - own_bytes - cuda_tensor_parts_bytes(shape)) / lap_bytes;
    if (shape.laps > 1) break;
  }
  if (shape.laps <= 0) return false;
  shape.shared_bytes = shape.laps * lap_bytes + cuda_tensor_parts_bytes(shape);
  if (sizes.hopper && !blocks && shape.rows <= kProductRows && shape.splits == 1) {
    const int64_t most_laps = ceil_div(sizes.columns / kColumns, shape.blocks);
    const int64_t behind = std::max<int64_t>(most_laps - shape.laps, 0);
    const int64_t there = behind * kColumns * sizes.pitch * sizes.element;
    shape.near_bytes = near_bytes(kNearOfFewRows, shape.blocks, there);
  }
  return true;
}

// Groups of 16 columns that each of `together` blocks of a multiprocessor asks for at a time. The
// bounds are where an H200 was faster (docs/engine-figures.md).
int64_t laps_of_one_row(WeightFormat format, int64_t turns, int64_t together, int64_t group_bytes) {
  constexpr int64_t kAskedOfFew = 70 * 1024, kAsked = 150 * 1024;  // bytes of a multiprocessor
  constexpr int64_t kMostLaps = 8;
  if (turns > kFewTurns || block_parts(format).is_float) {
    const int64_t asked = turns > kFewTurns ? kAsked : kAskedOfFew;
    return std::clamp(ceil_div(asked, together * group_bytes), int64_t{2}, kMostLaps);
  }
  // A block alone asks for all it has, because no other loads meanwhile, but not for so little as
  // two groups. Codes of fewer than eight bits take longer to multiply than to load.
  if (together == 1) return turns > 2 ? turns : 1;
  return block_parts(format).bits == 8 ? turns - 1 : 1;
}

// Warps of a block, and blocks of a multiprocessor where each has several groups of columns.
struct OneRowShare {
  int64_t warps, together;
};

// Integers leave room for blocks of the next kernel: a warp has two slots of a group, and 16 warps
// of a multiprocessor share few groups. Floats take longer to multiply, so that each slot has a
// warp. Half of the warps are enough where many groups hide each other's ends, and where blocks of
// floats have one group each.
OneRowShare one_row_share(int64_t slots, int64_t groups, bool floats) {
  constexpr int64_t kFewestWarps = 4, kTogether = 2, kFewGroups = 3;
  const int64_t rounds = ceil_div(groups, kTogether * kCudaMultiprocessors);
  const bool few = groups <= kFewGroups * kCudaMultiprocessors;
  const bool half = floats ? rounds > kFewTurns || rounds == 1 : !few;
  const int64_t wanted = half     ? kMostWarps / 2
                         : floats ? kMostWarps
                                  : std::max(slots / 2, kFewestWarps);
  const int64_t warps = std::clamp<int64_t>(
      std::max(ceil_div(slots, kMostSlots), std::min(wanted, slots)), 1, kMostWarps);
  return {warps, !floats && few ? std::max<int64_t>(kMostWarps / warps, 1) : kTogether};
}

// All multiprocessors have as many blocks as they have room for. Where each has several groups, its
// blocks take them one behind the other, and ask ahead for as much as is worth it.
bool of_one_row(const ProductKernel& product, const Sizes& sizes,
                const KernelBuffer::Blocks& blocks, CudaProductShape& shape) {
  constexpr int64_t kMostSums = kMostWarps * (2 * 16 + 1) * 4 + 2 * 16 * 4;  // bytes
  constexpr int64_t kMostTogether = 16;  // blocks that any GPU has room for
  const bool floats = block_parts(blocks.format).is_float;
  const int64_t slots = CudaSlot::count(sizes.pitch), groups = sizes.columns / CudaSlot::kColumns;
  shape = {.form = CudaProductForm::kOneRow, .rows = 1, .columns = CudaSlot::kColumns, .laps = 1};
  const auto [warps, wanted] = one_row_share(slots, groups, floats);
  shape.pieces = ceil_div(slots, warps);
  shape.threads = 32 * ceil_div(slots, shape.pieces);
  const int64_t group_bytes = slots * cuda_slot(blocks.format).bytes;
  const int64_t beside = shared_inputs_bytes(product, 1) + kMostSums;
  if (group_bytes + beside > sizes.most_shared || beside > kMostStaticShared) return false;
  const auto fit = [&](int64_t laps) { return sizes.most_shared / (laps * group_bytes + beside); };
  shape.together = std::min({fit(1), 2 * kThreadsTogether / shape.threads, int64_t{8}});
  const int64_t turns = ceil_div(groups, wanted * kCudaMultiprocessors);
  const int64_t laps = std::min(laps_of_one_row(blocks.format, turns, wanted, group_bytes), turns);
  if (turns > 1 && fit(std::min<int64_t>(laps, 2)) >= wanted) {
    shape.together = wanted;
    shape.laps = laps;
    while (fit(shape.laps) < wanted) --shape.laps;
  }
  shape.blocks = std::min(groups, shape.together * kCudaMultiprocessors);
  shape.turns = ceil_div(groups, shape.blocks);
  // The next kernel's blocks begin beside these where registers are left for them. Half of all are
  // too few for warps of three slots or more, and three quarters for more than four. A block of
  // four slots of floats leaves room for one of two slots.
  constexpr int64_t kOfFour = 96, kOfFourFloats = 88, kOfSeven = 112, kOfTwoFloats = 72;
  const bool alone = shape.blocks <= kCudaMultiprocessors && shape.threads == kThreadsTogether;
  const int64_t of_floats =
      std::clamp<int64_t>(3 * kThreadsTogether / 2 / shape.threads, 1, kMostTogether);
  const int64_t of_four = floats && shape.turns == 1 ? kOfFourFloats : kOfFour;
  if (alone && shape.pieces > 2 && shape.pieces < 8) {
    shape.registers = shape.pieces > kMostSlots ? kOfSeven : of_four;
  } else if (floats && shape.turns == 1 && shape.blocks <= of_floats * kCudaMultiprocessors) {
    shape.together = of_floats;
    if (shape.pieces <= 2 && shape.threads == kThreadsTogether / 2) shape.registers = kOfTwoFloats;
  } else if (shape.pieces <= kMostSlots && (shape.turns == 1 || shape.turns > kFewTurns)) {
    const int64_t most = std::min(2 * kThreadsTogether / shape.threads, kMostTogether);
    shape.together = std::max(shape.together, most);
  }  // else of two to four turns, which are faster with as many as the compiler takes
  shape.shared_bytes = shape.laps * group_bytes;
  return true;
}

// Blocks whose registers a multiprocessor holds without spills, at most five.
int64_t held_together(const CudaProductShape& shape) {
  constexpr int64_t kMostTogether = 5;
  const int64_t of_thread = 64 + 5 * shape.columns * shape.pieces / 2;
  return std::min(kCudaRegisters / (shape.threads * of_thread), kMostTogether);
}

// One round of blocks that all fit the GPU at once, each for columns one behind the other, rather
// than a few rounds: a block asks for its next weights before it sums what it has multiplied, and a
// new one would begin with nothing. Where all have one turn, registers are left for a block of the
// next kernel. False if there would be too many turns, or not even one block fits.
bool take_turns(CudaProductShape& shape) {
  constexpr int64_t kMostTurns = 6;
  const int64_t fit = held_together(shape);
  if (fit == 0 || shape.blocks > kMostTurns * fit * kCudaMultiprocessors) return false;
  const int64_t together = ceil_div(shape.blocks, kCudaMultiprocessors);
  shape.together = std::min(fit, together + 1);
  shape.turns = ceil_div(shape.blocks, fit * kCudaMultiprocessors);
  shape.blocks = ceil_div(shape.blocks, shape.turns);
  return true;
}

// As many columns as a thread has registers for, 64 of them for 16 bytes of each piece and column
// and 32 for sums; fewer if there would be few blocks.
// The bounds on inputs are where an H200 was faster (docs/engine-figures.md).
CudaProductShape held(const ProductKernel& product, const Sizes& sizes) {
  constexpr int64_t kMostSums = 32, kMostColumns = 8, kMostPieces = 16, kFourColumns = 4,
                    kFewPieces = 3;
  constexpr int64_t kFewestBlocks = 200, kFewInputs = 2048, kManyInputs = 4096;
  constexpr std::array kWarps = {8, 7, 6, 5, 4};
  constexpr std::array kMoreWarps = {16}, kManyWarps = {12};
  CudaProductShape shape{.rows = sizes.rows};
  const int64_t units = ceil_div(sizes.pitch * sizes.element, kPieceBytes);
  const auto pieces = [&] { return ceil_div(units, shape.threads); };
  if (!cuda_inputs_in_place(product)) {
    const int64_t most = kCudaMostSharedInputs / product.inputs;
    shape.rows = most == 0
                     ? 0
                     : std::min(shape.rows,
                                static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))));
  }
  // Two columns of what a thread has must fit its registers; of few inputs, no threads are idle.
  // A single known row has few pieces of two columns, or four columns: these keep loads in flight.
  const bool one_row = sizes.known_one && sizes.element == 2;
  const bool few = sizes.element == 2 && sizes.pitch < kFewInputs;
  const bool crowds = 2 * pieces() > kMostHeld;
  const bool shared_out =
      shape.rows == 1 && (few || crowds) &&
      ((one_row && crowds && share_out(units, 32, kFewPieces, kManyWarps, shape)) ||
       share_out(units, 32, kMostHeld / 2, kWarps, shape) ||
       share_out(units, 32, kMostHeld / 2, kMoreWarps, shape));
  if (one_row && !shared_out && kFourColumns * pieces() > kMostHeld) {
    const auto fits = [&](int64_t warps) {
      const int64_t of_thread = ceil_div(units, warps * 32);
      return kFourColumns * of_thread <= kMostHeld && 8 * (warps * 32 * of_thread - units) <= units;
    };
    if (const auto warps = std::ranges::find_if(kWarps, fits); warps != kWarps.end()) {
      shape.threads = *warps * 32;
    }
  }
  const int64_t most_threads = shape.rows == 1 ? 512 : 256;  // several rows need the registers
  while (!shared_out && pieces() > kMostPieces && shape.threads < most_threads) shape.threads *= 2;
  shape.pieces = std::min(pieces(), shape.rows == 1 ? kMostPieces : kMostHeld / 4);
  // Several rows of x beside so many pieces spill where one stage has them all.
  const bool crowded =
      sizes.element == 2 && pieces() == shape.pieces && shape.pieces >= (product.norm ? 3 : 4);
  if (shape.rows > 1 && crowded) shape.pieces = kMostHeld / 8;
  shape.columns = kMostColumns;
  while (shape.columns > 2 &&
         (shape.columns * shape.pieces > kMostHeld || shape.columns * shape.rows > kMostSums ||
          sizes.columns / shape.columns < kFewestBlocks || (one_row && held_together(shape) < 2))) {
    shape.columns /= 2;
  }
  shape.blocks = sizes.columns / shape.columns;
  const bool at_once = one_row && pieces() == shape.pieces;
  if (at_once && take_turns(shape)) {
    if (sizes.hopper && shape.turns > 1 && sizes.pitch <= kMostNearInputs) {
      const int64_t turn_bytes = shape.columns * sizes.pitch * sizes.element;
      shape.near_bytes = near_bytes(kNearOfOneRow, shape.blocks, turn_bytes);
    }
    return shape;
  }
  const bool many = sizes.pitch >= kManyInputs && (shape.columns > 2 || shape.threads > 128);
  if (shape.rows == 1 && (many || sizes.element == 4)) {
    shape.together = std::max<int64_t>(kThreadsTogether / shape.threads, 1);
  }
  return shape;
}

}  // namespace

int64_t cuda_most_tensor_rows(const Kernel& kernel, const ProductKernel& product) {
  const bool decodes = product.rows.power(1) == 0 || kernel.dims.q_len == 1;
  const bool in_blocks = kernel.buffers[product.weight].blocks.has_value();
  return !decodes ? kProductRows : in_blocks ? kCudaBlockRows : kCudaTensorRows;
}

bool cuda_inputs_in_place(const ProductKernel& product) {
  return product.norm || !product.has_prologue;
}

CudaProductShape cuda_product_shape(const Kernel& kernel, const ProductKernel& product) {
  const DType dtype = kernel.buffers[product.weight].dtype;
  const std::optional<int64_t> known = cuda_form_rows(kernel, product.rows);
  const auto rows =
      static_cast<uint64_t>(std::clamp<int64_t>(known.value_or(kProductRows), 1, kProductRows));
  const Sizes sizes{.element = static_cast<int64_t>(dtype_size_bytes(dtype)),
                    .pitch = Packing::padded_inputs(product.inputs),
                    .columns = packed_columns(product.packing),
                    .rows = static_cast<int64_t>(std::bit_ceil(rows)),
                    .known_one = known == 1,
                    .hopper = kernel.target == "sm_90a"};
  const int64_t most = cuda_most_tensor_rows(kernel, product);
  if (const auto& blocks = kernel.buffers[product.weight].blocks) {
    CudaProductShape ring;
    if (known && *known > most && cuda_by_tiles(kernel, product, *known, ring)) return ring;
    Sizes ring_sizes = sizes;
    if (sizes.hopper) ring_sizes.most_shared = kAllSharedOfHopper;
    if (known == 1 && of_one_row(product, ring_sizes, *blocks, ring)) return ring;
    const bool several = known && *known > kProductRows && *known <= most;
    const bool many = several && *known > kCudaTensorRows;
    if (several) ring_sizes.rows = many ? kCudaBlockRows : kCudaTensorRows;
    if (sizes.hopper) ring_sizes.most_shared = many ? kMostSharedOfManyRows : kMostSharedOfHopper;
    while (ring_sizes.rows > 0 && !on_tensor_cores(product, ring_sizes, blocks, ring)) {
      ring_sizes.rows /= 2;
    }
    ring.rows = ring_sizes.rows;
    return ring;
  }
  const CudaProductShape registers = held(product, sizes);
  // A norm's factor comes behind the product: what goes in may be beyond fp16's largest.
  const bool fits = dtype == DType::kBF16 || (dtype == DType::kF16 && !product.norm);
  if (CudaProductShape mapped; known && cuda_by_warpgroups(kernel, product, *known, mapped)) {
    return mapped;
  }
  if (!fits || !known || *known < 2 || *known > most) return registers;
  CudaProductShape ring;
  Sizes ring_sizes = sizes;
  if (*known > kProductRows) ring_sizes.rows = ceil_div(*known, kProductRows) * kProductRows;
  return on_tensor_cores(product, ring_sizes, {}, ring) ? ring : registers;
}

int64_t cuda_product_words(const CudaProductShape& shape, const ProductKernel& product,
                           int64_t rows) {
  const bool by_words = shape.form == CudaProductForm::kTensor;
  if (shape.splits == 1 || !by_words) return 0;  // others meet by counters, or in shared memory
  const int64_t columns = packed_columns(product.packing);
  const int64_t launched = std::max(ceil_div(rows, shape.rows), int64_t{1}) * shape.rows;
  return shape.splits * launched * (columns + shape.blocks);  // sums; squares for a norm
}

int64_t cuda_product_workspace(const CudaProductShape& shape, const ProductKernel& product,
                               int64_t rows) {
  if (shape.form == CudaProductForm::kTiles) return cuda_tile_workspace(shape, product, rows);
  const bool staged = shape.form == CudaProductForm::kWarpgroups;
  return staged ? std::max(rows, shape.rows) * Packing::padded_inputs(product.inputs) / 2 : 0;
}

}  // namespace assay::engine
