// Element types and shapes: the words in which the engine's parts speak of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::engine {

enum class DType { kF32, kF16, kBF16, kI32 };

size_t dtype_size_bytes(DType dtype);
std::string_view dtype_name(DType dtype);                 // fp32 | fp16 | bf16 | int32
std::optional<DType> parse_dtype(std::string_view name);  // also float32, float16, bfloat16

// At most four dims, all >= 0; row-major and contiguous unless a view says otherwise.
class Shape {
 public:
  static constexpr size_t kMaxRank = 4;
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);  // at most kMaxRank: assert

  size_t rank() const { return rank_; }
  int64_t operator[](size_t i) const { return dims_[i]; }
  int64_t elements() const;       // 1 for rank 0
  std::string to_string() const;  // "[2, 3]"
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
};

}  // namespace assay::engine
