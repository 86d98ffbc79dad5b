// Little-endian fields, one behind another.
#include "engine/model/gguf_writer.h"

#include <cassert>

namespace assay::engine {
namespace {

constexpr uint64_t kGgufAlignment = 32;  // the format's own, which no pair needs to state

template <typename T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& to, std::string_view text) {
  put(to, uint64_t{text.size()});
  to += text;
}

}  // namespace

void GgufHeader::begin(std::string_view key, GgufType type) {
  ++pair_count_;
  put_text(pairs_, key);
  put(pairs_, static_cast<uint32_t>(type));
}

void GgufHeader::begin_array(std::string_view key, GgufType type, size_t count) {
  begin(key, GgufType::kArray);
  put(pairs_, static_cast<uint32_t>(type));
  put(pairs_, uint64_t{count});
}

void GgufHeader::add(std::string_view key, uint32_t value) {
  begin(key, GgufType::kU32);
  put(pairs_, value);
}

void GgufHeader::add(std::string_view key, float value) {
  begin(key, GgufType::kF32);
  put(pairs_, value);
}

void GgufHeader::add(std::string_view key, bool value) {
  begin(key, GgufType::kBool);
  put(pairs_, static_cast<uint8_t>(value));
}

void GgufHeader::add(std::string_view key, std::string_view value) {
  begin(key, GgufType::kString);
  put_text(pairs_, value);
}

void GgufHeader::add(std::string_view key, std::span<const std::string> values) {
  begin_array(key, GgufType::kString, values.size());
  for (const std::string& value : values) put_text(pairs_, value);
}

void GgufHeader::add(std::string_view key, std::span<const float> values) {
  begin_array(key, GgufType::kF32, values.size());
  for (const float value : values) put(pairs_, value);
}

void GgufHeader::add(std::string_view key, std::span<const int32_t> values) {
  begin_array(key, GgufType::kI32, values.size());
  for (const int32_t value : values) put(pairs_, value);
}

void GgufHeader::add_stored(std::string_view key, std::span<const std::byte> stored) {
  ++pair_count_;
  put_text(pairs_, key);
  pairs_.append(reinterpret_cast<const char*>(stored.data()), stored.size());
}

void GgufHeader::add_tensor(std::string_view name, WeightFormat format,
                            std::span<const int64_t> dims) {
  const auto bytes = stored_bytes(format, dims);
  assert(bytes);
  ++tensor_count_;
  put_text(tensors_, name);
  put(tensors_, static_cast<uint32_t>(dims.size()));
  for (size_t i = dims.size(); i > 0; --i) put(tensors_, dims[i - 1]);
  put(tensors_, traits(format).gguf_type);
  put(tensors_, data_bytes_);
  data_bytes_ += *bytes + padding(*bytes);
}

size_t GgufHeader::padding(uint64_t bytes) {
  return static_cast<size_t>((kGgufAlignment - bytes % kGgufAlignment) % kGgufAlignment);
}

std::string GgufHeader::finish() const {
  std::string text = "GGUF";
  put(text, uint32_t{3});
  put(text, tensor_count_);
  put(text, pair_count_);
  text += pairs_ + tensors_;
  return text.append(padding(text.size()), '\0');
}

}  // namespace assay::engine
