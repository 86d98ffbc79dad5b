// The header is known from the shapes, so that tensors are written as they are read, some rows at a
// time.
#include "engine/model/quantize_fp8.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/files/files.h"
#include "base/process/thread_pool.h"
#include "engine/model/checkpoint.h"
#include "engine/model/convert.h"
#include "engine/model/new_checkpoint.h"
#include "engine/model/safetensors.h"
#include "engine/model/source_pages.h"
#include "engine/model/weight_files.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr float kMostFp8 = 448;
constexpr int64_t kValuesAtOnce = int64_t{1} << 22;

Json fp8_config() {
  const auto scheme = [](const char* strategy, bool dynamic) {
    return Json{{"num_bits", 8},
                {"type", "float"},
                {"symmetric", true},
                {"strategy", strategy},
                {"dynamic", dynamic},
                {"group_size", nullptr},
                {"block_structure", nullptr},
                {"actorder", nullptr}};
  };
  const Json group = {{"targets", {"Linear"}},
                      {"weights", scheme("channel", false)},
                      {"input_activations", scheme("token", true)},
                      {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "float-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", group}}},
          {"ignore", {"lm_head"}},
          {"kv_cache_scheme", nullptr},
          {"global_compression_ratio", nullptr}};
}

bool is_product(const TensorSpec& spec) {
  return spec.shape.rank() == 2 && spec.name.find(".layers.") != std::string::npos;
}

std::string scale_name(const std::string& weight) {
  return weight + "_scale";
}

std::vector<SafetensorsEntry> entries_of(const std::vector<TensorSpec>& specs, DType dtype) {
  std::vector<SafetensorsEntry> entries;
  for (const TensorSpec& spec : specs) {
    SafetensorsEntry entry{spec.name, std::string(safetensors_dtype_name(dtype)), {}, 0, 0};
    if (is_product(spec)) entry.dtype = "F8_E4M3";
    for (size_t i = 0; i < spec.shape.rank(); ++i) entry.dims.push_back(spec.shape[i]);
    entries.push_back(entry);
    if (is_product(spec))
      entries.push_back({scale_name(spec.name), "F32", {spec.shape[0], 1}, 0, 0});
  }
  return entries;
}

class Fp8File {
 public:
  Fp8File(const Checkpoint& checkpoint, AppendFile& file) : checkpoint_(checkpoint), file_(file) {}

  Status write(const TensorSpec& spec) {
    const int64_t width = spec.shape[spec.shape.rank() - 1];
    const int64_t rows = spec.shape.elements() / width;
    const bool product = is_product(spec);
    const size_t element = product ? 1 : dtype_size_bytes(checkpoint_.config().dtype);
    const size_t row_bytes = static_cast<size_t>(width) * element;
    std::vector<float> scales(static_cast<size_t>(product ? rows : 0));
    const int64_t most = std::max<int64_t>(1, kValuesAtOnce / width);
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      bytes_.resize(static_cast<size_t>(count) * row_bytes);
      std::atomic<bool> wrong = false;
      pool_.parallel_for(static_cast<size_t>(count), 1, [&](size_t begin, size_t end) {
        std::vector<float> values(static_cast<size_t>(width));
        for (size_t i = begin; i < end; ++i) {
          const int64_t row = first + static_cast<int64_t>(i);
          checkpoint_.decode_row(spec.name, row, values.data());
          std::byte* const to = bytes_.data() + i * row_bytes;
          if (!product) {
            convert({reinterpret_cast<const std::byte*>(values.data()), DType::kF32, Shape{width}},
                    checkpoint_.config().dtype, to);
          } else if (!encode_row(values, scales[static_cast<size_t>(row)], to)) {
            wrong = true;
          }
        }
      });
      if (wrong) return bad_input("{}: expected finite weights, found others", spec.name);
      ASSAY_CHECK(append(bytes_.data(), bytes_.size()));
      pages_.read(count * width);
    }
    return append(reinterpret_cast<const std::byte*>(scales.data()), scales.size() * sizeof(float));
  }
  uint64_t written() const { return written_; }

 private:
  static bool encode_row(const std::vector<float>& values, float& scale, std::byte* to) {
    float largest = 0;
    for (const float value : values) {
      if (!std::isfinite(value)) return false;
      largest = std::max(largest, std::fabs(value));
    }
    // A scale below fp32's normal numbers has no inverse; such a row is zeros.
    scale = largest / kMostFp8;
    const bool zeros = scale < std::numeric_limits<float>::min();
    if (zeros) scale = 1;
    for (size_t i = 0; i < values.size(); ++i) {
      to[i] = static_cast<std::byte>(zeros ? 0 : f32_to_e4m3(values[i] / scale));
    }
    return true;
  }

  Status append(const std::byte* bytes, size_t count) {
    written_ += count;
    return file_.append({reinterpret_cast<const char*>(bytes), count});
  }

  const Checkpoint& checkpoint_;
  AppendFile& file_;
  SourcePages pages_{[this] { checkpoint_.drop_pages(); }};
  ThreadPool pool_{available_cpus()};
  std::vector<std::byte> bytes_;
  uint64_t written_ = 0;
};

// Files of text beside the weights, which say nothing of how these are stored.
constexpr std::array<const char*, 8> kTexts = {"generation_config.json",
                                               "tokenizer.json",
                                               "tokenizer_config.json",
                                               "special_tokens_map.json",
                                               "chat_template.jinja",
                                               "vocab.json",
                                               "merges.txt",
                                               "added_tokens.json"};

}  // namespace

uint8_t f32_to_e4m3(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7f;
  if (size >= kMostFp8) return sign | 0x7e;
  // Below the least normal number the codes count multiples of 2^-9.
  if (size < 0x1p-6f) return sign | static_cast<uint8_t>(std::nearbyint(size * 512));
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t rounded = (magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
  return sign | static_cast<uint8_t>(rounded - (120u << 3));
}

Result<QuantizedModel> quantize_to_fp8(const fs::path& from, const fs::path& to) {
  ASSAY_TRY(const Checkpoint checkpoint, Checkpoint::open(from));
  std::error_code error;
  if (!fs::is_directory(from, error) || checkpoint.config().architecture == Architecture::kGpt2) {
    return bad_input("{}: expected a folder of llama or qwen2 to write as fp8, found {}",
                     from.string(), fs::is_directory(from, error) ? "gpt2" : "a file");
  }
  ASSAY_TRY(const std::string text, read_file(from / "config.json"));
  ASSAY_TRY(Json config, parse_json(text, (from / "config.json").string()));
  config["quantization_config"] = fp8_config();
  const std::vector<TensorSpec> specs = checkpoint.tensors();
  const DType dtype = checkpoint.config().dtype;
  QuantizedModel made{.parameters = checkpoint.parameter_count()};
  NewCheckpoint folder(disk(), to);
  ASSAY_CHECK(folder.open_folder());
  const std::string header = make_safetensors_header(entries_of(specs, dtype));
  ASSAY_CHECK(folder.check_space(checkpoint.parameter_count()));
  ASSAY_TRY(const auto file, folder.open_file(std::string(kSingleFile)));
  ASSAY_CHECK(file->append(header));
  Fp8File weights(checkpoint, *file);
  for (const TensorSpec& spec : specs) ASSAY_CHECK(weights.write(spec));
  ASSAY_CHECK(file->sync());
  made.weight_bytes = weights.written();
  for (const char* name : kTexts) {
    if (!fs::exists(from / name, error)) continue;
    ASSAY_TRY(const std::string copied, read_file(from / name));
    ASSAY_CHECK(folder.write_small(name, copied));
  }
  ASSAY_CHECK(folder.write_small("config.json", to_json_text(config)));
  folder.keep();
  return made;
}

}  // namespace assay::engine
