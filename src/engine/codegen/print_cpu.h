// Parts of the CPU printer that its files share.
#pragma once

#include <string>

#include "engine/codegen/kernel.h"
#include "engine/codegen/print_c.h"

namespace assay::engine {

const CTarget& cpu_target();

// Lines that define the dims, and the bound buffers, from `args`.
std::string cpu_arguments(const Kernel& kernel);

std::string print_cpu_product(const Kernel& kernel, const ProductKernel& product);

}  // namespace assay::engine
