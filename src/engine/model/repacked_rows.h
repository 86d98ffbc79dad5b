// Rows of quantised weights in blocks, from the bytes of the tensors in which a file has them. All
// pointers may have any address, and must outlive the objects.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/model/checkpoint.h"
#include "engine/model/convert.h"

namespace assay::engine {

inline constexpr int64_t kCodesOfWord = 8;  // of 4 bits

inline uint32_t word_at(const std::byte* data, int64_t i) {
  uint32_t word;
  std::memcpy(&word, data + i * 4, sizeof word);
  return word;
}

inline float element_at(const std::byte* data, DType dtype, int64_t i) {
  uint16_t half;
  float single;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(&single, data + i * 4, sizeof single);
      return single;
    case DType::kF16:
      std::memcpy(&half, data + i * 2, sizeof half);
      return f16_to_f32(half);
    case DType::kBF16:
      std::memcpy(&half, data + i * 2, sizeof half);
      return bf16_to_f32(half);
    case DType::kI32:
      break;
  }
  assert(false && "not a float type");
  return 0;
}

// The place in a word of the code of output `o` in AWQ's order 0, 2, 4, 6, 1, 3, 5, 7.
inline constexpr std::array kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

// The pointers of one 4-bit weight.
struct Int4Weight {
  QuantizationMethod method = QuantizationMethod::kAwq;
  int64_t inputs = 0, outputs = 0, group = 0;
  const std::byte* codes = nullptr;
  const std::byte* zeros = nullptr;  // null: 8
  const std::byte* scales = nullptr;
  DType scale_type = DType::kF16;
  uint8_t added_to_zeros = 0;
  const int32_t* order = nullptr;  // TensorView::input_order
  WeightFormat format = WeightFormat::kInt4_G128;

  int64_t groups() const { return inputs / group; }
  uint32_t code(int64_t o, int64_t i) const {
    switch (method) {
      case QuantizationMethod::kAwq:
        return word_at(codes, (i * outputs + o) / kCodesOfWord) >>
                   4 * kAwqPlaces[static_cast<size_t>(o % kCodesOfWord)] &
               15;
      case QuantizationMethod::kGptq:
        return word_at(codes, i / kCodesOfWord * outputs + o) >> 4 * (i % kCodesOfWord) & 15;
      case QuantizationMethod::kPacked:
      case QuantizationMethod::kFp8:
        break;
    }
    return word_at(codes, (o * inputs + i) / kCodesOfWord) >> 4 * (i % kCodesOfWord) & 15;
  }
  uint8_t zero(int64_t o, int64_t g) const {
    if (zeros == nullptr) return 8;
    int64_t at = (g * outputs + o) / kCodesOfWord, place = o % kCodesOfWord;
    if (method == QuantizationMethod::kAwq) place = kAwqPlaces[static_cast<size_t>(place)];
    if (method == QuantizationMethod::kPacked) at = o / kCodesOfWord * groups() + g;
    return static_cast<uint8_t>((word_at(zeros, at) >> 4 * place & 15) + added_to_zeros);
  }
  float scale(int64_t o, int64_t g) const {
    const bool by_output = method == QuantizationMethod::kPacked;
    return element_at(scales, scale_type, by_output ? o * groups() + g : g * outputs + o);
  }

  void row(int64_t o, std::byte* out) const {
    const int64_t block = traits(format).block_values;
    for (int64_t first = 0; first < inputs; first += block) {
      const int64_t g = first / group;
      const uint32_t word = int4_word(scale(o, g), zero(o, g));
      std::memcpy(out, &word, sizeof word);
      out += sizeof word;
      for (int64_t i = first; i < first + block; i += 2) {
        const int64_t low = order == nullptr ? i : order[i];
        const int64_t high = order == nullptr ? i + 1 : order[i + 1];
        *out++ = static_cast<std::byte>(code(o, low) | code(o, high) << 4);
      }
    }
  }
};

struct Fp8Weight {
  int64_t inputs = 0;
  const std::byte* values = nullptr;
  const std::byte* scales = nullptr;
  DType scale_type = DType::kF32;
  bool one_scale = false;
  WeightFormat format = WeightFormat::kFp8_G128;

  void row(int64_t o, std::byte* out) const {
    const float scale = element_at(scales, scale_type, one_scale ? 0 : o);
    const int64_t block = traits(format).block_values;
    for (int64_t i = 0; i < inputs; i += block) {
      std::memcpy(out, &scale, sizeof scale);
      std::memcpy(out + 4, values + o * inputs + i, static_cast<size_t>(block));
      out += traits(format).block_bytes;
    }
  }
};

template <typename Weight>
RowReader reader_of(const Weight& weight) {
  const auto bytes = static_cast<size_t>(*stored_bytes(weight.format, std::array{weight.inputs}));
  return [weight, bytes](int64_t first, int64_t count, std::byte* rows) {
    for (int64_t o = first; o < first + count; ++o, rows += bytes) weight.row(o, rows);
  };
}

}  // namespace assay::engine
