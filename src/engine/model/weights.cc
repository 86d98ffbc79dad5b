// Weights: mapped and paged in, or converted.
#include "engine/model/weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
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
  const DType stored = weights.config().dtype;
  weights.dtype_ = dtype.value_or(stored);
  if (weights.dtype_ != stored) {
    ASSAY_CHECK(weights.convert_all(memory));
    return weights;
  }
  for (const TensorSpec& spec : tensor_specs(weights.config())) {
    page_in(weights.checkpoint_.tensor(spec.name));
  }
  weights.bytes_ = weights.checkpoint_.weight_bytes();
  return weights;
}

Status Weights::convert_all(BufferPool& memory) {
  for (const TensorSpec& spec : tensor_specs(config())) {
    const TensorView& from = checkpoint_.tensor(spec.name);
    TensorView to{.data = nullptr, .dtype = dtype_, .shape = from.shape};
    ASSAY_TRY(Buffer buffer, memory.allocate(to.size_bytes()));
    convert(from, dtype_, buffer.data());
    to.data = buffer.data();
    bytes_ += to.size_bytes();
    converted_[spec.name] = to;
    buffers_.push_back(std::move(buffer));
  }
  return {};
}

const TensorView& Weights::tensor(const std::string& name) const {
  if (converted_.empty()) return checkpoint_.tensor(name);
  const auto found = converted_.find(name);
  assert(found != converted_.end());
  return found->second;
}

}  // namespace assay::engine
