// Kernels as C++ for the system compiler.
#pragma once

#include <string>

#include "engine/codegen/kernel.h"
#include "engine/codegen/print_c.h"

namespace assay::engine {

// A translation unit of C++ without any #include, with the extern "C" functions of KernelFunctions:
// assay_run, assay_prologue, assay_epilogue. The same kernel gives the same text; layers that
// differ by their weights alone give the same text.
std::string print_cpu(const Kernel& kernel);

// Parts that the printer's files share.
const CTarget& cpu_target();

// Lines that define the dims, and the bound buffers, from `args`.
std::string cpu_arguments(const Kernel& kernel);

std::string print_cpu_product(const Kernel& kernel, const ProductKernel& product);

}  // namespace assay::engine
