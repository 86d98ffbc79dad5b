// Products: tiles of the packed weight against blocks of rows, with the nodes fused before and
// behind them printed around the template.
#include <fmt/format.h>

#include "engine/codegen/cpu/cpu_text.h"
#include "engine/codegen/cpu/print_cpu.h"
#include "engine/memory/read_ahead.h"

namespace assay::engine {
namespace {

// AHEAD_BYTES, INPUTS, ABREAST, TILE and the template's other names.
std::string sizes_text(const Kernel& kernel, const ProductKernel& product) {
  const DType dtype = kernel.buffers[product.weight].dtype;
  return fmt::format(
      "\ntypedef {} weight_t;\n"
      "enum {{ AHEAD_BYTES = {}, INPUTS = {}, ABREAST = {}, TILE = {}, TILES = {}, BLOCK = {} "
      "}};\n",
      element_type(dtype), kReadAheadBytes, product.inputs, Packing::abreast(dtype),
      product.packing.tile, tile_count(product.packing), kProductRows);
}

std::string rows_text(const ProductKernel& product) {
  return fmt::format("  const long rows = {};\n", dim_text(product.rows));
}

std::string prologue_text(const Kernel& kernel, const ProductKernel& product) {
  if (!product.has_prologue) return "";
  CPrinter printer(kernel, cpu_target());
  printer.define(product.row);
  return fmt::format(
             "\nstatic inline void prologue_row(const Args* args, long {}, float* __restrict {}) "
             "{{\n",
             CPrinter::var_name(product.row), kernel.buffers[product.x].name) +
         cpu_arguments(kernel) + printer.block(product.prologue, 1) + "}\n";
}

std::string epilogue_text(const Kernel& kernel, const ProductKernel& product) {
  std::string text = fmt::format(
      "\nstatic inline void epilogue_row(const Args* args, long {}, long index,\n"
      "                                const float* __restrict {}) {{\n",
      CPrinter::var_name(product.row), kernel.buffers[product.tile].name);
  text += cpu_arguments(kernel) + print_epilogues(kernel, product, cpu_target());
  return text + "}\n";
}

// 0: known when it runs.
int64_t known_rows(const Kernel& kernel, const ProductKernel& product) {
  const bool is_known = (product.rows.power(0) == 0 || kernel.dims.batch) &&
                        (product.rows.power(1) == 0 || kernel.dims.q_len) &&
                        product.rows.power(2) == 0;
  if (!is_known) return 0;
  return product.rows.value({.batch = kernel.dims.batch.value_or(1),
                             .q_len = kernel.dims.q_len.value_or(1),
                             .kv_len = 1});
}

std::string run_text(const Kernel& kernel, const ProductKernel& product) {
  const std::string weight = kernel.buffers[product.weight].name;
  const std::string x = kernel.buffers[product.x].name;
  std::string text =
      "\nextern \"C\" void assay_run(const Args* args, long thread, long threads) {\n" +
      cpu_arguments(kernel) + rows_text(product) +
      "  const long begin = TILES * thread / threads, end = TILES * (thread + 1) / threads;\n"
      "  if (begin == end) return;\n"
      "  float* products = args->scratch;\n"
      "  for (long row = 0; row < rows; row += BLOCK) {\n"
      "    const long count = rows - row < BLOCK ? rows - row : BLOCK;\n";
  if (product.has_prologue) {
    text +=
        "    float* inputs = products + BLOCK * TILE;\n"
        "    for (long r = 0; r < count; ++r) prologue_row(args, row + r, inputs + r * INPUTS);\n";
  } else {
    text += fmt::format("    const float* inputs = {} + row * INPUTS;\n", x);
  }
  text += fmt::format(
      "    for (long t = begin; t < end; ++t) {{\n"
      "      tile_product<{}>({} + t * TILE * PADDED_INPUTS, inputs, count, products);\n"
      "      for (long r = 0; r < count; ++r) epilogue_row(args, row + r, t, products + r * "
      "TILE);\n"
      "    }}\n"
      "  }}\n"
      "}}\n",
      known_rows(kernel, product), weight);
  return text;
}

constexpr std::string_view kLibraryEntries = R"(
extern "C" void assay_epilogue(const Args* args, long row_begin, long row_end, long tile_begin,
                               long tile_end, const float* products, long pitch) {
  for (long row = row_begin; row < row_end; ++row) {
    for (long t = tile_begin; t < tile_end; ++t) {
      epilogue_row(args, row, t, products + (row - row_begin) * pitch + (t - tile_begin) * TILE);
    }
  }
}
)";

constexpr std::string_view kPrologueEntry = R"(
extern "C" void assay_prologue(const Args* args, long begin, long end, float* out) {
  for (long row = begin; row < end; ++row) prologue_row(args, row, out + (row - begin) * INPUTS);
}
)";

}  // namespace

std::string print_cpu_product(const Kernel& kernel, const ProductKernel& product) {
  std::string text(kCpuPrelude);
  text += sizes_text(kernel, product);
  if (!kernel.buffers[product.weight].blocks) text += kCpuTileProduct;
  text += prologue_text(kernel, product);
  text += epilogue_text(kernel, product);
  if (!kernel.buffers[product.weight].blocks) text += run_text(kernel, product);
  text += kLibraryEntries;
  if (product.has_prologue) text += kPrologueEntry;
  return text;
}

}  // namespace assay::engine
