// Names, settings and the order of rows, from the engine's to the file's.
#include "engine/model/gguf_source.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/files/files.h"
#include "base/records/json.h"
#include "base/records/lenient_json.h"
#include "engine/model/checkpoint.h"
#include "engine/model/gguf.h"
#include "engine/model/gguf_names.h"
#include "engine/tokenizer/bpe_file.h"
#include "engine/tokenizer/stages/split_pattern.h"
#include "engine/tokenizer/tokenizer_file.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

// Pairs that the writer states itself.
constexpr std::array<std::string_view, 3> kOwnPairs = {"general.alignment", "general.file_type",
                                                       "general.quantization_version"};

Result<GgufSource> source_of_file(const fs::path& path, std::shared_ptr<const Checkpoint> known) {
  ASSAY_TRY(GgufFile opened, open_gguf(path));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));
  GgufSource source;
  source.layers = known->config().layers;
  source.drop_pages = [file] { file->map.drop_pages(); };
  for (const auto& [key, value] : file->gguf.metadata()) {
    if (std::ranges::find(kOwnPairs, key) == kOwnPairs.end()) {
      source.header.add_stored(key, value.stored);
    }
  }
  for (const GgufTensor& tensor : file->gguf.tensors()) {
    const TensorView view(file->map.bytes().data() + tensor.begin, tensor.format,
                          Shape(tensor.dims));
    source.tensors.push_back(
        {tensor.name, tensor.format, tensor.dims,
         [file, view](int64_t row, float* out) { decode_row(view, row, out); }});
  }
  return source;
}

void add_settings(const ModelConfig& config, GgufHeader& header) {
  const std::string name(architecture_name(config.architecture));
  const bool gpt2 = config.architecture == Architecture::kGpt2;
  const auto whole = [&](const char* key, int64_t value) {
    header.add(fmt::format("{}.{}", name, key), static_cast<uint32_t>(value));
  };
  header.add("general.architecture", name);
  whole("vocab_size", config.vocab_size);
  whole("context_length", config.max_positions);
  whole("embedding_length", config.hidden_size);
  whole("block_count", config.layers);
  whole("feed_forward_length", config.intermediate_size);
  whole("attention.head_count", config.heads);
  header.add(fmt::format("{}.attention.layer_norm_{}", name, gpt2 ? "epsilon" : "rms_epsilon"),
             static_cast<float>(config.norm_eps));
  if (gpt2) return;
  whole("attention.head_count_kv", config.kv_heads);
  whole("attention.key_length", config.head_dim);
  whole("attention.value_length", config.head_dim);
  whole("rope.dimension_count", config.head_dim);
  header.add(name + ".rope.freq_base", static_cast<float>(config.rope_theta));
  if (config.rope_scaling.kind == RopeScalingKind::kLinear) {
    header.add(name + ".rope.scaling.type", "linear");
    header.add(name + ".rope.scaling.factor", static_cast<float>(config.rope_scaling.factor));
  }
}

// The name in GGUF of the rules that cut text into words; empty: they have none.
std::string_view words_name(const Json& pre_tokenizer) {
  const std::string text = pre_tokenizer.dump();
  const auto has = [&](std::string_view pattern) {
    std::string quoted = Json(pattern).dump();
    return text.find(quoted) != std::string::npos;
  };
  if (has(kLlama3Pattern)) return "llama-bpe";
  if (has(kQwen2Pattern)) return "qwen2";
  const bool bytes = text.find("\"ByteLevel\"") != std::string::npos;
  const bool others = text.find("\"Split\"") != std::string::npos;
  if (!bytes || others) return "";
  return text.find("\"Digits\"") != std::string::npos ? "smollm" : "gpt-2";
}

Status add_tokenizer(const fs::path& folder, const ModelConfig& config, GgufHeader& header) {
  const fs::path path = folder / "tokenizer.json";
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  ASSAY_TRY(const std::string text, read_file(path));
  ASSAY_TRY(const TokenizerFile file, read_tokenizer_file(text, path.string()));
  ASSAY_TRY(const TokenizerDocument document, parse_tokenizer_document(text, path.string()));
  const Json& pre =
      document.json.contains("pre_tokenizer") ? document.json["pre_tokenizer"] : Json();
  const std::string_view words = words_name(pre);
  if (words.empty()) {
    return bad_input(
        "{}: expected the rules of gpt-2, llama-bpe, qwen2 or smollm, found others, "
        "which have no name in GGUF that assay knows",
        path.string());
  }
  header.add("tokenizer.ggml.model", "gpt2");
  header.add("tokenizer.ggml.pre", words);
  std::vector<std::string> tokens(static_cast<size_t>(config.vocab_size));
  std::vector<int32_t> types(tokens.size(), 5);  // unused
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = fmt::format("[PAD{}]", i);
  for (const auto& [id, token] : file.tokens) {
    if (id >= config.vocab_size) continue;
    tokens[static_cast<size_t>(id)] = token.text;
    types[static_cast<size_t>(id)] = 1;
  }
  for (const AddedToken& token : file.added) {
    if (token.id < config.vocab_size) types[static_cast<size_t>(token.id)] = token.special ? 3 : 4;
  }
  std::vector<std::string> merges;
  for (const BytePairEncoder::Merge& merge : file.model.merges) {
    merges.push_back(file.tokens.at(merge.left).text + " " + file.tokens.at(merge.right).text);
  }
  header.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  header.add("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  header.add("tokenizer.ggml.merges", std::span<const std::string>(merges));
  const auto id = [&](const char* key, int64_t value) {
    if (value < config.vocab_size) header.add(key, static_cast<uint32_t>(value));
  };
  if (config.bos_token_id) id("tokenizer.ggml.bos_token_id", *config.bos_token_id);
  if (!config.eos_token_ids.empty()) {
    id("tokenizer.ggml.eos_token_id", config.eos_token_ids.front());
  }
  const bool begins =
      config.bos_token_id && !file.prefix.empty() && file.prefix.front() == *config.bos_token_id;
  header.add("tokenizer.ggml.add_bos_token", begins);
  return {};
}

Status add_chat_template(const fs::path& folder, GgufHeader& header) {
  std::error_code error;
  std::string text;
  if (fs::exists(folder / "chat_template.jinja", error)) {
    ASSAY_TRY(text, read_file(folder / "chat_template.jinja"));
  } else if (fs::exists(folder / "tokenizer_config.json", error)) {
    ASSAY_TRY(const std::string config, read_file(folder / "tokenizer_config.json"));
    ASSAY_TRY(const Json json, parse_json(config, (folder / "tokenizer_config.json").string()));
    text = text_member(json, "chat_template");
  }
  if (!text.empty()) header.add("tokenizer.chat_template", text);
  return {};
}

// Divisors of RoPE's frequencies, where a model has such a scaling.
std::optional<std::vector<float>> rope_factors(const ModelConfig& config) {
  if (config.rope_scaling.kind != RopeScalingKind::kLlama3) return std::nullopt;
  ModelConfig plain = config;
  plain.rope_scaling = {};
  const auto base = rope_inverse_frequencies(plain), scaled = rope_inverse_frequencies(config);
  std::vector<float> factors;
  for (size_t i = 0; i < base.size(); ++i) {
    factors.push_back(static_cast<float>(base[i] / scaled[i]));
  }
  return factors;
}

// The engine's output row that lies at this row of the file: a head's halves alternate there.
int64_t engine_row(int64_t row, int64_t head_dim) {
  const int64_t at = row % head_dim;
  return row - at + at % 2 * (head_dim / 2) + at / 2;
}

GgufSourceTensor source_tensor(const std::shared_ptr<const Checkpoint>& checkpoint,
                               const TensorSpec& spec) {
  const ModelConfig& config = checkpoint->config();
  const TensorView view = checkpoint->tensor(spec.name);
  GgufSourceTensor made{gguf_name(spec.name, config.architecture), view.format, {}, {}};
  for (size_t i = 0; i < spec.shape.rank(); ++i) made.dims.push_back(spec.shape[i]);
  const bool conv1d = config.linear_layout == WeightLayout::kInOut && made.dims.size() == 2 &&
                      spec.name.find(".c_") != std::string::npos;
  const bool turned = config.architecture == Architecture::kLlama &&
                      (spec.name.find(".q_proj.") != std::string::npos ||
                       spec.name.find(".k_proj.") != std::string::npos);
  if (conv1d) {
    std::swap(made.dims[0], made.dims[1]);
    made.read_row = [checkpoint, view](int64_t row, float* out) {
      for (int64_t i = 0; i < view.shape[0]; ++i) {  // never in blocks
        const std::byte* at = view.data + static_cast<size_t>(i * view.shape[1] + row) *
                                              traits(view.format).block_bytes;
        decode(view.format, at, 1, out + i);
      }
    };
  } else if (turned && made.dims.size() == 2) {
    made.read_row = [checkpoint, name = spec.name, head_dim = config.head_dim](int64_t row,
                                                                               float* out) {
      checkpoint->decode_row(name, engine_row(row, head_dim), out);
    };
  } else if (turned) {
    made.read_row = [checkpoint, view, head_dim = config.head_dim](int64_t, float* out) {
      std::vector<float> bias(static_cast<size_t>(view.shape[0]));
      decode_row(view, 0, bias.data());
      for (int64_t i = 0; i < view.shape[0]; ++i) {
        out[i] = bias[static_cast<size_t>(engine_row(i, head_dim))];
      }
    };
  } else {
    made.read_row = [checkpoint, name = spec.name](int64_t row, float* out) {
      checkpoint->decode_row(name, row, out);
    };
  }
  return made;
}

}  // namespace

Result<GgufSource> open_gguf_source(const fs::path& model) {
  ASSAY_TRY(Checkpoint opened, Checkpoint::open(model));
  const auto checkpoint = std::make_shared<const Checkpoint>(std::move(opened));
  std::error_code error;
  if (fs::is_regular_file(model, error)) return source_of_file(model, checkpoint);
  const ModelConfig& config = checkpoint->config();
  GgufSource source;
  source.layers = config.layers;
  source.drop_pages = [checkpoint] { checkpoint->drop_pages(); };
  add_settings(config, source.header);
  ASSAY_CHECK(add_tokenizer(model, config, source.header));
  ASSAY_CHECK(add_chat_template(model, source.header));
  if (const auto factors = rope_factors(config)) {
    source.tensors.push_back(
        {"rope_freqs.weight",
         WeightFormat::kF32,
         {static_cast<int64_t>(factors->size())},
         [values = *factors](int64_t, float* out) { std::ranges::copy(values, out); }});
  }
  for (const TensorSpec& spec : checkpoint->tensors()) {
    source.tensors.push_back(source_tensor(checkpoint, spec));
  }
  return source;
}

}  // namespace assay::engine
