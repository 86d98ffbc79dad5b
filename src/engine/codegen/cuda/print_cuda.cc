// CUDA C++ for NVRTC: the entry points around what the C printer prints, and how they are launched.
#include "engine/codegen/cuda/print_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/cuda_product_shape.h"
#include "engine/codegen/cuda/cuda_target.h"
#include "engine/codegen/cuda/cuda_tiles.h"
#include "engine/codegen/cuda/cuda_warpgroup_product.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/unit_epilogue.h"

namespace assay::engine {
namespace {

// Blocks that share a row: of an argmax alone, over a row that is long for one.
int64_t blocks_of_row(const Kernel& kernel, const RowsKernel& rows) {
  constexpr int64_t kColumns = 2048;
  const auto* reduce = rows.body.empty() ? nullptr : std::get_if<ir::Reduce>(&rows.body[0].node);
  if (reduce == nullptr || reduce->op != ir::ReduceOp::kArgmax) return 1;
  for (size_t i = 1; i < rows.body.size(); ++i) {
    if (!std::holds_alternative<ir::Store>(rows.body[i].node)) return 1;
  }
  const auto width = kernel.exprs.constant(reduce->extent);
  return width ? (*width + kColumns - 1) / kColumns : 1;
}

// Blocks that may share a row's columns, of a kernel that moves elements of wide rows alone. A
// thread has one value of those that lie in blocks, each of which takes a chain of loads.
int64_t blocks_of_columns(const Kernel& kernel, const RowsKernel& rows) {
  const bool in_blocks = std::ranges::any_of(
      kernel.buffers, [](const KernelBuffer& buffer) { return buffer.blocks.has_value(); });
  const int64_t columns = in_blocks ? kCudaThreads : 1024, wide = (in_blocks ? 2 : 8) * columns;
  int64_t width = 0;
  for (const ir::Stmt& stmt : rows.body) {
    const auto* loop = std::get_if<ir::Loop>(&stmt.node);
    const auto extent = loop != nullptr ? kernel.exprs.constant(loop->extent) : std::nullopt;
    if (!extent || (width != 0 && *extent != width)) return 1;
    for (const ir::Stmt& inner : loop->body) {
      if (!std::holds_alternative<ir::Store>(inner.node)) return 1;
    }
    width = *extent;
  }
  return width < wide ? 1 : width / columns;
}

// Text that decodes the weights in blocks that the kernel reads a value at a time, a namespace
// each.
std::string block_values_text(const Kernel& kernel) {
  std::string text;
  for (const KernelBuffer& buffer : kernel.buffers) {
    if (!buffer.blocks) continue;
    text += fmt::format("namespace blocks_{} {{{}{}}}\n", buffer.name,
                        cuda_slot_text(buffer.blocks->format, buffer.blocks->row_values),
                        cuda_block_value_text());
  }
  return text;
}

// A block for each row: the row's columns over its threads; or several.
std::string rows_source(const Kernel& kernel, const RowsKernel& rows,
                        const CudaRowsMore& more = {}) {
  const bool shared = blocks_of_row(kernel, rows) > 1;
  const bool wide = blocks_of_columns(kernel, rows) > 1;
  CPrinter printer(kernel, shared ? cuda_grid_target()
                           : wide ? cuda_columns_target()
                                  : cuda_rows_target());
  printer.define(rows.row);
  return cuda_prelude() + block_values_text(kernel) + cuda_args_struct(kernel, more.members) +
         cuda_entry("assay_run") + ") {\n" + "  let_next_begin();\n  wait_for_kernels_ahead();\n" +
         cuda_arguments(kernel) +
         fmt::format("  const long {} = blockIdx.x;\n", CPrinter::var_name(rows.row)) +
         std::string(more.ahead) + printer.block(rows.body, 1) + std::string(more.behind) + "}\n";
}

struct Print {
  const Kernel& kernel;
  Result<std::string> operator()(const RowsKernel& rows) const { return rows_source(kernel, rows); }
  Result<std::string> operator()(const ProductKernel& product) const {
    if (product.packing.layout != TileLayout::kRows) {
      return bad_input("product: expected its weight in rows, found {}",
                       to_string(product.packing));
    }
    if (cuda_product_shape(kernel, product).rows == 0) {
      return bad_input("product: expected at most {} inputs behind {}, found {}",
                       kCudaMostSharedInputs, kernel.label, product.inputs);
    }
    return print_cuda_product(kernel, product);
  }
  Result<std::string> operator()(const AttentionKernel& attention) const {
    if (attention.head_dim > kCudaMostHeadDim) {
      return bad_input("attention: expected heads of at most {} elements, found {}",
                       kCudaMostHeadDim, attention.head_dim);
    }
    return print_cuda_attention(kernel, attention);
  }
};

struct Launches {
  const Kernel& kernel;
  const DimValues& dims;
  int64_t capacity;

  CudaLaunches operator()(const RowsKernel& rows) const {
    // Many rows have blocks enough with longer slices of each.
    constexpr int64_t kMostBlocks = 4 * kCudaMultiprocessors;
    const int64_t count = rows.rows.value(dims);
    const int64_t most = std::max<int64_t>(kMostBlocks / std::max<int64_t>(count, 1), 1);
    const int64_t blocks =
        std::min(std::max(blocks_of_row(kernel, rows), blocks_of_columns(kernel, rows)), most);
    CudaLaunches launches;
    launches.run = {{"assay_run", count, blocks}};
    return launches;
  }
  CudaLaunches operator()(const ProductKernel& product) const {
    const int64_t tiles = tile_count(product.packing), rows = product.rows.value(dims);
    const CudaProductShape shape = cuda_product_shape(kernel, product);
    const int64_t warps = shape.threads / 32;
    CudaLaunches launches;
    // A launch of weights in blocks has any number of rows.
    const bool in_blocks = kernel.buffers[product.weight].blocks.has_value();
    if (shape.form == CudaProductForm::kTiles) {
      if (!product.tiled_input) {
        launches.run = {{"assay_prologue", rows, 1, 1, shape.threads}};
      }
      launches.run.push_back({"assay_run", cuda_tile_blocks(shape, product, rows), 1, 1,
                              shape.threads, shape.shared_bytes});
      return launches;
    }
    const CudaLaunch run{"assay_run",   shape.blocks,
                         shape.splits,  in_blocks ? ceil_div(rows, shape.rows) : 1,
                         shape.threads, shape.shared_bytes};
    const LibraryProduct parts = library_product(kernel, product);
    if (shape.form == CudaProductForm::kWarpgroups) {
      if (parts.prologue) launches.run = {{"assay_prologue", rows, 1, 1, shape.threads}};
      launches.matrices = cuda_warpgroup_matrices(kernel, product, shape, rows);
      launches.run.push_back(run);
      const int64_t all = ceil_div(rows, shape.rows) * shape.blocks;
      launches.run.back().blocks_x = shape.splits > 1 ? all : std::min(all, kCudaMultiprocessors);
      return launches;
    }
    launches.run.push_back(run);
    if (!may_have_many_rows(kernel, product)) return launches;
    if (in_blocks && !parts.fp8) {
      const int64_t slots =
          tiles * product.packing.tile / CudaSlot::kColumns * CudaSlot::count(product.inputs);
      launches.decode = CudaLaunch{"assay_decode", ceil_div(slots, warps), 1, 1, shape.threads};
    }
    if (parts.prologue) {
      launches.prologue = parts.fp8 ? fp8_prologue_launch(kernel, product, rows)
                                    : CudaLaunch{"assay_prologue", rows, 1, 1, shape.threads};
    }
    if (const auto units = unit_epilogue_blocks(kernel, product); units && !parts.direct) {
      launches.epilogue = CudaLaunch{"assay_epilogue", rows, units->blocks, 1, units->threads};
    } else if (!parts.direct) {
      launches.epilogue =
          CudaLaunch{"assay_epilogue",
                     tiles * product.packing.tile / library_epilogue_columns(product.packing),
                     (rows + warps - 1) / warps, 1, shape.threads};
    }
    if (product.codes_output) {
      launches.to_codes = fp8_epilogue_launch(kernel, product, rows);
      launches.codes_buffer = only_output(kernel);
    }
    return launches;
  }
  CudaLaunches operator()(const AttentionKernel& k) const {
    CudaLaunches launches;
    if (dims.q_len > kCudaFewQueries) {
      launches.run = {cuda_prefill_launch(kernel, k, dims)};
    } else {
      launches.run = {{"assay_decode", dims.batch * cuda_attention_heads(kernel, k),
                       cuda_attention_splits(kernel, k, dims, capacity), dims.q_len,
                       cuda_decode_threads(kernel, k), cuda_decode_shared_bytes(kernel, k)}};
    }
    return launches;
  }
};

}  // namespace

std::string cuda_args_struct(const Kernel& kernel, std::string_view more_members) {
  return fmt::format(
      "\nstruct Args {{ void* buffers[{}]; const long* dims; float* workspace; {}}};\n",
      kernel.bound_buffers, more_members);
}

std::string print_cuda_rows(const Kernel& kernel, const CudaRowsMore& more) {
  return rows_source(kernel, std::get<RowsKernel>(kernel.body), more);
}

std::string cuda_entry(std::string_view name) {
  return fmt::format(
      "\nextern \"C\" __global__ void __launch_bounds__(THREADS, 1) {}(const Args args", name);
}

std::string cuda_arguments(const Kernel& kernel) {
  return argument_text(kernel, "args.", "unsigned short", "");
}

Result<std::string> print_cuda(const Kernel& kernel) {
  return std::visit(Print{kernel}, kernel.body);
}

CudaLaunches cuda_launches(const Kernel& kernel, const DimValues& dims, int64_t capacity) {
  return std::visit(Launches{kernel, dims, capacity}, kernel.body);
}

CudaWorkspace cuda_workspace(const Kernel& kernel, const DimValues& dims, int64_t capacity) {
  CudaWorkspace found;
  if (const auto* rows = std::get_if<RowsKernel>(&kernel.body)) {
    const int64_t blocks = blocks_of_row(kernel, *rows);
    if (blocks > 1) found.words = 2 * blocks * rows->rows.value(dims);  // a choice takes two
  } else if (const auto* k = std::get_if<AttentionKernel>(&kernel.body)) {
    if (dims.q_len > kCudaFewQueries) return {};
    const int64_t parts = cuda_attention_parts(kernel, *k, dims, capacity);
    (cuda_attention_on_tensor_cores(kernel, *k) ? found.words : found.floats) = parts;
  } else {
    const auto& product = std::get<ProductKernel>(kernel.body);
    const CudaProductShape shape = cuda_product_shape(kernel, product);
    const int64_t count = product.rows.value(dims);
    found = {cuda_product_words(shape, product, count),
             cuda_product_workspace(shape, product, count)};
  }
  if (found.floats > 0) found.floats += kCudaCounters;
  constexpr int64_t kAlignment = 64;
  found.words = ceil_div(found.words, kAlignment) * kAlignment;
  return found;
}

}  // namespace assay::engine
