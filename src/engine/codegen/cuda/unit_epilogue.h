// The kernel behind a library's product of many rows, where a thread goes over 16 bytes of products
// at a time in its registers, and loads and stores whole vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// A unit is kUnitColumns neighbouring packed columns of a row: 16 bytes of products in a type of 16
// bits.
constexpr int64_t kUnitColumns = 8;

// Blocks for a row's units.
struct UnitBlocks {
  int64_t threads = 0;  // of a block
  int64_t each = 0;     // units of a thread
  int64_t blocks = 0;   // that share a row
};

// Blocks of assay_epilogue. Absent: the epilogue of `product` isn't done by units, because the
// weight is fp32, or the place of some element that a unit loads or stores isn't known to be the
// start of a vector, or next to the one before.
std::optional<UnitBlocks> unit_epilogue_blocks(const Kernel& kernel, const ProductKernel& product);

// True if the epilogue is done by units, and all that it stores are rows of one output, in order.
bool stores_rows_by_units(const Kernel& kernel, const ProductKernel& product);
// The output of a kernel that has one.
ir::BufferId only_output(const Kernel& kernel);

// The block of a kernel that needs a whole row of the one output at once, in order, as fp32 in
// registers. Absent: there is none, because the kernel has another output, or a row is too wide.
std::optional<UnitBlocks> unit_row_block(const Kernel& kernel, const ProductKernel& product);

// Behind weight_t, Args, widen() and lane functions, where the weight's type has 16 bits: enum {
// UNITS }, of a row, and load_unit() and store_unit(), whole vectors between registers and memory
// of fp32 or of the weight's type.
std::string unit_functions_text(const Kernel& kernel, const ProductKernel& product);
// The text that ends a unit, behind these, where unit_epilogue_blocks() has blocks:
//   hold_unit(args, row, column, held): a HeldUnit of what the unit at packed column `column` loads
//   beside its products, once the kernels ahead have ended;
//   finish_unit(args, row, column, products, held): computes and stores all that is fused behind
//   the products, an array of fp32;
//   hold_unit0(args, row, at, held), unit_values0(args, row, at, products, held, values): the same
//   of the first segment, in which `at` counts columns or pairs; the values of its one store.
std::string unit_finish_text(const Kernel& kernel, const ProductKernel& product);
// The entry assay_epilogue, behind these.
std::string unit_epilogue_text(const Kernel& kernel, const ProductKernel& product);

}  // namespace assay::engine
