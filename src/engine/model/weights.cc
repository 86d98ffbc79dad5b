// Weights: mapped and paged in, or converted.
#include "engine/model/weights.h"

#include <algorithm>
#include <utility>

#include "base/process/thread_pool.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

// Rows of a transposed weight that are read together: their codes lie in the same lines of memory.
constexpr size_t kRowsAtOnce = 64;

// Rows of llama.cpp's order (CheckpointFiles::interleaved) in the engine's; a bias's are elements.
void order_rows(const TensorView& from, int64_t heads, std::byte* out) {
  const int64_t rows = from.shape[0], head_dim = rows / heads;
  const size_t bytes = from.size_bytes() / static_cast<size_t>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / head_dim, at = row % head_dim;
    const int64_t to = head * head_dim + at % 2 * (head_dim / 2) + at / 2;
    std::copy_n(from.data + static_cast<size_t>(row) * bytes, bytes,
                out + static_cast<size_t>(to) * bytes);
  }
}

}  // namespace

Result<Weights> Weights::load(Checkpoint checkpoint, std::optional<DType> dtype, BufferPool& memory,
                              Paging paging) {
  Weights weights(std::move(checkpoint));
  weights.dtype_ = dtype.value_or(weights.config().dtype);
  for (const TensorSpec& spec : weights.checkpoint_.tensors()) {
    const WeightFormat format = dtype ? weight_format(*dtype) : spec.format;
    const bool ordered = weights.checkpoint_.interleaved_heads(spec.name) == 0;
    if (const RowReader* const reader = weights.checkpoint_.repacked(spec.name)) {
      const TensorView& from = weights.checkpoint_.tensor(spec.name);
      TensorView to(nullptr, format, from.shape);
      if (format == from.format) to.input_order = from.input_order;
      ASSAY_TRY(Buffer buffer, memory.allocate(to.size_bytes()));
      if (format == from.format) {
        weights.unmade_[spec.name] = buffer.data();
      } else {
        repack(from, *reader, to, buffer.data());
        to.data = buffer.data();
      }
      weights.copied_[spec.name] = to;
      weights.buffers_.push_back(std::move(buffer));
    } else if (!ordered || format != spec.format) {
      ASSAY_CHECK(weights.copy_tensor(spec.name, format, memory));
    }
    weights.bytes_ += weights.view(spec.name).size_bytes();
  }
  if (paging == Paging::kNow) weights.page_in();
  return weights;
}

void Weights::page_in(const std::string& name) const {
  if (paged_in_ || copied_.contains(name)) return;
  const TensorView& tensor = checkpoint_.tensor(name);
  assay::page_in({tensor.data, tensor.size_bytes()});
}

void Weights::page_in() const {
  for (const TensorSpec& spec : checkpoint_.tensors()) page_in(spec.name);
  paged_in_ = true;
}

Status Weights::copy_tensor(const std::string& name, WeightFormat format, BufferPool& memory) {
  TensorView from = checkpoint_.tensor(name);
  TensorView to(nullptr, format, from.shape);
  std::vector<std::byte> ordered;
  if (const int64_t heads = checkpoint_.interleaved_heads(name); heads > 0) {
    ordered.resize(from.size_bytes());
    order_rows(from, heads, ordered.data());
    from.data = ordered.data();
  }
  ASSAY_TRY(Buffer buffer, memory.allocate(to.size_bytes()));
  if (from.format == format) {
    std::copy_n(from.data, from.size_bytes(), buffer.data());
  } else {
    convert(from, to.element(), buffer.data());
  }
  to.data = buffer.data();
  copied_[name] = to;
  buffers_.push_back(std::move(buffer));
  return {};
}

void Weights::repack(const TensorView& from, const RowReader& reader, const TensorView& to,
                     std::byte* bytes) {
  const int64_t width = from.row_values();
  ThreadPool pool(available_cpus());
  pool.parallel_for(static_cast<size_t>(from.shape[0]), kRowsAtOnce, [&](size_t begin, size_t end) {
    const auto first = static_cast<int64_t>(begin), count = static_cast<int64_t>(end - begin);
    const size_t row_bytes = to.size_bytes() / static_cast<size_t>(to.shape[0]);
    std::byte* const rows = bytes + begin * row_bytes;
    if (to.format == from.format) return reader(first, count, rows);
    TensorView some(nullptr, from.format, Shape{count, width});
    std::vector<std::byte> read(some.size_bytes());
    reader(first, count, read.data());
    some.data = read.data();
    some.input_order = from.input_order;
    convert(some, to.element(), rows);
  });
}

std::string Weights::block_formats() const {
  std::map<WeightFormat, int64_t> values;
  for (const TensorSpec& spec : tensors()) {
    if (traits(spec.format).in_blocks()) values[spec.format] += spec.shape.elements();
  }
  std::vector<std::pair<int64_t, std::string>> names;
  for (const auto& [format, count] : values) names.emplace_back(-count, traits(format).name);
  std::ranges::sort(names);
  std::string text;
  for (const auto& [count, name] : names) text += (text.empty() ? "" : "+") + name;
  return text;
}

std::string Weights::quantization() const {
  std::string formats = block_formats();
  const std::string& stated = checkpoint_.quantization();
  return formats.empty() || stated.empty() ? formats : stated;
}

std::vector<TensorSpec> Weights::tensors() const {
  std::vector<TensorSpec> specs = tensor_specs(config());
  for (TensorSpec& spec : specs) {
    spec.format = view(spec.name).format;
    spec.input_order = view(spec.name).input_order;
  }
  return specs;
}

const TensorView& Weights::tensor(const std::string& name) const {
  if (const auto unmade = unmade_.find(name); unmade != unmade_.end()) {
    TensorView& made = copied_.at(name);
    repack(checkpoint_.tensor(name), *checkpoint_.repacked(name), made, unmade->second);
    made.data = unmade->second;
    unmade_.erase(unmade);
  }
  return view(name);
}

const TensorView& Weights::view(const std::string& name) const {
  const auto found = copied_.find(name);
  return found == copied_.end() ? checkpoint_.tensor(name) : found->second;
}

const RowReader* Weights::rows(const std::string& name) const {
  return unmade_.contains(name) ? checkpoint_.repacked(name) : nullptr;
}

}  // namespace assay::engine
