// Both layouts keep four streams of weights in flight a thread, each prefetched a kilobyte ahead:
// that is what fills a core's miss buffers (see device/bandwidth.cc), and a product of few rows is
// bound by memory.
#include "engine/ops/cpu/matvec.h"

#include <algorithm>
#include <array>

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
constexpr int64_t kAheadBytes = 1024;
constexpr int64_t kLineBytes = 64;
// Columns of [in, out] whose sums stay in the first-level cache while rows of weights stream by.
constexpr int64_t kColumnBlock = 2048;

template <class W>
void prefetch(const W* p) {
  // By address: past the end of the weights this is no access and can't fault.
  hwy::Prefetch(reinterpret_cast<const W*>(reinterpret_cast<uintptr_t>(p) + kAheadBytes));
}

inline float bias_at(const cpu::Matvec& m, int64_t output) {
  return m.bias != nullptr ? load_element(m.bias->data, m.bias->dtype, output) : 0.0f;
}

// [out, in]: the dot products of `rows` rows of x with `streams` rows of weights, `pitch` outputs
// apart.
template <int64_t rows, int64_t streams, class W>
HWY_INLINE void dot_block(const cpu::Matvec& m, const W* weights, int64_t output, int64_t pitch,
                          int64_t row) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t line = kLineBytes / static_cast<int64_t>(sizeof(W));  // elements
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
    for (int64_t s = 0; s < streams; ++s) prefetch(w + s * stride + i);
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
void matvec_out_in(const cpu::Matvec& m, const W* weights, int64_t begin, int64_t end) {
  const int64_t pitch = (end - begin) / kStreams;
  for (int64_t o = begin; o < begin + pitch; ++o) dot_rows<kStreams>(m, weights, o, pitch);
  for (int64_t o = begin + pitch * kStreams; o < end; ++o) dot_rows<1>(m, weights, o, 1);
}

// [in, out]: out[row.., column] += x[row.., input..] . weights[input.., column] for one vector of
// columns.
template <int64_t rows, int64_t streams, class D, class W>
HWY_INLINE void add_products(D d, const cpu::Matvec& m, const W* w, int64_t input, int64_t column,
                             int64_t row) {
  hn::Vec<D> vs[streams];
  for (int64_t s = 0; s < streams; ++s) vs[s] = load_f32(d, w + s * m.outputs + column);
  for (int64_t r = 0; r < rows; ++r) {
    float* out = m.out + (row + r) * m.outputs + column;
    const float* x = m.x + (row + r) * m.inputs + input;
    auto sum = hn::LoadU(d, out);
    for (int64_t s = 0; s < streams; ++s) sum = hn::MulAdd(vs[s], hn::Set(d, x[s]), sum);
    hn::StoreU(sum, d, out);
  }
}

template <int64_t rows, int64_t streams, class W>
HWY_INLINE void add_scalar_products(const cpu::Matvec& m, const W* w, int64_t input, int64_t column,
                                    int64_t row) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = m.x + (row + r) * m.inputs + input;
    float& out = m.out[(row + r) * m.outputs + column];
    for (int64_t s = 0; s < streams; ++s) out += scalar_f32(w[s * m.outputs + column]) * x[s];
  }
}

// `streams` rows of weights times the columns [begin, end). Prefetches ahead in these rows and, at
// their end, the beginning of the next ones.
template <int64_t rows, int64_t streams, class W>
HWY_INLINE void add_rows(const cpu::Matvec& m, const W* weights, int64_t input, int64_t begin,
                         int64_t end, int64_t row) {
  const hn::CappedTag<float, 16> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t line = kLineBytes / static_cast<int64_t>(sizeof(W));
  constexpr int64_t ahead = kAheadBytes / static_cast<int64_t>(sizeof(W));
  const W* w = weights + input * m.outputs;
  // From the last `ahead` columns on, what is needed next lies `streams` rows further.
  const int64_t to_next_rows = streams * m.outputs - (end - begin);
  int64_t c = begin;
  for (; c + line <= end; c += line) {
    const int64_t skip = c + ahead < end ? 0 : to_next_rows;
    for (int64_t s = 0; s < streams; ++s) prefetch(w + s * m.outputs + c + skip);
    for (int64_t j = 0; j < line; j += lanes) {
      add_products<rows, streams>(d, m, w, input, c + j, row);
    }
  }
  for (; c + lanes <= end; c += lanes) add_products<rows, streams>(d, m, w, input, c, row);
  for (; c < end; ++c) add_scalar_products<rows, streams>(m, w, input, c, row);
}

template <int64_t streams, class W>
HWY_INLINE void add_all_rows(const cpu::Matvec& m, const W* weights, int64_t input, int64_t begin,
                             int64_t end) {
  int64_t row = 0;
  for (; row + kMaxRows <= m.rows; row += kMaxRows) {
    add_rows<kMaxRows, streams>(m, weights, input, begin, end, row);
  }
  switch (m.rows - row) {
    case 3:
      return add_rows<3, streams>(m, weights, input, begin, end, row);
    case 2:
      return add_rows<2, streams>(m, weights, input, begin, end, row);
    case 1:
      return add_rows<1, streams>(m, weights, input, begin, end, row);
    default:
      return;
  }
}

template <class W>
void matvec_in_out(const cpu::Matvec& m, const W* weights, int64_t begin, int64_t end) {
  for (int64_t first = begin; first < end; first += kColumnBlock) {
    const int64_t last = std::min(end, first + kColumnBlock);
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t o = first; o < last; ++o) m.out[r * m.outputs + o] = bias_at(m, o);
    }
    int64_t i = 0;
    for (; i + kStreams <= m.inputs; i += kStreams) {
      add_all_rows<kStreams>(m, weights, i, first, last);
    }
    for (; i < m.inputs; ++i) add_all_rows<1>(m, weights, i, first, last);
  }
}

template <class W>
void matvec_with(const cpu::Matvec& m, int64_t begin, int64_t end) {
  const auto* weights = reinterpret_cast<const W*>(m.weight.data);
  if (m.layout == WeightLayout::kOutIn) return matvec_out_in(m, weights, begin, end);
  matvec_in_out(m, weights, begin, end);
}

void matvec(const cpu::Matvec& m, int64_t begin, int64_t end) {
  switch (m.weight.dtype) {
    case DType::kBF16:
      return matvec_with<hwy::bfloat16_t>(m, begin, end);
    case DType::kF16:
      return matvec_with<hwy::float16_t>(m, begin, end);
    default:
      return matvec_with<float>(m, begin, end);
  }
}

}  // namespace assay::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::engine {
HWY_EXPORT(matvec);

namespace cpu {

void matvec(const Matvec& product, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(matvec)(product, begin, end);
}

}  // namespace cpu
}  // namespace assay::engine
#endif  // HWY_ONCE
