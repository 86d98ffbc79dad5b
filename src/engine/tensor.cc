// Element types and shapes.
#include "engine/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace assay::engine {

size_t dtype_size_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
  }
  assert(false && "no such type");
  return 0;
}

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kF16:
      return "fp16";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "int32";
  }
  return "";
}

std::optional<DType> parse_dtype(std::string_view name) {
  if (name == "fp32" || name == "float32") return DType::kF32;
  if (name == "fp16" || name == "float16") return DType::kF16;
  if (name == "bf16" || name == "bfloat16") return DType::kBF16;
  return std::nullopt;
}

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(dims.size()) {
  assert(dims.size() <= kMaxRank);
  std::ranges::copy(dims, dims_.begin());
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (size_t i = 0; i < rank_; ++i) product *= dims_[i];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]",
                     fmt::join(dims_.begin(), dims_.begin() + static_cast<long>(rank_), ", "));
}

}  // namespace assay::engine
