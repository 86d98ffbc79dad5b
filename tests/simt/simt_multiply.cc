// The library's product, plainly.
#include "kernel_shim.h"
#include "simt.h"

namespace {

enum Type { kF32 = 0, kF16 = 2, kBF16 = 14, kE4M3 = 28 };  // cudaDataType

float load(const void* data, int type, long at) {
  const auto* half = static_cast<const unsigned short*>(data);
  if (type == kF32) return static_cast<const float*>(data)[at];
  if (type == kE4M3) return simt_e4m3(static_cast<const unsigned char*>(data)[at]);
  return type == kF16 ? simt_f16(half[at]) : simt_bf16(half[at]);
}

void store(void* data, int type, long at, float value) {
  auto* half = static_cast<unsigned short*>(data);
  if (type == kF32) {
    static_cast<float*>(data)[at] = value;
  } else if (type == kF16) {
    ptx_cvt_rn_f16_f32(half[at], value);
  } else {
    ptx_cvt_rn_bf16_f32(half[at], value);
  }
}

}  // namespace

void simt_multiply(long rows, long outputs, long inputs, simt_matrix weight, simt_matrix x,
                   simt_matrix out, const void* addend, const void* bias) {
  for (long r = 0; r < rows; ++r) {
    for (long o = 0; o < outputs; ++o) {
      float sum = 0;
      for (long i = 0; i < inputs; ++i) {
        sum += load(x.data, x.type, r * x.pitch + i) *
               load(weight.data, weight.type, o * weight.pitch + i);
      }
      if (x.type == kE4M3) sum *= x.scales[r] * weight.scales[o];
      const long at = r * out.pitch + o;
      if (addend != nullptr) sum += load(addend, out.type, at);
      if (bias != nullptr) sum += load(bias, out.type, o);
      store(out.data, out.type, at, sum);
    }
  }
}
