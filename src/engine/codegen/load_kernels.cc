// Kernels printed, then loaded as sources.
#include "engine/codegen/kernel_library.h"
#include "engine/codegen/print.h"

namespace assay::engine {

Result<std::vector<KernelFunctions>> KernelLibrary::load(std::span<const Kernel> kernels) {
  std::vector<std::string> sources;
  for (const Kernel& kernel : kernels) sources.push_back(print_cpu(kernel));
  return load_sources(sources);
}

}  // namespace assay::engine
