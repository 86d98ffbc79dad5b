// The output that each column holds, and the copy, a panel or as many columns at a time.
#include "engine/device/cpu/product_panels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/codegen/cuda/block_slots.h"
#include "engine/ops/cpu/quantized_layout.h"

namespace assay::engine {
namespace {

constexpr int64_t kPanel = Packing::kPanel;

// The place of one output's weights: element i at data + i * stride, in elements.
struct PackedColumn {
  const std::byte* data = nullptr;  // null: zeros
  int64_t stride = 1;
};

// A weight that may be several tensors, by output.
class Outputs {
 public:
  Outputs(const std::vector<TensorView>& tensors, const std::vector<const RowReader*>& readers,
          WeightLayout layout)
      : tensors_(tensors), readers_(readers), out_in_(layout == WeightLayout::kOutIn) {}

  int64_t inputs() const { return tensors_.front().shape[out_in_ ? 1 : 0]; }
  int64_t outputs() const {
    return std::accumulate(tensors_.begin(), tensors_.end(), int64_t{0},
                           [&](int64_t sum, const TensorView& t) { return sum + width(t); });
  }
  // The panels' type, which all tensors have.
  DType dtype() const { return tensors_.front().element(); }

  // `made`: its blocks, for one that is made now.
  PackedColumn column(int64_t output, std::byte* made) const {
    if (output < 0) return {};
    size_t i = 0;
    for (; output >= width(tensors_[i]); ++i) output -= width(tensors_[i]);
    TensorView tensor = tensors_[i];
    assert(out_in_ || !tensor.in_blocks());
    if (readers_[i] != nullptr) {
      (*readers_[i])(output, 1, made);
      tensor.data = made;
      tensor.shape = Shape{1, tensor.row_values()};
      output = 0;
    }
    if (out_in_) return {tensor.row(output), 1};
    return {tensor.data + static_cast<size_t>(output) * dtype_size_bytes(tensor.element()),
            tensor.shape[1]};
  }
  // Bytes of a column that is made when it is packed; 0: none is.
  size_t made_bytes() const {
    size_t most = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const auto rows = static_cast<size_t>(tensors_[i].shape[0]);
      if (readers_[i] != nullptr) most = std::max(most, tensors_[i].size_bytes() / rows);
    }
    return most;
  }

 private:
  int64_t width(const TensorView& tensor) const { return tensor.shape[out_in_ ? 0 : 1]; }
  const std::vector<TensorView>& tensors_;
  const std::vector<const RowReader*>& readers_;
  bool out_in_;
};

// A panel, or as many columns in rows, a block of inputs at a time, which stays in the first-level
// cache while columns are written across it. Weights [in, out] lie as panels do: row by row. `at`
// gives an element's place from its input and its column.
template <typename Element, typename At>
void pack_columns(const std::array<PackedColumn, kPanel>& columns, int64_t inputs, Element* to,
                  const At& at) {
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 0; begin < inputs; begin += kBlock) {
    const int64_t end = std::min(inputs, begin + kBlock);
    const bool rows = columns[0].stride != 1;
    const int64_t outer = rows ? end - begin : kPanel;
    const int64_t inner = rows ? kPanel : end - begin;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t n = 0; n < inner; ++n) {
        const int64_t i = begin + (rows ? o : n);
        const int64_t c = rows ? n : o;
        const PackedColumn& column = columns[static_cast<size_t>(c)];
        if (column.data == nullptr) continue;  // zeros
        to[at(i, c)] = reinterpret_cast<const Element*>(column.data)[i * column.stride];
      }
    }
  }
}

using FourWords = uint32_t __attribute__((vector_size(16)));

FourWords four_words(const std::byte* from) {
  FourWords words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

// Four columns' four words to four rows of a panel.
void turn_words(const std::array<const std::byte*, 4>& columns, std::byte* to) {
  const FourWords a = four_words(columns[0]), b = four_words(columns[1]);
  const FourWords c = four_words(columns[2]), d = four_words(columns[3]);
  const FourWords ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const FourWords cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const FourWords ab_behind = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const FourWords cd_behind = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const std::array rows{__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                        __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                        __builtin_shufflevector(ab_behind, cd_behind, 0, 1, 4, 5),
                        __builtin_shufflevector(ab_behind, cd_behind, 2, 3, 6, 7)};
  for (size_t r = 0; r < rows.size(); ++r)
    std::memcpy(to + r * kPanel * sizeof(uint32_t), &rows[r], sizeof rows[r]);
}

// A panel without padding, of columns whose elements lie side by side, in words: values of fp32, or
// pairs of bf16. It takes a third of the time of pack_columns(), and a start waits for all weights.
void pack_words(const std::array<PackedColumn, kPanel>& columns, int64_t words, std::byte* to) {
  constexpr int64_t kWord = sizeof(uint32_t), kBlock = 16;
  const auto at = [&](int64_t word, int64_t column) {
    return columns[static_cast<size_t>(column)].data + word * kWord;
  };
  const int64_t whole = words / 4 * 4;
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    const int64_t end = std::min(whole, begin + kBlock);
    for (int64_t c = 0; c < kPanel; c += 4) {
      for (int64_t w = begin; w < end; w += 4)
        turn_words({at(w, c), at(w, c + 1), at(w, c + 2), at(w, c + 3)},
                   to + (w * kPanel + c) * kWord);
    }
  }
  for (int64_t w = whole; w < words; ++w) {
    for (int64_t c = 0; c < kPanel; ++c)
      std::memcpy(to + (w * kPanel + c) * kWord, at(w, c), kWord);
  }
}

void pack_slots(WeightFormat format, const std::array<const std::byte*, kPanel>& rows,
                int64_t inputs, std::byte* to) {
  for (int64_t column = 0; column < kPanel; column += CudaSlot::kColumns) {
    const std::span<const std::byte* const> group = rows;
    pack_cuda_group(format, group.subspan(static_cast<size_t>(column)).first<CudaSlot::kColumns>(),
                    inputs, to);
    to += cuda_group_bytes(format, inputs);
  }
}

bool are_words(const std::array<PackedColumn, kPanel>& columns, int64_t inputs, DType dtype) {
  if (dtype != DType::kF32 && (dtype != DType::kBF16 || inputs % 2 != 0)) return false;
  return std::ranges::all_of(columns, [](const PackedColumn& column) {
    return column.data != nullptr && column.stride == 1;
  });
}

template <typename Element>
void pack_tile(const std::array<PackedColumn, kPanel>& columns, int64_t inputs, DType dtype,
               TileLayout layout, std::byte* bytes) {
  auto* to = reinterpret_cast<Element*>(bytes);
  const int64_t padded = Packing::padded_inputs(inputs);
  if (layout == TileLayout::kRows) {
    pack_columns(columns, inputs, to, [=](int64_t i, int64_t c) { return c * padded + i; });
  } else if (are_words(columns, inputs, dtype)) {
    pack_words(columns, inputs / Packing::abreast(dtype), bytes);
  } else if (dtype == DType::kBF16) {
    pack_columns(columns, inputs, to,
                 [](int64_t i, int64_t c) { return Packing::element(DType::kBF16, i, c); });
  } else {
    pack_columns(columns, inputs, to,
                 [](int64_t i, int64_t c) { return Packing::element(DType::kF32, i, c); });
  }
}

}  // namespace

ProductPanels::ProductPanels(const Weights& weights, const WeightSource& source,
                             WeightLayout layout, const Packing& packing)
    : layout_(layout), packing_(packing) {
  for (const std::string& name : source.tensors) {
    tensors_.push_back(weights.view(name));
    readers_.push_back(weights.rows(name));
  }
  const Outputs outputs(tensors_, readers_, layout);
  assert(outputs.outputs() ==
         std::accumulate(packing.segments.begin(), packing.segments.end(), int64_t{0}));
  count_ = packed_columns(packing) / kPanel;
  bytes_ = static_cast<size_t>(packed_elements(packing, outputs.inputs()) / count_) *
           dtype_size_bytes(outputs.dtype());
  const auto format = blocks();
  if (!format) return;
  bytes_ = packing.layout == TileLayout::kPanels
               ? cpu::block_tile_bytes(*format, outputs.inputs())
               : static_cast<size_t>(kPanel / CudaSlot::kColumns *
                                     cuda_group_bytes(*format, outputs.inputs()));
}

std::optional<WeightFormat> ProductPanels::blocks() const {
  const WeightFormat format = tensors_.front().format;
  if (!traits(format).in_blocks()) return std::nullopt;
  assert(std::ranges::all_of(tensors_, [&](const TensorView& t) { return t.format == format; }));
  return format;
}

void ProductPanels::pack(ThreadPool& pool, int64_t first, int64_t panels, std::byte* to) const {
  const Outputs outputs(tensors_, readers_, layout_);
  const int64_t inputs = outputs.inputs();
  std::atomic<int64_t> next = 0;
  pool.run([&](size_t) {
    const auto format = blocks();
    const size_t made_bytes = outputs.made_bytes();
    std::vector<std::byte> made(kPanel * made_bytes);
    for (int64_t p = next++; p < panels; p = next++) {
      std::array<PackedColumn, kPanel> columns;
      bool whole = Packing::padded_inputs(inputs) == inputs;
      for (int64_t c = 0; c < kPanel; ++c) {
        PackedColumn& column = columns[static_cast<size_t>(c)];
        column = outputs.column(packed_output(packing_, (first + p) * kPanel + c),
                                made.data() + static_cast<size_t>(c) * made_bytes);
        whole = whole && column.data != nullptr;
      }
      std::byte* const panel = to + static_cast<size_t>(p) * bytes_;
      if (format) {
        std::array<const std::byte*, kPanel> rows;
        std::ranges::transform(columns, rows.begin(), &PackedColumn::data);
        if (packing_.layout == TileLayout::kPanels) {
          cpu::pack_block_tile(*format, rows, inputs, panel);
        } else {
          pack_slots(*format, rows, inputs, panel);
        }
        continue;
      }
      if (!whole) std::memset(panel, 0, bytes_);
      if (outputs.dtype() == DType::kF32) {
        pack_tile<float>(columns, inputs, outputs.dtype(), packing_.layout, panel);
      } else {
        pack_tile<uint16_t>(columns, inputs, outputs.dtype(), packing_.layout, panel);
      }
    }
  });
}

}  // namespace assay::engine
