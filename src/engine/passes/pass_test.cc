#include "engine/passes/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/passes/test_models.h"

namespace assay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using test::model_graph;

// "layer_norm linear split kv_write kv_write" for each kernel; views are none, alone or within.
std::vector<std::string> kernels(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kView) continue;
    std::string name;
    if (const auto* fused = std::get_if<FusedAttributes>(&node.attributes)) {
      for (const Node& inner : fused->body->nodes) {
        if (inner.op == OpKind::kView) continue;
        name += (name.empty() ? "" : " ") + std::string(op_name(inner.op));
      }
    } else {
      name = op_name(node.op);
    }
    names.push_back(name);
  }
  return names;
}

class PassesOnModels : public ::testing::TestWithParam<DType> {
 protected:
  static Graph optimised(const std::string& name, LogitsOf logits_of = LogitsOf::kLastPosition,
                         std::vector<std::string> disabled = {}) {
    Graph graph = model_graph(name, GetParam(), logits_of);
    const auto reports = run_passes(graph, {.disabled = std::move(disabled), .verify = true});
    EXPECT_TRUE(reports) << reports.error().message;
    return graph;
  }
};

TEST_P(PassesOnModels, Gpt2HasFiveKernelsALayer) {
  EXPECT_THAT(
      kernels(optimised("tiny-gpt2")),
      ElementsAre("embedding positions embedding add", "layer_norm linear split kv_write kv_write",
                  "attention", "linear add", "layer_norm linear activate", "linear add",
                  "layer_norm linear split kv_write kv_write", "attention", "linear add",
                  "layer_norm linear activate", "linear add", "last_rows layer_norm linear",
                  "argmax"));
}

TEST_P(PassesOnModels, LlamaAndQwenHaveFiveKernelsALayer) {
  for (const char* name : {"tiny-llama", "tiny-qwen2"}) {
    EXPECT_THAT(kernels(optimised(name)),
                ElementsAre("embedding", "rms_norm linear split rope rope kv_write kv_write",
                            "attention", "linear add", "rms_norm linear split activate multiply",
                            "linear add", "rms_norm linear split rope rope kv_write kv_write",
                            "attention", "linear add", "rms_norm linear split activate multiply",
                            "linear add", "last_rows rms_norm linear", "argmax"));
  }
}

TEST_P(PassesOnModels, LogitsOfAllPositionsDifferByTheHeadAlone) {
  const auto all = kernels(optimised("tiny-llama", LogitsOf::kAllPositions));
  EXPECT_THAT(all, ::testing::SizeIs(13));
  EXPECT_EQ(all[11], "rms_norm linear");
}

TEST_P(PassesOnModels, EveryPassMayBeOff) {
  for (const Pass& pass : graph_passes()) {
    for (const char* name : {"tiny-gpt2", "tiny-llama"}) {
      optimised(name, LogitsOf::kLastPosition, {std::string(pass.name)});
    }
  }
  const Graph untouched = model_graph("tiny-llama", GetParam());
  std::vector<std::string> all;
  for (const Pass& pass : graph_passes()) all.emplace_back(pass.name);
  EXPECT_EQ(dump(optimised("tiny-llama", LogitsOf::kLastPosition, all)), dump(untouched));
}

TEST_P(PassesOnModels, WeightsAreMergedAndPackedForWhatFollows) {
  const std::string text = dump(optimised("tiny-qwen2"));
  // q, k and v in heads of 16, and the biases beside them.
  EXPECT_THAT(text, HasSubstr("q_proj.weight\", \"model.layers.0.self_attn.k_proj.weight\", "
                              "\"model.layers.0.self_attn.v_proj.weight\" packed tile=64 "
                              "segments=[64, 32, 32]"));
  EXPECT_THAT(text, HasSubstr("q_proj.bias\", \"model.layers.0.self_attn.k_proj.bias\""));
  EXPECT_THAT(text, HasSubstr("up_proj.weight\" packed tile=128 interleaved segments=[192, 192]"));
  EXPECT_THAT(text, HasSubstr("down_proj.weight\" packed tile=64 segments=[64]"));
  // The tied head is packed beside the table that ids are looked up in.
  EXPECT_THAT(text, HasSubstr("embed_tokens.weight\" : "));
  EXPECT_THAT(text, HasSubstr("embed_tokens.weight\" packed tile=64 segments=[512] : "));
}

INSTANTIATE_TEST_SUITE_P(Types, PassesOnModels, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(RunPasses, ReportsEachPassInOrder) {
  Graph graph = model_graph("tiny-llama", DType::kF32);
  const auto reports = run_passes(graph, {.disabled = {"fuse_norm", "plan_memory"}});
  ASSERT_TRUE(reports) << reports.error().message;
  ASSERT_EQ(reports->size(), graph_passes().size());
  for (size_t i = 0; i < reports->size(); ++i) {
    const PassReport& report = (*reports)[i];
    EXPECT_EQ(report.name, graph_passes()[i].name);
    EXPECT_EQ(report.enabled, report.name != "fuse_norm");
    EXPECT_FALSE(report.verified);
    EXPECT_TRUE(report.outcome.rejected.empty());
  }
  EXPECT_EQ((*reports)[0].outcome.changes, 4);  // qkv, and gate and up, of two layers
}

TEST(RunPasses, UnknownNamesAreErrorsWithTheNearest) {
  Graph graph = model_graph("tiny-gpt2", DType::kF32);
  const auto reports = run_passes(graph, {.disabled = {"fuse_nrom"}});
  ASSERT_FALSE(reports);
  EXPECT_EQ(reports.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(reports.error().message,
              HasSubstr("found \"fuse_nrom\" (did you mean \"fuse_norm\"?)"));
}

}  // namespace
}  // namespace assay::engine
