// The header of a GGUF file, version 3, put together pair by pair and tensor by tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf.h"
#include "engine/weight_format.h"

namespace assay::engine {

class GgufHeader {
 public:
  void add(std::string_view key, uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, std::span<const std::string> values);
  void add(std::string_view key, std::span<const float> values);
  void add(std::string_view key, std::span<const int32_t> values);
  // A value as another file has it.
  void add_stored(std::string_view key, std::span<const std::byte> stored);

  // In the order in which their data follow the header; `dims` as the engine orders them.
  void add_tensor(std::string_view name, WeightFormat format, std::span<const int64_t> dims);

  // Ends at the alignment, where the first tensor's data begin.
  std::string finish() const;
  // Zeros that follow a tensor's data of so many bytes.
  static size_t padding(uint64_t bytes);

 private:
  void begin(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType type, size_t count);

  std::string pairs_, tensors_;
  uint64_t pair_count_ = 0, tensor_count_ = 0;
  uint64_t data_bytes_ = 0;
};

}  // namespace assay::engine
