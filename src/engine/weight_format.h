// The format in which a weight is stored: elements of a float type, or blocks of values that share
// scales, as GGUF has them or as quantised safetensors are repacked; and the view of a tensor that
// is stored so.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/tensor.h"

namespace assay::engine {

enum class WeightFormat {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kInt4_G32,
  kInt4_G64,
  kInt4_G128,
  kFp8_G32,
  kFp8_G128,
};

// The type of formats that GGUF doesn't have.
inline constexpr uint32_t kNoGgufType = ~uint32_t{0};

// A row's values lie in blocks of `block_values` that follow each other without a gap; a row that
// is no multiple of that doesn't exist. Formats of elements have blocks of one value.
struct FormatTraits {
  WeightFormat format;
  std::string_view name;  // "q4_k"; of elements dtype_name()'s
  int64_t block_values = 1;
  size_t block_bytes = 0;
  uint32_t gguf_type = 0;  // ggml_type in a GGUF file
  DType element =
      DType::kF32;  // the type that holds a decoded value exactly enough: fp32 for blocks
  bool in_blocks() const { return block_values > 1; }
  double bits_a_weight() const {
    return 8.0 * static_cast<double>(block_bytes) / static_cast<double>(block_values);
  }
};

// All formats, in the order of the enumeration: the one table.
inline constexpr std::array kFormats = {
    FormatTraits{WeightFormat::kF32, "fp32", 1, 4, 0, DType::kF32},
    FormatTraits{WeightFormat::kF16, "fp16", 1, 2, 1, DType::kF16},
    FormatTraits{WeightFormat::kBF16, "bf16", 1, 2, 30, DType::kBF16},
    FormatTraits{WeightFormat::kQ8_0, "q8_0", 32, 34, 8, DType::kF32},
    FormatTraits{WeightFormat::kQ4_0, "q4_0", 32, 18, 2, DType::kF32},
    FormatTraits{WeightFormat::kQ4_1, "q4_1", 32, 20, 3, DType::kF32},
    FormatTraits{WeightFormat::kQ5_0, "q5_0", 32, 22, 6, DType::kF32},
    FormatTraits{WeightFormat::kQ5_1, "q5_1", 32, 24, 7, DType::kF32},
    FormatTraits{WeightFormat::kQ4_K, "q4_k", 256, 144, 12, DType::kF32},
    FormatTraits{WeightFormat::kQ5_K, "q5_k", 256, 176, 13, DType::kF32},
    FormatTraits{WeightFormat::kQ6_K, "q6_k", 256, 210, 14, DType::kF32},
    FormatTraits{WeightFormat::kIQ4_NL, "iq4_nl", 32, 18, 20, DType::kF32},
    FormatTraits{WeightFormat::kInt4_G32, "int4_g32", 32, 20, kNoGgufType, DType::kF32},
    FormatTraits{WeightFormat::kInt4_G64, "int4_g64", 64, 36, kNoGgufType, DType::kF32},
    FormatTraits{WeightFormat::kInt4_G128, "int4_g128", 128, 68, kNoGgufType, DType::kF32},
    FormatTraits{WeightFormat::kFp8_G32, "fp8_g32", 32, 36, kNoGgufType, DType::kF32},
    FormatTraits{WeightFormat::kFp8_G128, "fp8_g128", 128, 132, kNoGgufType, DType::kF32},
};
constexpr bool formats_are_in_order() {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].format != static_cast<WeightFormat>(i)) return false;
  }
  return true;
}
static_assert(formats_are_in_order());

constexpr const FormatTraits& traits(WeightFormat format) {
  return kFormats[static_cast<size_t>(format)];
}

std::optional<WeightFormat> parse_weight_format(std::string_view name);
std::optional<WeightFormat> weight_format_of_gguf(uint32_t type);
// The format of elements of this type, which must be a float type: assert.
WeightFormat weight_format(DType dtype);

// The format of groups of this many inputs that share a scale: that of the largest block which
// divides them. Absent if none does. int4 blocks: a word, whose upper 24 bits are those of an fp32
// scale and whose last byte is a zero, then 4 bits a value, two in a byte, the first in its low
// half; a value is (code - zero) * scale. Scales of fp16 and bf16 lose nothing. fp8 blocks: an fp32
// scale, then a byte of e4m3 a value.
std::optional<WeightFormat> int4_format(int64_t group);
std::optional<WeightFormat> fp8_format(int64_t group);
// The word of an int4 block, its scale to the nearest that fits.
uint32_t int4_word(float scale, uint8_t zero);
// The value of each code of iq4_nl, in steps of a block's scale. Source: ggml-common.h,
// kvalues_iq4nl.
inline constexpr std::array<int8_t, 16> kUnevenSteps = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};
// As e4m3fn: no infinity, and one NaN of each sign.
float e4m3_to_f32(uint8_t bits);

// Bytes of a tensor. Absent if its rows (the last dimension; one value if there is none) are no
// whole blocks, if a dimension is negative, or if the bytes don't fit 63 bits.
std::optional<uint64_t> stored_bytes(WeightFormat format, std::span<const int64_t> dims);

// out[i] = value i of whole blocks that begin at `blocks`, which may lie at any address. `count` is
// a multiple of the format's block: assert. The reference that every kernel is held against.
// Formulas: llama.cpp, ggml-quants.c, dequantize_row_*; layouts: ggml-common.h, block_*.
void decode(WeightFormat format, const std::byte* blocks, int64_t count, float* out);

// Bytes of a weight that another object owns; contiguous, row-major.
struct TensorView {
  const std::byte* data = nullptr;
  WeightFormat format = WeightFormat::kF32;
  Shape shape;
  // Element i is the input whose weight is stored at i, in blocks whose rows lie in another order
  // than the inputs (GPTQ's act-order). Null: i. Another object owns it.
  const int32_t* input_order = nullptr;

  TensorView() = default;
  TensorView(const std::byte* bytes, WeightFormat stored, const Shape& dims)
      : data(bytes), format(stored), shape(dims) {}
  TensorView(const std::byte* bytes, DType dtype, const Shape& dims)
      : TensorView(bytes, weight_format(dtype), dims) {}

  // The type of its elements; of blocks the type that they are decoded to.
  DType element() const { return traits(format).element; }
  bool in_blocks() const { return traits(format).in_blocks(); }
  size_t size_bytes() const { return bytes_of(shape.elements()); }
  int64_t row_values() const { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
  // Row `i` of the last dimension.
  const std::byte* row(int64_t i) const { return data + bytes_of(i * row_values()); }
  const float* f32() const {
    assert(format == WeightFormat::kF32);
    return reinterpret_cast<const float*>(data);
  }

 private:
  size_t bytes_of(int64_t values) const {
    const FormatTraits& t = traits(format);
    return static_cast<size_t>(values / t.block_values) * t.block_bytes;
  }
};

// out = all values of a row of the last dimension, in the order of the inputs.
void decode_row(const TensorView& tensor, int64_t row, float* out);

}  // namespace assay::engine
