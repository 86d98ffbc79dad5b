// CUDA's words for the loop IR.
#include "engine/codegen/cuda/cuda_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "engine/codegen/cuda/print_cuda.h"

namespace assay::engine {
namespace {

constexpr int kOutermost = 1;  // the indent that blocks are printed with

std::string strided(const std::string& var, const std::string& begin, const std::string& end,
                    const char* first, const char* step, int indent) {
  return fmt::format("{0}for (long {1} = {2} + {3}; {1} < {4}; {1} += {5}) {{\n",
                     std::string(static_cast<size_t>(indent) * 2, ' '), var, begin, first, end,
                     step);
}

std::string block_loop(const std::string& var, const std::string& extent, bool innermost,
                       int indent) {
  if (!innermost) return strided(var, "0", extent, "warp_of_thread()", "WARPS", indent);
  if (indent == kOutermost) return strided(var, "0", extent, "threadIdx.x", "THREADS", indent);
  return strided(var, "0", extent, "lane_of_thread()", "32", indent);
}

// A batch's values are in registers; a row of 2048 is one batch of a block, and so one wait for
// memory.
int64_t rows_batch_size(int64_t extent, int64_t reads) {
  constexpr int64_t kMost = 8, kMostReads = 32;
  const int64_t own = (extent + kCudaThreads - 1) / kCudaThreads;  // of the busiest thread
  return std::min({own, kMost, kMostReads / std::max<int64_t>(reads, 1)});
}

// Behind the last element a thread asks for that one again, as grid_reduce() does.
std::string rows_batch(const BatchText& b, int64_t size) {
  const std::string in(static_cast<size_t>(b.indent) * 2, ' ');
  std::string kept;
  for (size_t i = 0; i < b.types.size(); ++i) {
    kept += fmt::format("{}  {} {}_kept{}[{}];\n", in, b.types[i], b.var, i, size);
  }
  const bool whole = b.extent % (size * kCudaThreads) == 0;
  return fmt::format(
      "{0}for (long {1}_first = threadIdx.x; {1}_first < {2}; {1}_first += {3} * THREADS) {{\n{4}"
      "{0}  #pragma unroll\n"
      "{0}  for (int {1}_at = 0; {1}_at < {3}; ++{1}_at) {{\n"
      "{0}    const long {1}_next = {1}_first + {1}_at * THREADS, {1} = {5};\n{6}"
      "{0}  }}\n"
      "{0}  #pragma unroll\n"
      "{0}  for (int {1}_at = 0; {1}_at < {3}; ++{1}_at) {{\n"
      "{0}    const long {1} = {1}_first + {1}_at * THREADS;\n{7}{8}"
      "{0}  }}\n"
      "{0}}}\n",
      in, b.var, b.extent, size, kept,
      whole ? b.var + "_next" : fmt::format("{0}_next < {1} ? {0}_next : {1} - 1", b.var, b.extent),
      b.values, whole ? "" : fmt::format("{}    if ({} >= {}) break;\n", in, b.var, b.extent),
      b.stores);
}

std::string columns_loop(const std::string& var, const std::string& extent, bool, int indent) {
  return strided(var, "0", extent, "blockIdx.y * THREADS + threadIdx.x", "gridDim.y * THREADS",
                 indent);
}

std::string warp_loop(const std::string& var, const std::string& extent, bool innermost,
                      int indent) {
  return innermost ? strided(var, "0", extent, "epilogue_lane()", "EPILOGUE_LANES", indent)
                   : strided(var, "0", extent, "0", "1", indent);
}

// Begins at a constant: from a lane on, the compiler doesn't see how often.
std::string counted_warp_loop(const std::string& var, const std::string& extent, bool innermost,
                              int indent) {
  if (!innermost) return warp_loop(var, extent, innermost, indent);
  return fmt::format(
      "{0}for (long {1}_first = 0; {1}_first < {2}; {1}_first += EPILOGUE_LANES)\n"
      "{0}if (const long {1} = {1}_first + epilogue_lane(); {1} < {2}) {{\n",
      std::string(static_cast<size_t>(indent) * 2, ' '), var, extent);
}

std::string lane_alone(const std::string& var, const std::string& extent, bool, int indent) {
  return fmt::format("{0}if (const long {1} = epilogue_lane(); {1} < {2}) {{\n",
                     std::string(static_cast<size_t>(indent) * 2, ' '), var, extent);
}

std::string unrolled_loop(const std::string& var, const std::string& extent, bool, int indent) {
  return fmt::format("{0}#pragma unroll\n{0}for (long {1} = 0; {1} < {2}; ++{1}) {{\n",
                     std::string(static_cast<size_t>(indent) * 2, ' '), var, extent);
}

std::string block_reduce(const ReduceText& r) {
  const std::string in(static_cast<size_t>(r.indent) * 2, ' ');
  const std::string loop =
      strided(r.var, "0", r.extent, "threadIdx.x", "THREADS", r.indent) + r.body;
  if (r.op == ir::ReduceOp::kSum) {
    return fmt::format(
        "{0}float {1}_sum = 0.0f;\n{2}{0}  {1}_sum += {3};\n{0}}}\n"
        "{0}const float {1} = block_sum({1}_sum);\n",
        in, r.result, loop, r.value);
  }
  return fmt::format(
      "{0}unsigned long {1}_choice = 0;\n"
      "{2}{0}  {1}_choice = larger_of({1}_choice, choice_of({3}, {4}));\n"
      "{0}}}\n"
      "{0}{1}_choice = block_choice({1}_choice);\n"
      "{0}const long {1} = place_of({1}_choice);\n"
      "{0}[[maybe_unused]] const float {1}_best = value_of({1}_choice);\n",
      in, r.result, loop, r.value, r.var);
}

// Slices of the row by blocks; the last block takes what the others chose, as words. A thread asks
// for eight values before it looks at any, and behind the last one for the last one again: one
// after the other their latencies were most of the kernel's time.
std::string grid_reduce(const ReduceText& r) {
  if (r.op != ir::ReduceOp::kArgmax) return block_reduce(r);
  const std::string in(static_cast<size_t>(r.indent) * 2, ' ');
  return fmt::format(
      "{0}const long {1}_slice = ({4} + gridDim.y - 1) / gridDim.y, {1}_begin = blockIdx.y * "
      "{1}_slice;\n"
      "{0}const long {1}_end = {1}_begin + {1}_slice < {4} ? {1}_begin + {1}_slice : {4};\n"
      "{0}unsigned long {1}_choice = 1;  // it has come, and is less than any value's\n"
      "{0}for (long {1}_first = {1}_begin + threadIdx.x; {1}_first < {1}_end; {1}_first += 8 * "
      "THREADS) {{\n"
      "{0}  #pragma unroll\n"
      "{0}  for (int {1}_ahead = 0; {1}_ahead < 8; ++{1}_ahead) {{\n"
      "{0}  const long {1}_next = {1}_first + {1}_ahead * THREADS;\n"
      "{0}  const long {5} = {1}_next < {1}_end ? {1}_next : {1}_end - 1;\n"
      "{2}{0}  {1}_choice = larger_of({1}_choice, choice_of({3}, {5}));\n"
      "{0}  }}\n"
      "{0}}}\n"
      "{0}{1}_choice = block_choice({1}_choice);\n"
      "{0}if (gridDim.y > 1) {{\n"
      "{0}  volatile unsigned long* words = (unsigned long*)args.workspace - (blockIdx.x + 1) * "
      "(gridDim.y - 1);\n"
      "{0}  if (blockIdx.y < gridDim.y - 1) {{\n"
      "{0}    if (threadIdx.x == 0) words[blockIdx.y] = {1}_choice;\n"
      "{0}    return;\n"
      "{0}  }}\n"
      "{0}  for (int i = threadIdx.x; i < gridDim.y - 1; i += THREADS) {{\n"
      "{0}    unsigned long come = 0;\n"
      "{0}    while (come == 0) come = words[i];\n"
      "{0}    words[i] = 0;\n"
      "{0}    {1}_choice = larger_of({1}_choice, come);\n"
      "{0}  }}\n"
      "{0}  {1}_choice = block_choice({1}_choice);\n"
      "{0}}}\n"
      "{0}const long {1} = place_of({1}_choice);\n"
      "{0}[[maybe_unused]] const float {1}_best = value_of({1}_choice);\n",
      in, r.result, r.body, r.value, r.extent, r.var);
}

std::string no_reduce(const ReduceText&) {
  assert(false && "lowering puts no reduction behind a product");
  return "";
}

constexpr CTarget target(decltype(CTarget::loop) loop, decltype(CTarget::reduce) reduce) {
  return {.exp = "expf",
          .sqrt = "sqrtf",
          .erfc = "erfcf",
          .divide = "__fdividef",
          .bf16 = "from_bf16",
          .f16 = "from_f16",
          .to_bf16 = "to_bf16",
          .to_f16 = "to_f16",
          .loop = loop,
          .reduce = reduce};
}

constexpr CTarget batched(CTarget target) {
  target.batch_size = rows_batch_size;
  target.batch = rows_batch;
  return target;
}

}  // namespace

const CTarget& cuda_block_target() {
  static constexpr CTarget kTarget = target(block_loop, block_reduce);
  return kTarget;
}

const CTarget& cuda_rows_target() {
  static constexpr CTarget kTarget = batched(target(block_loop, block_reduce));
  return kTarget;
}

const CTarget& cuda_grid_target() {
  static constexpr CTarget kTarget = batched(target(block_loop, grid_reduce));
  return kTarget;
}

const CTarget& cuda_columns_target() {
  static constexpr CTarget kTarget = target(columns_loop, no_reduce);
  return kTarget;
}

const CTarget& cuda_warp_target() {
  static constexpr CTarget kTarget = target(warp_loop, no_reduce);
  return kTarget;
}

const CTarget& cuda_counted_warp_target() {
  static constexpr CTarget kTarget = target(counted_warp_loop, no_reduce);
  return kTarget;
}

const CTarget& cuda_lane_target() {
  static constexpr CTarget kTarget = target(lane_alone, no_reduce);
  return kTarget;
}

const CTarget& cuda_unit_target() {
  static constexpr CTarget kTarget = target(unrolled_loop, no_reduce);
  return kTarget;
}

}  // namespace assay::engine
