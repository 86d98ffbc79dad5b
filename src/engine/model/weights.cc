// Weights: mapped and paged in, or converted.
#include "engine/model/weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "engine/model/convert.h"

namespace assay::engine {
namespace {

// Asks for the pages of a mapped tensor now. Only a wish: without it the first step reads them.
void page_in(const TensorView& tensor) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(tensor.data) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(tensor.data) + tensor.size_bytes();
  void* address = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
#ifdef MADV_POPULATE_READ
  if (madvise(address, end - begin, MADV_POPULATE_READ) == 0) return;
#endif
  madvise(address, end - begin, MADV_WILLNEED);
}

}  // namespace

Result<Weights> Weights::load(Checkpoint checkpoint, std::optional<DType> dtype,
                              BufferPool& memory) {
  Weights weights(std::move(checkpoint));
  weights.dtype_ = dtype.value_or(weights.config().dtype);
  for (const TensorSpec& spec : weights.checkpoint_.tensors()) {
    if (dtype && spec.format != weight_format(*dtype)) {
      ASSAY_CHECK(weights.convert_tensor(spec.name, memory));
    } else {
      page_in(weights.checkpoint_.tensor(spec.name));
    }
    weights.bytes_ += weights.tensor(spec.name).size_bytes();
  }
  return weights;
}

Status Weights::convert_tensor(const std::string& name, BufferPool& memory) {
  const TensorView& from = checkpoint_.tensor(name);
  TensorView to(nullptr, dtype_, from.shape);
  ASSAY_TRY(Buffer buffer, memory.allocate(to.size_bytes()));
  convert(from, dtype_, buffer.data());
  to.data = buffer.data();
  converted_[name] = to;
  buffers_.push_back(std::move(buffer));
  return {};
}

std::vector<TensorSpec> Weights::tensors() const {
  std::vector<TensorSpec> specs = tensor_specs(config());
  for (TensorSpec& spec : specs) spec.format = tensor(spec.name).format;
  return specs;
}

const TensorView& Weights::tensor(const std::string& name) const {
  const auto found = converted_.find(name);
  return found == converted_.end() ? checkpoint_.tensor(name) : found->second;
}

}  // namespace assay::engine
