// Both layouts keep four streams of weights in flight a thread (engine/memory/read_ahead.h): so
// many fill a core's miss buffers (see device/cpu/bandwidth.cc), and a product of few rows is bound
// by memory.
#include "engine/ops/cpu/matvec.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "engine/memory/read_ahead.h"
#include "engine/ops/element.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/cpu/matvec.cc"
#include "hwy/foreach_target.h"  // must come first

#include "engine/ops/cpu/simd_load-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::engine::HWY_NAMESPACE {

constexpr int64_t kStreams = 4;  // weight rows read side by side
constexpr int64_t kMaxRows = 4;  // activation rows whose sums fit the registers beside them
constexpr int64_t kLineBytes = 64;
// Columns of [in, out] whose sums stay in the first-level cache while rows of weights stream by.
constexpr int64_t kColumnBlock = 4096;
// [in, out] has twice the streams: the sums pass through the cache half as often.
constexpr int64_t kInputStreams = 8;

template <class W>
void prefetch(const W* p) {
  hwy::Prefetch(p);  // no access: past the end of the weights it can't fault
}

inline float bias_at(const cpu::Matvec& m, int64_t output) {
  return m.bias != nullptr ? load_element(m.bias->data, m.bias->element(), output) : 0.0f;
}

// [out, in]: the dot products of `rows` rows of x with `streams` rows of weights, `pitch` outputs
// apart.
template <int64_t rows, int64_t streams, class W>
HWY_INLINE void dot_block(const cpu::Matvec& m, const W* weights, int64_t output, int64_t pitch,
                          int64_t row) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t line = kLineBytes / static_cast<int64_t>(sizeof(W));  // elements
  constexpr int64_t ahead = kReadAheadBytes / static_cast<int64_t>(sizeof(W));
  const float* x = m.x + row * m.inputs;
  const W* w = weights + output * m.inputs;
  const int64_t stride = pitch * m.inputs;
  hn::Vec<decltype(d)> sums[rows][streams];
  for (auto& per_row : sums) {
    for (auto& sum : per_row) sum = hn::Zero(d);
  }
  const auto step = [&](int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> xs[rows];
    for (int64_t r = 0; r < rows; ++r) xs[r] = hn::LoadU(d, x + r * m.inputs + i);
    for (int64_t s = 0; s < streams; ++s) {
      const auto v = load_f32(d, w + s * stride + i);
      for (int64_t r = 0; r < rows; ++r) sums[r][s] = hn::MulAdd(v, xs[r], sums[r][s]);
    }
  };
  int64_t i = 0;
  for (; i + line <= m.inputs; i += line) {
    for (int64_t s = 0; s < streams; ++s) prefetch(w + s * stride + i + ahead);
    for (int64_t j = 0; j < line; j += lanes) step(i + j);
  }
  for (; i + lanes <= m.inputs; i += lanes) step(i);
  for (int64_t s = 0; s < streams; ++s) {
    const float bias = bias_at(m, output + s * pitch);
    for (int64_t r = 0; r < rows; ++r) {
      float sum = hn::GetLane(hn::SumOfLanes(d, sums[r][s]));
      for (int64_t j = i; j < m.inputs; ++j) {
        sum += x[r * m.inputs + j] * scalar_f32(w[s * stride + j]);
      }
      m.out[(row + r) * m.outputs + output + s * pitch] = sum + bias;
    }
  }
}

// All rows of x against the same few rows of weights: from memory for the first, from cache after.
template <int64_t streams, class W>
HWY_INLINE void dot_rows(const cpu::Matvec& m, const W* weights, int64_t output, int64_t pitch) {
  int64_t row = 0;
  for (; row + kMaxRows <= m.rows; row += kMaxRows) {
    dot_block<kMaxRows, streams>(m, weights, output, pitch, row);
  }
  switch (m.rows - row) {
    case 3:
      return dot_block<3, streams>(m, weights, output, pitch, row);
    case 2:
      return dot_block<2, streams>(m, weights, output, pitch, row);
    case 1:
      return dot_block<1, streams>(m, weights, output, pitch, row);
    default:
      return;
  }
}

// The streams run through a quarter of the outputs each, so that each is one contiguous read.
template <class W>
void dot_outputs(const cpu::Matvec& m, const W* weights, int64_t begin, int64_t end) {
  const int64_t pitch = (end - begin) / kStreams;
  for (int64_t o = begin; o < begin + pitch; ++o) dot_rows<kStreams>(m, weights, o, pitch);
  for (int64_t o = begin + pitch * kStreams; o < end; ++o) dot_rows<1>(m, weights, o, 1);
}

// [in, out]: some rows of x times some rows of weights, `pitch` inputs apart, added to the outputs.
template <int64_t rows, int64_t streams, class W>
struct Accumulate {
  const cpu::Matvec& m;
  const W* w;      // the first weight of the first stream's input
  const float* x;  // the first row's element of that input
  float* out;      // of the first row
  int64_t pitch;

  template <class D>
  HWY_INLINE void columns(D d, int64_t column) const {
    hn::Vec<D> vs[streams];
    for (int64_t s = 0; s < streams; ++s) vs[s] = load_f32(d, w + s * pitch * m.outputs + column);
    for (int64_t r = 0; r < rows; ++r) {
      auto sum = hn::LoadU(d, out + r * m.outputs + column);
      for (int64_t s = 0; s < streams; ++s) {
        sum = hn::MulAdd(vs[s], hn::Set(d, x[r * m.inputs + s * pitch]), sum);
      }
      hn::StoreU(sum, d, out + r * m.outputs + column);
    }
  }

  HWY_INLINE void one_column(int64_t column) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t s = 0; s < streams; ++s) {
        out[r * m.outputs + column] +=
            scalar_f32(w[s * pitch * m.outputs + column]) * x[r * m.inputs + s * pitch];
      }
    }
  }

  HWY_INLINE void run(int64_t begin, int64_t end) const {
    const hn::CappedTag<float, 16> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    constexpr int64_t line = kLineBytes / static_cast<int64_t>(sizeof(W));
    constexpr int64_t ahead = kReadAheadBytes / static_cast<int64_t>(sizeof(W));
    int64_t c = begin;
    for (; c + line <= end; c += line) {
      for (int64_t s = 0; s < streams; ++s) prefetch(w + s * pitch * m.outputs + c + ahead);
      for (int64_t j = 0; j < line; j += lanes) columns(d, c + j);
    }
    for (; c + lanes <= end; c += lanes) columns(d, c);
    for (; c < end; ++c) one_column(c);
  }
};

template <int64_t rows, int64_t streams, class W>
HWY_INLINE void accumulate(const cpu::Matvec& m, const W* weights, int64_t input, int64_t pitch,
                           int64_t row, int64_t begin, int64_t end) {
  Accumulate<rows, streams, W>{m, weights + input * m.outputs, m.x + row * m.inputs + input,
                               m.out + row * m.outputs, pitch}
      .run(begin, end);
}

template <int64_t streams, class W>
HWY_INLINE void accumulate_rows(const cpu::Matvec& m, const W* weights, int64_t input,
                                int64_t pitch, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + kMaxRows <= m.rows; row += kMaxRows) {
    accumulate<kMaxRows, streams>(m, weights, input, pitch, row, begin, end);
  }
  switch (m.rows - row) {
    case 3:
      return accumulate<3, streams>(m, weights, input, pitch, row, begin, end);
    case 2:
      return accumulate<2, streams>(m, weights, input, pitch, row, begin, end);
    case 1:
      return accumulate<1, streams>(m, weights, input, pitch, row, begin, end);
    default:
      return;
  }
}

// Here the streams run through an eighth of the inputs each.
template <class W>
void sum_inputs(const cpu::Matvec& m, const W* weights, int64_t begin, int64_t end) {
  const int64_t pitch = (end - begin) / kInputStreams;
  for (int64_t first = 0; first < m.outputs; first += kColumnBlock) {
    const int64_t last = std::min(m.outputs, first + kColumnBlock);
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t o = first; o < last; ++o) m.out[r * m.outputs + o] = bias_at(m, o);
    }
    for (int64_t i = begin; i < begin + pitch; ++i) {
      accumulate_rows<kInputStreams>(m, weights, i, pitch, first, last);
    }
    for (int64_t i = begin + pitch * kInputStreams; i < end; ++i) {
      accumulate_rows<1>(m, weights, i, 1, first, last);
    }
  }
}

void matvec_out_in(const cpu::Matvec& m, int64_t begin, int64_t end) {
  assert(!m.weight.in_blocks());
  const std::byte* weights = m.weight.data;
  switch (m.weight.element()) {
    case DType::kBF16:
      return dot_outputs(m, reinterpret_cast<const hwy::bfloat16_t*>(weights), begin, end);
    case DType::kF16:
      return dot_outputs(m, reinterpret_cast<const hwy::float16_t*>(weights), begin, end);
    case DType::kF32:
      return dot_outputs(m, reinterpret_cast<const float*>(weights), begin, end);
    case DType::kI32:
      assert(false && "not a float type");
  }
}

void matvec_in_out(const cpu::Matvec& m, int64_t begin, int64_t end) {
  assert(!m.weight.in_blocks());
  const std::byte* weights = m.weight.data;
  switch (m.weight.element()) {
    case DType::kBF16:
      return sum_inputs(m, reinterpret_cast<const hwy::bfloat16_t*>(weights), begin, end);
    case DType::kF16:
      return sum_inputs(m, reinterpret_cast<const hwy::float16_t*>(weights), begin, end);
    case DType::kF32:
      return sum_inputs(m, reinterpret_cast<const float*>(weights), begin, end);
    case DType::kI32:
      assert(false && "not a float type");
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(matvec_out_in);
HWY_EXPORT(matvec_in_out);

namespace cpu {

void matvec_out_in(const Matvec& product, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(matvec_out_in)(product, begin, end);
}

void matvec_in_out(const Matvec& product, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(matvec_in_out)(product, begin, end);
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
