// The tensor maps that stand behind a kernel's other arguments.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/device/cuda/driver.h"

namespace assay::engine::cuda {

// Adds them to the words of Args, of which the last is the workspace's address. Nothing is added
// where there are none.
::assay::Status add_tensor_maps(Driver& driver, std::span<const CudaMatrix> matrices,
                                std::vector<Address>& arguments);

}  // namespace assay::engine::cuda
