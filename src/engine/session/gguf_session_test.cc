// Sessions on GGUF files: the tokens and logits of the checkpoint that a file was made of, and of
// blocks those of their decoded values.
#include <gtest/gtest.h>

#include "engine/session/tiny_gguf_file.h"

namespace assay::engine {
namespace {

Generation generated(const std::filesystem::path& path, const SessionOptions& options) {
  auto session = Session::open(path, options);
  EXPECT_TRUE(session) << session.error().message;
  if (!session) return {};
  return generate(*session, PromptBatch::of({{3, 1, 4, 1, 5, 9, 2, 6, 5}, {2, 7, 1}}), 5);
}

void expect_same(const Generation& found, const Generation& expected, double tolerance) {
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.logits.size(), expected.logits.size());
  for (size_t i = 0; i < found.logits.size(); ++i) {
    expect_near(found.logits[i], expected.logits[i], tolerance);
  }
}

SessionOptions both_phases_compiled() {
  SessionOptions options;
  options.compile.prefill = options.compile.decode = true;
  return options;
}

TEST(GgufSession, GivesTheLogitsOfTheCheckpointItWasMadeOf) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const TinyCheckpoint folder(family);
    const GgufOf file(folder, [](const std::string&) { return WeightFormat::kF32; });
    const Generation expected = generated(folder.folder(), {.dtype = DType::kF32});
    expect_same(generated(file.path(), {}), expected, 1e-5);
    expect_same(generated(file.path(), {.dtype = DType::kBF16}),
                generated(folder.folder(), {.dtype = DType::kBF16}), 1e-5);
  }
}

double distance(const Generation& found, const Generation& expected) {
  return logits_distance(found.logits.front(), expected.logits.front());
}

// Every format in one file, a tensor each in turn. Products with blocks may round x to 8 bits.
TEST(GgufSession, BlocksGiveTheLogitsOfTheirValues) {
  constexpr double kOfRounding = 0.03;
  for (const Family& family : wide_families()) {
    SCOPED_TRACE(family.name);
    const TinyCheckpoint folder(family);
    const GgufOf file(folder, formats_in_turn());
    const Generation expected =
        generated(file.path(), {.dtype = DType::kF32, .reference_ops = true});
    expect_same(generated(file.path(), {.dtype = DType::kF32}), expected, 1e-4);
    expect_same(generated(file.path(), {.reference_ops = true}), expected, 1e-4);
    EXPECT_LT(distance(generated(file.path(), {}), expected), kOfRounding);
    EXPECT_LT(distance(generated(file.path(), both_phases_compiled()), expected), kOfRounding);
  }
}

TEST(GgufSession, NamesTheFormatsOfItsBlocks) {
  const TinyCheckpoint folder(wide_families()[1]);
  const GgufOf file(folder, [](const std::string& name) {
    return name.find("v_proj") != std::string::npos ? WeightFormat::kQ6_K : WeightFormat::kQ4_K;
  });
  auto session = Session::open(file.path(), {});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(session->model().block_formats(), "q4_k+q6_k");
  EXPECT_EQ(session->model().dtype(), DType::kF32);
  const Checkpoint checkpoint = std::move(Checkpoint::open(file.path())).value();
  EXPECT_EQ(session->model().weight_bytes(), checkpoint.weight_bytes());
  // A step reads one row of the table, which isn't the head.
  const uint64_t table = checkpoint.tensor("model.embed_tokens.weight").size_bytes();
  EXPECT_EQ(session->model().step_bytes(1, 0), checkpoint.weight_bytes() - table + table / 41);
}

}  // namespace
}  // namespace assay::engine
