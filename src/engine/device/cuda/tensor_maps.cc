// A map is 16 words of its own, whatever the driver keeps in them.
#include "engine/device/cuda/tensor_maps.h"

#include <array>
#include <bit>

namespace assay::engine::cuda {

::assay::Status add_tensor_maps(Driver& driver, std::span<const CudaMatrix> matrices,
                                std::vector<Address>& arguments) {
  constexpr size_t kWords = sizeof(TensorMap) / sizeof(Address), kAligned = 64 / sizeof(Address);
  const Address workspace = arguments.back();
  if (!matrices.empty()) arguments.resize((arguments.size() + kAligned - 1) / kAligned * kAligned);
  for (const CudaMatrix& matrix : matrices) {
    const auto offset = static_cast<Address>(matrix.workspace_at) * sizeof(float);
    const Address at = matrix.buffer ? arguments[*matrix.buffer] : workspace + offset;
    ASSAY_TRY(const TensorMap map, driver.map(at, matrix.lines, matrix.pitch, matrix.box_lines));
    const auto words = std::bit_cast<std::array<Address, kWords>>(map);
    arguments.insert(arguments.end(), words.begin(), words.end());
  }
  return {};
}

}  // namespace assay::engine::cuda
