// An epilogue of one element a lane in two runs: one reads what it needs of memory while the
// products are summed, the other goes on with that.
#pragma once

#include <string>

#include "engine/codegen/kernel.h"

namespace assay::engine {

// Behind Args and epilogue_lane(), defines
//   enum { READS_EARLY, READS_STEADY }: the first 0 where the epilogue reads nothing but products,
//   or not as a loop over columns, the second 1 where all else that it reads is there before a step
//   begins (KernelBuffer::steady); struct Asking, whose member `kept` has what is read, and struct
//   Giving, which is made of it; early_epilogue(args, row, column, count, products, access):
//   epilogue_row() of at most EPILOGUE_LANES columns, which reads alone with Asking, and with
//   Giving stores.
std::string early_epilogue_text(const Kernel& kernel, const ProductKernel& product);

}  // namespace assay::engine
