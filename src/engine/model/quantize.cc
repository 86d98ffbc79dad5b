// A format for every tensor, then rows by rows.
#include "engine/model/quantize.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "base/files/folder.h"
#include "base/process/thread_pool.h"
#include "base/text/text.h"
#include "engine/model/encode_blocks.h"
#include "engine/model/gguf_source.h"
#include "engine/model/source_pages.h"

namespace assay::engine {
namespace {

constexpr int64_t kChunkValues = int64_t{1} << 22;  // 16 MB as fp32

// A mix as llama.cpp's quantiser has it.
struct QuantizedType {
  std::string_view name;
  uint32_t file_type;  // llama.h, llama_ftype
  WeightFormat common;
  WeightFormat head;
  WeightFormat chosen;  // value and down products of sensitive layers
  WeightFormat joint;   // GPT-2's q, k and v
};
constexpr QuantizedType alike(std::string_view name, uint32_t file_type, WeightFormat format,
                              WeightFormat head) {
  return {name, file_type, format, head, format, format};
}
constexpr auto kQuantizedTypes = [] {
  using enum WeightFormat;
  return std::array{alike("q8_0", 7, kQ8_0, kQ8_0),
                    QuantizedType{"q6_k", 18, kQ6_K, kQ6_K, kQ6_K, kQ6_K},
                    QuantizedType{"q5_k_m", 17, kQ5_K, kQ6_K, kQ6_K, kQ6_K},
                    alike("q5_1", 9, kQ5_1, kQ6_K),
                    alike("q5_0", 8, kQ5_0, kQ6_K),
                    QuantizedType{"q4_k_m", 15, kQ4_K, kQ6_K, kQ6_K, kQ5_K},
                    alike("iq4_nl", 25, kIQ4_NL, kQ6_K),
                    alike("q4_1", 3, kQ4_1, kQ6_K),
                    alike("q4_0", 2, kQ4_0, kQ6_K),
                    alike("fp32", 0, kF32, kF32)};
}();

// Layers whose weights matter more: the first and the last eighth, and each third between.
bool is_sensitive(int64_t layer, int64_t layers) {
  const int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

// A name's layer; -1: it is in none.
int64_t layer_of(std::string_view name) {
  int64_t layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

WeightFormat wished_format(const QuantizedType& type, const std::string& name, int64_t layers,
                           bool is_head) {
  if (is_head) return type.head;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("attn_qkv")) return type.joint;
  const bool chosen = has("attn_v.") || has("ffn_down");
  return chosen && is_sensitive(layer_of(name), layers) ? type.chosen : type.common;
}

// The format, or one of smaller blocks that fit the row.
WeightFormat fitting(WeightFormat format, int64_t row) {
  if (row % traits(format).block_values == 0) return format;
  if (row % 32 != 0) return WeightFormat::kF16;
  if (format == WeightFormat::kQ6_K) return WeightFormat::kQ8_0;
  return format == WeightFormat::kQ5_K ? WeightFormat::kQ5_1 : WeightFormat::kQ5_0;
}

// Writes one chunk of rows while the next one is encoded.
class ModelFile {
 public:
  ModelFile(AppendFile& file, const GgufSource& source) : file_(file), pages_(source.drop_pages) {}

  Status write(const GgufSourceTensor& tensor, WeightFormat format) {
    const int64_t row = tensor.dims.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < tensor.dims.size(); ++i) rows *= tensor.dims[i];
    const auto row_bytes = static_cast<size_t>(*stored_bytes(format, std::array{row}));
    const int64_t most = std::max<int64_t>(1, kChunkValues / row);
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      encoding_.resize(static_cast<size_t>(count) * row_bytes);
      std::atomic<int64_t> taken = 0;
      std::atomic<bool> wrong = false;
      Status written;
      pool_.run([&](size_t thread) {
        if (thread == 0) written = write_encoded();
        std::vector<float> values(static_cast<size_t>(row));
        for (int64_t i = taken++; i < count; i = taken++) {
          tensor.read_row(first + i, values.data());
          bool fit = true;
          for (const float value : values) fit &= std::fabs(value) <= kMostEncoded;
          std::byte* const out = encoding_.data() + static_cast<size_t>(i) * row_bytes;
          if (fit) encode(format, values.data(), row, out);
          if (!fit) wrong = true;
        }
      });
      ASSAY_CHECK(written);
      if (wrong) {
        return bad_input("{}: expected finite weights of at most {}, found others", tensor.name,
                         kMostEncoded);
      }
      std::swap(encoding_, encoded_);
      pages_.read(count * row);
    }
    const auto bytes = static_cast<uint64_t>(rows) * row_bytes;
    weight_bytes_ += bytes;
    encoded_.resize(encoded_.size() + GgufHeader::padding(bytes));
    return {};
  }
  // The last chunk too.
  Status finish() {
    ASSAY_CHECK(write_encoded());
    return file_.sync();
  }
  uint64_t weight_bytes() const { return weight_bytes_; }

 private:
  Status write_encoded() {
    return file_.append({reinterpret_cast<const char*>(encoded_.data()), encoded_.size()});
  }

  AppendFile& file_;
  SourcePages pages_;
  ThreadPool pool_{available_cpus()};
  std::vector<std::byte> encoding_, encoded_;
  uint64_t weight_bytes_ = 0;
};

}  // namespace

std::vector<std::string> quantized_types() {
  std::vector<std::string> names;
  for (const QuantizedType& type : kQuantizedTypes) names.emplace_back(type.name);
  return names;
}

Result<QuantizedModel> quantize_model(const std::filesystem::path& from, std::string_view type,
                                      const std::filesystem::path& to) {
  const auto* wished = std::ranges::find(kQuantizedTypes, type, &QuantizedType::name);
  if (wished == kQuantizedTypes.end()) {
    return bad_input("type: expected one of {}, found {}", join(quantized_types(), ", "),
                     quoted_excerpt(type));
  }
  ASSAY_TRY(GgufSource source, open_gguf_source(from));
  source.header.add("general.file_type", wished->file_type);
  source.header.add("general.quantization_version", uint32_t{2});
  const bool has_head = std::ranges::find(source.tensors, "output.weight",
                                          &GgufSourceTensor::name) != source.tensors.end();
  QuantizedModel made;
  std::vector<WeightFormat> formats;
  for (const GgufSourceTensor& tensor : source.tensors) {
    const bool plain = tensor.dims.size() < 2 || tensor.name == "position_embd.weight";
    const bool is_head = tensor.name == (has_head ? "output.weight" : "token_embd.weight");
    formats.push_back(plain ? WeightFormat::kF32
                            : fitting(wished_format(*wished, tensor.name, source.layers, is_head),
                                      tensor.dims.back()));
    source.header.add_tensor(tensor.name, formats.back(), tensor.dims);
    int64_t values = 1;
    for (const int64_t dim : tensor.dims) values *= dim;
    made.parameters += static_cast<uint64_t>(values);
  }
  ASSAY_TRY(Folder folder, Folder::open(to.parent_path()));
  const std::string name = to.filename().string(), unfinished = temporary_name(name);
  const auto write = [&]() -> Status {
    ASSAY_TRY(const auto file, folder.open_append(unfinished));
    const std::string header = source.header.finish();
    ASSAY_CHECK(file->append(header));
    ModelFile weights(*file, source);
    for (size_t i = 0; i < source.tensors.size(); ++i) {
      ASSAY_CHECK(weights.write(source.tensors[i], formats[i]));
    }
    made.weight_bytes = weights.weight_bytes();
    ASSAY_CHECK(weights.finish());
    return folder.rename(unfinished, name);
  };
  if (const Status written = write(); !written) {
    // A file that can't be removed stays: the error that led here is the one to tell.
    static_cast<void>(folder.remove(unfinished));
    return std::unexpected(written.error());
  }
  return made;
}

}  // namespace assay::engine
