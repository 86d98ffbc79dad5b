#include "engine/model/make.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "base/files/hash.h"
#include "engine/model/architectures.h"
#include "engine/model/checkpoint.h"
#include "engine/model/random_weights.h"
#include "engine/model/summary.h"
#include "engine/tokenizer/tokenizer.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MakeTest : public testing::Test {
 protected:
  MakeTest() {
    std::string pattern = (fs::temp_directory_path() / "assay-make-XXXXXX").string();
    base_ = ::mkdtemp(pattern.data());
  }
  ~MakeTest() override { fs::remove_all(base_); }

  std::string weights_hash(const char* architecture, const MakeOptions& options) {
    const fs::path folder = base_ / std::to_string(next_++);
    const auto made = make_checkpoint(architecture, folder, options);
    EXPECT_TRUE(made) << made.error().message;
    return sha256_file_hex(folder / "model.safetensors").value_or("unreadable");
  }

  fs::path base_;
  int next_ = 0;
};

TEST_F(MakeTest, BytesAreTheSameOnEveryMachine) {
  // Pinned: a change here changes every checkpoint that anyone has made, and so needs a reason.
  EXPECT_EQ(weights_hash("tiny-gpt2", {}),
            "e0dc8a015f2c5ec2cfd302966bab74b62fdda975a48b08747cea82647fb01a78");
  EXPECT_EQ(weights_hash("tiny-llama", {.seed = 7, .dtype = DType::kBF16}),
            "deb390a1b70e1ac5faa7a0e9f6afb267e5b9b1e571f68c09e9f63afadbe9e335");
  EXPECT_EQ(weights_hash("tiny-qwen2", {.seed = 7, .dtype = DType::kF16}),
            "842e405692f578b0eaa24b206ece77b3121d0a3aa617daef038cea9800d8c97b");
}

TEST_F(MakeTest, SeedDecides) {
  const std::string first = weights_hash("tiny-qwen2", {.seed = 1});
  EXPECT_EQ(weights_hash("tiny-qwen2", {.seed = 1}), first);
  EXPECT_NE(weights_hash("tiny-qwen2", {.seed = 2}), first);
}

TEST_F(MakeTest, TinyOnesOpenAndHaveATokenizerThatFits) {
  for (const char* name : {"tiny-gpt2", "tiny-llama", "tiny-qwen2"}) {
    const fs::path folder = base_ / name;
    const auto made = make_checkpoint(name, folder, {.dtype = DType::kBF16});
    ASSERT_TRUE(made) << made.error().message;
    const auto checkpoint = Checkpoint::open(folder);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->config().dtype, DType::kBF16);
    EXPECT_EQ(checkpoint->parameter_count(), made->parameters);
    EXPECT_EQ(checkpoint->weight_bytes(), made->weight_bytes);
    EXPECT_LT(made->weight_bytes, 500'000u);
    for (const TensorSpec& spec : tensor_specs(checkpoint->config())) {
      // The map starts at a page, so places in it are places in the file.
      EXPECT_EQ(reinterpret_cast<uintptr_t>(checkpoint->tensor(spec.name).data) % 64, 0u)
          << spec.name;
    }
    ASSERT_EQ(checkpoint->config().eos_token_ids.size(), 1u);
    EXPECT_LT(checkpoint->config().eos_token_ids[0], checkpoint->config().vocab_size);
    EXPECT_TRUE(fs::exists(folder / "tokenizer.json"));
    EXPECT_TRUE(read_json_file(folder / "generation_config.json"));
  }
}

TEST_F(MakeTest, ShardsAreWrittenAndHoldTheSameWeights) {
  const auto whole = make_checkpoint("tiny-llama", base_ / "whole", {});
  const auto split = make_checkpoint("tiny-llama", base_ / "split", {.shard_bytes = 200'000});
  ASSERT_TRUE(whole && split);
  EXPECT_EQ(whole->weight_files, 1u);
  EXPECT_GT(split->weight_files, 3u);
  const auto first = Checkpoint::open(base_ / "whole");
  const auto second = Checkpoint::open(base_ / "split");
  ASSERT_TRUE(first);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->weight_files().size(), split->weight_files);
  for (const TensorSpec& spec : tensor_specs(first->config())) {
    const TensorView a = first->tensor(spec.name), b = second->tensor(spec.name);
    ASSERT_EQ(a.size_bytes(), b.size_bytes());
    EXPECT_EQ(std::memcmp(a.data, b.data, a.size_bytes()), 0) << spec.name;
  }
  for (const fs::path& path : second->weight_files()) EXPECT_LE(fs::file_size(path), 210'000u);
}

TEST_F(MakeTest, PublishedModelsHaveTheirPublishedSizes) {
  // Parameter counts of the checkpoints on the Hugging Face hub.
  for (const auto& [name, parameters] :
       std::vector<std::pair<std::string, int64_t>>{{"qwen2.5-0.5b", 494'032'768},
                                                    {"qwen2.5-1.5b", 1'543'714'304},
                                                    {"qwen2.5-3b", 3'085'938'688},
                                                    {"qwen2.5-7b", 7'615'616'512},
                                                    {"llama3.2-1b", 1'235'814'400},
                                                    {"llama3.2-3b", 3'212'749'824},
                                                    {"llama3.1-8b", 8'030'261'248},
                                                    {"llama2-7b", 6'738'415'616},
                                                    {"te-8-layers", 535'857'152},
                                                    {"gpt2-25m", 25'016'064},
                                                    {"gpt2-50m", 51'475'968},
                                                    {"gpt2-100m", 103'176'192}}) {
    const auto architecture = find_architecture(name);
    ASSERT_TRUE(architecture) << name;
    const Json json = make_config_json(*architecture, architecture->dtype);
    const auto config = parse_model_config(json, name);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->dtype, architecture->dtype);
    int64_t total = 0;
    for (const TensorSpec& spec : tensor_specs(*config)) {
      total += spec.shape.elements();
      EXPECT_EQ(spec.shape.elements() * 2 % 64, 0) << name << spec.name;  // data stays aligned
    }
    EXPECT_EQ(total, parameters) << name;
  }
  const auto llama = find_architecture("llama3.2-1b");
  const Json json = make_config_json(*llama, DType::kBF16);
  EXPECT_EQ(json["bos_token_id"], 128000);
  EXPECT_EQ(json["eos_token_id"], 128001);
  EXPECT_EQ(json["torch_dtype"], "bfloat16");
}

TEST_F(MakeTest, UnknownArchitectureListsTheKnownOnes) {
  const auto made = make_checkpoint("lama3.2-1b", base_ / "x", {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(made.error().message, HasSubstr("expected one of tiny-gpt2, tiny-llama,"));
  EXPECT_THAT(made.error().message,
              HasSubstr("found \"lama3.2-1b\" (did you mean \"llama3.2-1b\"?)"));
  EXPECT_FALSE(fs::exists(base_ / "x"));
}

TEST_F(MakeTest, FolderMustBeNewOrEmpty) {
  EXPECT_TRUE(make_checkpoint("tiny-gpt2", base_ / "new", {}));
  const auto again = make_checkpoint("tiny-gpt2", base_ / "new", {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(again.error().message, HasSubstr("expected a new or empty folder"));
  EXPECT_TRUE(Checkpoint::open(base_ / "new")) << "a refusal must not touch what is there";
  // A file where the folder, or one above it, should be.
  const fs::path file = base_ / "new" / "config.json";
  for (const fs::path& path : {file, file / "below"}) {
    const auto made = make_checkpoint("tiny-gpt2", path, {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
  }
}

// Takes `capacity` bytes and then fails as a full disk does.
class SmallDisk final : public FileSystem {
 public:
  explicit SmallDisk(size_t capacity) : left_(capacity) {}
  Status make_folder(const fs::path& path) override { return disk().make_folder(path); }
  Result<std::unique_ptr<Folder>> open_folder(const fs::path& path) override {
    ASSAY_TRY(Folder folder, Folder::open(path));
    return std::make_unique<SmallFolder>(*this, std::move(folder));
  }

 private:
  class SmallFolder final : public Folder {
   public:
    SmallFolder(SmallDisk& owner, Folder folder) : Folder(std::move(folder)), owner_(owner) {}
    Status write_new(const std::string& name, std::string_view content) override {
      return owner_.take(content.size()) ? Folder::write_new(name, content) : full();
    }
    Result<std::unique_ptr<AppendFile>> open_append(const std::string& name) override {
      ASSAY_TRY(auto file, Folder::open_append(name));
      return std::make_unique<File>(owner_, std::move(file));
    }

   private:
    SmallDisk& owner_;
  };
  class File final : public AppendFile {
   public:
    File(SmallDisk& owner, std::unique_ptr<AppendFile> file)
        : owner_(owner), file_(std::move(file)) {}
    Status append(std::string_view bytes) override {
      return owner_.take(bytes.size()) ? file_->append(bytes) : full();
    }
    Status sync() override { return file_->sync(); }

   private:
    SmallDisk& owner_;
    std::unique_ptr<AppendFile> file_;
  };
  static std::unexpected<Error> full() {
    return environment_error("disk: expected space, found none");
  }
  bool take(size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  size_t left_;
};

TEST_F(MakeTest, FullDiskIsOneErrorAndLeavesNothing) {
  for (const size_t capacity : {size_t{0}, size_t{10'000}, size_t{500'000}, size_t{665'300}}) {
    SmallDisk small(capacity);
    const auto made = make_checkpoint("tiny-gpt2", base_ / "x", {}, small);
    ASSERT_FALSE(made) << capacity;
    EXPECT_EQ(made.error().kind, ErrorKind::kEnvironment);
    EXPECT_FALSE(fs::exists(base_ / "x")) << capacity;
  }
  fs::create_directory(base_ / "mine");
  SmallDisk small(0);
  EXPECT_FALSE(make_checkpoint("tiny-gpt2", base_ / "mine", {}, small));
  EXPECT_TRUE(fs::exists(base_ / "mine")) << "the user's own folder stays";
}

TEST(RandomWeights, PartsAgreeWithTheWhole) {
  const WeightFill fill = weight_fill({"model.layers.0.mlp.up_proj.weight", Shape{192, 64}}, 3,
                                      Architecture::kLlama, 1);
  constexpr uint64_t kCount = 3 * kFillBlock;
  std::vector<float> whole(kCount), part(kCount - kFillBlock);
  ThreadPool one(1), three(3);
  fill_weights(fill, 0, kCount, DType::kF32, reinterpret_cast<std::byte*>(whole.data()), one);
  fill_weights(fill, kFillBlock, kCount - kFillBlock, DType::kF32,
               reinterpret_cast<std::byte*>(part.data()), three);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + kFillBlock));
}

TEST(RandomWeights, ScaleFollowsTheInputs) {
  ThreadPool pool(1);
  for (const int64_t inputs : {2, 64, 896, 4096, 18944}) {
    const WeightFill fill = weight_fill({"model.layers.0.mlp.down_proj.weight", Shape{64, inputs}},
                                        0, Architecture::kLlama, 1);
    std::vector<float> values(100 * kFillBlock);
    fill_weights(fill, 0, values.size(), DType::kF32, reinterpret_cast<std::byte*>(values.data()),
                 pool);
    double sum = 0, squares = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
    }
    const double gain = squares / static_cast<double>(values.size()) * static_cast<double>(inputs);
    EXPECT_GT(gain, 0.49) << inputs;
    EXPECT_LT(gain, 2.02) << inputs;
    EXPECT_LT(std::abs(sum) / std::sqrt(squares), 5) << inputs;
  }
  const auto shift_of = [](const char* name, Shape shape, Architecture architecture) {
    return weight_fill({name, shape}, 0, architecture, 0).shift;
  };
  // Conv1D keeps its inputs first, torch's Linear last.
  EXPECT_EQ(shift_of("transformer.h.0.mlp.c_fc.weight", {64, 4096}, Architecture::kGpt2),
            shift_of("model.layers.0.mlp.up_proj.weight", {4096, 64}, Architecture::kLlama));
}

TEST(RandomWeights, NormsAreOne) {
  ThreadPool pool(1);
  const WeightFill fill = weight_fill({"model.norm.weight", Shape{3}}, 0, Architecture::kLlama, 1);
  std::vector<uint16_t> values(3);
  fill_weights(fill, 0, 3, DType::kBF16, reinterpret_cast<std::byte*>(values.data()), pool);
  EXPECT_EQ(values, (std::vector<uint16_t>(3, 0x3F80)));
}

TEST_F(MakeTest, SummaryCountsWhatADecodeStepReads) {
  ASSERT_TRUE(make_checkpoint("tiny-llama", base_ / "llama", {.dtype = DType::kF16}));
  ASSERT_TRUE(make_checkpoint("tiny-gpt2", base_ / "gpt2", {}));
  const auto llama = Checkpoint::open(base_ / "llama");
  const auto gpt2 = Checkpoint::open(base_ / "gpt2");
  ASSERT_TRUE(llama && gpt2);
  const Json facts = summarize(*llama).value();
  EXPECT_EQ(facts["kv_bytes_per_position"],
            2 * 2 * 2 * 32 * 2);  // k and v, layers, heads, dim, fp16
  // Untied: one row of the table, and the head whole.
  EXPECT_EQ(facts["decode_step_weight_bytes"].get<uint64_t>(),
            llama->weight_bytes() - 511 * 64 * 2);
  EXPECT_EQ(decode_weight_bytes(llama->config(), llama->tensors(), 3),
            llama->weight_bytes() - 509 * 64 * 2);
  // Tied: the table is the head; one row of the positions.
  EXPECT_EQ(decode_weight_bytes(gpt2->config(), gpt2->tensors(), 1),
            gpt2->weight_bytes() - 511 * 64 * 4);
  EXPECT_EQ(facts["rope_scaling"], "llama3");
  EXPECT_FALSE(summarize(*gpt2)->contains("rope_theta"));
  const std::string csv = summary_table(facts).render(OutputFormat::kCsv);
  EXPECT_THAT(csv, HasSubstr("\narchitecture,llama\n"));
  EXPECT_THAT(csv, HasSubstr("\nkv_bytes_per_position,512\n"));
}

}  // namespace
}  // namespace assay::engine
