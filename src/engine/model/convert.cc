// Conversions between element types, by integer operations that compilers turn into vector code.
#include "engine/model/convert.h"

#include <cassert>
#include <cstring>
#include <vector>

namespace assay::engine {
namespace {

constexpr uint32_t kF16LeastNormal = 0x0400;
constexpr uint32_t kF16Infinity = 0x7C00;
constexpr uint32_t kF32Infinity = 0x7F800000;

struct F32 {
  using Stored = float;
  static float load(Stored x) { return x; }
  static Stored store(float x) { return x; }
};
struct F16 {
  using Stored = uint16_t;
  static float load(Stored x) { return f16_to_f32(x); }
  static Stored store(float x) { return f32_to_f16(x); }
};
struct BF16 {
  using Stored = uint16_t;
  static float load(Stored x) { return bf16_to_f32(x); }
  static Stored store(float x) { return f32_to_bf16(x); }
};

template <typename From, typename To>
void convert_elements(const std::byte* from, size_t count, std::byte* out) {
  for (size_t i = 0; i < count; ++i) {
    typename From::Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    const typename To::Stored result = To::store(From::load(stored));
    std::memcpy(out + i * sizeof result, &result, sizeof result);
  }
}

template <typename From>
void convert_from(const std::byte* from, size_t count, DType to, std::byte* out) {
  switch (to) {
    case DType::kF32:
      return convert_elements<From, F32>(from, count, out);
    case DType::kF16:
      return convert_elements<From, F16>(from, count, out);
    case DType::kBF16:
      return convert_elements<From, BF16>(from, count, out);
    case DType::kI32:
      assert(false && "not a float type");
  }
}

// Row by row.
void convert_blocks(const TensorView& from, DType to, std::byte* out) {
  const int64_t width = from.row_values();
  const auto count = static_cast<size_t>(width);
  std::vector<float> row(count);
  for (int64_t i = 0; i * width < from.shape.elements(); ++i) {
    decode_row(from, i, row.data());
    convert_from<F32>(reinterpret_cast<const std::byte*>(row.data()), count, to, out);
    out += count * dtype_size_bytes(to);
  }
}

}  // namespace

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} << 16 & 0x80000000u;
  const uint32_t magnitude = bits & 0x7FFFu;
  // Not by scaling an fp32 subnormal: threads that flush those to zero must get the same answer.
  const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t result = magnitude < kF16LeastNormal ? subnormal : normal;
  if (magnitude >= kF16Infinity) result = magnitude << 13 | kF32Infinity;
  return std::bit_cast<float>(result | sign);
}

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Normal results: rebias the exponent, then round half to even on the 13 bits that go.
  const uint32_t normal = (magnitude - (112u << 23) + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
  // Subnormal results: adding 0.5 leaves the rounded multiple of 2^-24 in the low mantissa bits.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  if (magnitude >= (143u << 23)) result = kF16Infinity;  // 65536 and above; 65520.. round up to it
  if (magnitude > kF32Infinity) result = 0x7E00u | (magnitude >> 13 & 0x3FFu);
  return static_cast<uint16_t>(result | sign);
}

void convert(const TensorView& from, DType to, std::byte* out) {
  if (from.format == weight_format(to)) {
    if (from.size_bytes() > 0) std::memcpy(out, from.data, from.size_bytes());
    return;
  }
  if (from.in_blocks()) return convert_blocks(from, to, out);
  const auto count = static_cast<size_t>(from.shape.elements());
  switch (from.element()) {
    case DType::kF32:
      return convert_from<F32>(from.data, count, to, out);
    case DType::kF16:
      return convert_from<F16>(from.data, count, to, out);
    case DType::kBF16:
      return convert_from<BF16>(from.data, count, to, out);
    case DType::kI32:
      assert(false && "not a float type");
  }
}

}  // namespace assay::engine
