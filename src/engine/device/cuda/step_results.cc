// Results of a step's latest run: its outputs, and which code it was.
#include <limits>
#include <set>

#include "base/files/hash.h"
#include "engine/device/cuda/cuda_step.h"

namespace assay::engine::cuda {

LoadedStep::Code CudaStep::code() const {
  Code code;
  std::string texts;
  std::set<std::string> seen;
  if (latest_ == nullptr) return code;  // no run is behind the latest reserve()
  for (const Launch& launch : latest_->launches) {
    const std::string label = launch.fetches ? "inputs" : plan_.kernels[launch.kernel].kernel.label;
    const std::string form =
        launch.product ? fmt::format("{}: cuBLASLt{}, {} rows", label,
                                     launch.product->fp8 ? " in e4m3" : "", launch.product->rows)
                       : fmt::format("{}: {} x {} x {} blocks of {} threads with {} bytes", label,
                                     launch.blocks.x, launch.blocks.y, launch.blocks.z,
                                     launch.threads, launch.shared_bytes) +
                             (launch.codes ? " to e4m3" : "");
    texts += form + "\n" + launch.text_sha256 + "\n";
    if (seen.insert(form).second) code.forms.push_back(form);
  }
  code.sha256 = sha256_hex(texts);
  return code;
}

::assay::Status CudaStep::download(size_t index) const {
  std::vector<std::byte>& bytes = outputs_[index];
  if (!bytes.empty()) return {};
  const ValueId id = plan_.graph->outputs[index];
  bytes.resize(static_cast<size_t>(output_elements(plan_, index, last_dims_)) *
               dtype_size_bytes(plan_.graph->values[id].type.dtype));
  auto downloaded = driver_.download(bytes, address(id));
  if (!downloaded) outputs_.erase(index);
  return downloaded;
}

std::span<const float> CudaStep::output_f32(size_t index) const {
  if (!download(index)) return {};
  const std::vector<std::byte>& bytes = outputs_[index];
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

float CudaStep::element_f32(size_t index, size_t element) const {
  float value = 0;
  const Address at = address(plan_.graph->outputs[index]) + element * sizeof(float);
  const auto read = driver_.download(std::as_writable_bytes(std::span(&value, 1)), at);
  return read ? value : std::numeric_limits<float>::quiet_NaN();
}

std::span<const int32_t> CudaStep::output_i32(size_t index) const {
  const std::vector<std::byte>& bytes = outputs_[index];  // by run()
  return {reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t)};
}

}  // namespace assay::engine::cuda
