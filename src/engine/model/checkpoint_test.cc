#include "engine/model/checkpoint.h"
#include "engine/model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/files/files.h"
#include "base/files/hash.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct WrittenTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> dims;
};

// Every byte of the data is its offset, so that a view's place can be told from its content.
std::string safetensors_text(const std::vector<WrittenTensor>& tensors) {
  std::vector<SafetensorsEntry> entries;
  size_t bytes = 0;
  for (const WrittenTensor& tensor : tensors) {
    entries.push_back({tensor.name, tensor.dtype, tensor.dims, 0, 0});
    size_t elements = 1;
    for (const int64_t dim : tensor.dims) elements *= static_cast<size_t>(dim);
    bytes += elements * (tensor.dtype == "F32" ? 4 : tensor.dtype == "U8" ? 1 : 2);
  }
  std::string text = make_safetensors_header(entries);
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(i);
  return text;
}

constexpr const char* kConfig = R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 4,
  "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
  "max_position_embeddings": 16, "tie_word_embeddings": true})";
constexpr const char* kGpt2Config =
    R"({"model_type": "gpt2", "vocab_size": 8, "n_embd": 4, "n_layer": 1,
  "n_head": 2, "n_positions": 16})";

std::vector<WrittenTensor> tensors_of(const char* config_text, const std::string& dtype) {
  const auto config = parse_model_config(parse_json(config_text, "test").value(), "test").value();
  std::vector<WrittenTensor> tensors;
  for (const TensorSpec& spec : tensor_specs(config)) {
    WrittenTensor tensor{spec.name, dtype, {}};
    for (size_t i = 0; i < spec.shape.rank(); ++i) tensor.dims.push_back(spec.shape[i]);
    tensors.push_back(tensor);
  }
  return tensors;
}

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    std::string pattern = (fs::temp_directory_path() / "assay-checkpoint-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write("config.json", kConfig);
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_ / name, text));
  }
  void write_weights(const std::vector<WrittenTensor>& tensors) {
    write("model.safetensors", safetensors_text(tensors));
  }
  std::string error() {
    const auto checkpoint = Checkpoint::open(folder_);
    if (checkpoint) return "no error";
    EXPECT_EQ(checkpoint.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(checkpoint.error().message.find('\n'), std::string::npos);
    EXPECT_THAT(checkpoint.error().message, HasSubstr(folder_.string()));
    return checkpoint.error().message;
  }

  fs::path folder_;
};

TEST_F(CheckpointTest, OpensASingleFile) {
  for (const auto& [name, dtype] : std::vector<std::pair<std::string, DType>>{
           {"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16}}) {
    write_weights(tensors_of(kConfig, name));
    const auto checkpoint = Checkpoint::open(folder_);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->config().dtype, dtype);
    // embedding 32, norms 3 * 4, q 16, k 8, v 8, o 16, gate, up, down 24 each
    EXPECT_EQ(checkpoint->parameter_count(), 164u);
    EXPECT_EQ(checkpoint->weight_bytes(), 164 * dtype_size_bytes(dtype));
    const TensorView& norm = checkpoint->tensor("model.layers.0.input_layernorm.weight");
    EXPECT_EQ(norm.shape, Shape{4});
    EXPECT_EQ(std::to_integer<size_t>(norm.data[0]), 32 * dtype_size_bytes(dtype));
  }
}

TEST_F(CheckpointTest, OpensShards) {
  auto tensors = tensors_of(kConfig, "F32");
  Json index = {{"metadata", {{"total_size", 656}}}, {"weight_map", Json::object()}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    index["weight_map"][tensors[i].name] = i < 5 ? "a.safetensors" : "b.safetensors";
  }
  const std::vector<WrittenTensor> second(tensors.begin() + 5, tensors.end());
  tensors.resize(5);
  write("a.safetensors", safetensors_text(tensors));
  write("b.safetensors", safetensors_text(second));
  write("model.safetensors.index.json", to_json_text(index));
  {
    const auto checkpoint = Checkpoint::open(folder_);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->parameter_count(), 164u);
    EXPECT_EQ(checkpoint->weight_files().size(), 2u);
  }
  // A tensor that the index places in the other shard.
  Json moved = index;
  moved["weight_map"][second[0].name] = "a.safetensors";
  write("model.safetensors.index.json", to_json_text(moved));
  EXPECT_THAT(error(), HasSubstr("a.safetensors: expected tensor \"" + second[0].name + "\""));
  // A tensor that the index doesn't know.
  Json unknown = index;
  unknown["weight_map"].erase(second[0].name);
  write("model.safetensors.index.json", to_json_text(unknown));
  EXPECT_THAT(error(), HasSubstr("found \"" + second[0].name + "\" beside them"));
  // A shard that isn't there.
  fs::remove(folder_ / "b.safetensors");
  write("model.safetensors.index.json", to_json_text(index));
  EXPECT_THAT(error(), HasSubstr("b.safetensors: expected a readable file"));
}

TEST_F(CheckpointTest, ShardsDontLeaveTheFolder) {
  for (const char* shard : {"../a.safetensors", "/etc/passwd", "..", ".", "", "sub/a.safetensors",
                            "..\\a", "a\\u0000b"}) {
    write("model.safetensors.index.json",
          fmt::format(R"({{"weight_map": {{"x": "{}"}}}})",
                      shard == std::string("..\\a") ? "..\\\\a" : shard));
    EXPECT_THAT(error(), HasSubstr("the name of a file in this folder for \"x\"")) << shard;
  }
  for (const char* index : {"{}", "[]", R"({"weight_map": []})", R"({"weight_map": {}})",
                            R"({"weight_map": {"x": 1}})", "{"}) {
    write("model.safetensors.index.json", index);
    EXPECT_THAT(error(), HasSubstr("model.safetensors.index.json: expected")) << index;
  }
}

TEST_F(CheckpointTest, MissingWeightsAreNamed) {
  EXPECT_THAT(error(), HasSubstr("expected model.safetensors or model.safetensors.index.json"));
  write("pytorch_model.bin", "x");
  EXPECT_THAT(error(), HasSubstr("expected safetensors weights (model.safetensors), found "
                                 "pytorch_model.bin, a pickle"));
  fs::remove(folder_ / "config.json");
  EXPECT_THAT(error(), HasSubstr("config.json: expected a readable file"));
  fs::remove_all(folder_);
  EXPECT_THAT(error(), HasSubstr("expected a checkpoint folder, found none"));
}

TEST_F(CheckpointTest, MissingUnexpectedAndMisshapenTensorsAreNamed) {
  const auto all = tensors_of(kConfig, "F32");
  auto tensors = all;
  tensors.pop_back();
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("expected tensor \"model.norm.weight\" of shape [4], found none"));
  tensors = all;
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {4}});
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("found \"model.layers.0.self_attn.q_proj.bias\" beside them"));
  tensors = all;
  tensors[0].dims = {4, 8};
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("expected shape [8, 4] for tensor \"model.embed_tokens.weight\""));
  tensors[0].dims = {8, 4, 1, 1, 1};
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("at most 4 dimensions"));
  tensors[0].dims = {0, 4};
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("found [0, 4]"));
}

TEST_F(CheckpointTest, WrongTypesAreNamed) {
  auto tensors = tensors_of(kConfig, "F32");
  tensors[2].dtype = "I16";
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("expected F32, F16 or BF16 for tensor "
                                 "\"model.layers.0.self_attn.q_proj.weight\", found I16"));
  tensors[2].dtype = "BF16";
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("expected one type for all tensors"));
}

TEST_F(CheckpointTest, TruncatedWeightsAreNamed) {
  const std::string text = safetensors_text(tensors_of(kConfig, "F32"));
  write("model.safetensors", text.substr(0, text.size() - 100));
  EXPECT_THAT(error(), HasSubstr("found a file cut short at"));
  write("model.safetensors", text.substr(0, 20));
  EXPECT_THAT(error(), HasSubstr("model.safetensors: expected"));
  write("model.safetensors", "");
  EXPECT_THAT(error(), HasSubstr("model.safetensors: expected"));
  fs::remove(folder_ / "model.safetensors");
  fs::create_directory(folder_ / "model.safetensors");
  EXPECT_THAT(error(), HasSubstr("model.safetensors"));
}

TEST_F(CheckpointTest, LeftoversAreIgnored) {
  auto tensors = tensors_of(kConfig, "BF16");
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}});
  tensors.push_back({"lm_head.weight", "BF16", {8, 4}});
  write_weights(tensors);
  const auto llama = Checkpoint::open(folder_);
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(llama->parameter_count(), 164u);

  write("config.json", kGpt2Config);
  tensors = tensors_of(kGpt2Config, "F32");
  const size_t parameters = 8 * 4 + 16 * 4 + (12 * 16 + 13 * 4) + 2 * 4;
  tensors.push_back({"transformer.h.0.attn.bias", "U8", {1, 1, 16, 16}});
  tensors.push_back({"transformer.h.0.attn.masked_bias", "F32", {}});
  write_weights(tensors);
  const auto gpt2 = Checkpoint::open(folder_);
  ASSERT_TRUE(gpt2) << gpt2.error().message;
  EXPECT_EQ(gpt2->parameter_count(), parameters);
}

TEST_F(CheckpointTest, UntiedModelsNeedAHead) {
  std::string untied = kConfig;
  untied.replace(untied.find("true"), 4, "false");
  write("config.json", untied);
  write_weights(tensors_of(kConfig, "F32"));
  EXPECT_THAT(error(), HasSubstr("expected tensor \"lm_head.weight\" of shape [8, 4]"));
}

TEST_F(CheckpointTest, NamesWithoutThePrefixAreRead) {
  write("config.json", kGpt2Config);
  auto tensors = tensors_of(kGpt2Config, "F32");
  for (WrittenTensor& tensor : tensors) tensor.name.erase(0, std::strlen("transformer."));
  write_weights(tensors);
  const auto checkpoint = Checkpoint::open(folder_);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensor("transformer.wpe.weight").shape, (Shape{16, 4}));
  tensors.push_back(tensors[0]);
  tensors.back().name = "transformer." + tensors[0].name;
  write_weights(tensors);
  EXPECT_THAT(error(), HasSubstr("expected each tensor once"));
}

TEST_F(CheckpointTest, UnalignedDataIsCopiedToWhereItCanBeRead) {
  auto tensors = tensors_of(kConfig, "F32");
  tensors.insert(tensors.begin(), {"model.layers.0.self_attn.rotary_emb.inv_freq", "U8", {1}});
  write_weights(tensors);
  auto opened = Checkpoint::open(folder_);
  ASSERT_TRUE(opened) << opened.error().message;
  const Checkpoint checkpoint = std::move(*opened);  // views survive a move
  const TensorView& table = checkpoint.tensor("model.embed_tokens.weight");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(table.data) % 4, 0u);
  for (size_t i = 0; i < table.size_bytes(); ++i) {
    ASSERT_EQ(std::to_integer<size_t>(table.data[i]), i + 1);
  }
}

TEST_F(CheckpointTest, ContentHashCoversConfigAndWeights) {
  const std::string weights = safetensors_text(tensors_of(kConfig, "F32"));
  write("model.safetensors", weights);
  EXPECT_EQ(Checkpoint::open(folder_)->content_hash(), sha256_hex(kConfig + weights));
}

}  // namespace
}  // namespace assay::engine
