// The speed at which a GPU reads its memory, measured: the limit of a memory-bound step.
#pragma once

#include "base/result.h"
#include "engine/device/cuda/driver.h"

namespace assay::engine::cuda {

// GB/s (1e9 bytes), the best of some passes over a gigabyte, each of which reads each byte once.
// Compiles one kernel: environment_error without NVRTC.
Result<double> measure_read_bandwidth(Driver& driver);

}  // namespace assay::engine::cuda
