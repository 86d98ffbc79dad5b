#include "engine/passes/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/graph_builder.h"
#include "engine/passes/passes.h"
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
                  "layer_norm linear split kv_write kv_write", "attention",
                  "last_rows last_rows linear add", "layer_norm linear activate", "linear add",
                  "layer_norm linear", "argmax"));
}

TEST_P(PassesOnModels, LlamaAndQwenHaveFiveKernelsALayer) {
  for (const char* name : {"tiny-llama", "tiny-qwen2"}) {
    EXPECT_THAT(
        kernels(optimised(name)),
        ElementsAre("embedding", "rms_norm linear split rope rope kv_write kv_write", "attention",
                    "linear add", "rms_norm linear split activate multiply", "linear add",
                    "rms_norm linear split rope rope kv_write kv_write", "attention",
                    "last_rows last_rows linear add", "rms_norm linear split activate multiply",
                    "linear add", "rms_norm linear", "argmax"));
  }
}

TEST_P(PassesOnModels, LogitsOfAllPositionsHaveLastRowsBehindTheHeadAlone) {
  const auto all = kernels(optimised("tiny-llama", LogitsOf::kAllPositions));
  EXPECT_THAT(all, ::testing::SizeIs(14));
  EXPECT_EQ(all[8], "linear add");
  EXPECT_EQ(all[11], "rms_norm linear");
  EXPECT_EQ(all[12], "last_rows");
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

Graph with_last_rows_moved(Graph graph) {
  const auto reports = run_passes(graph, {.verify = true}, std::span(graph_passes()).first(1));
  EXPECT_TRUE(reports) << reports.error().message;
  return graph;
}

std::vector<ValueId> values_with_last_rows_taken(const Graph& graph) {
  std::vector<ValueId> values;
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kLastRows) values.push_back(node.inputs[0]);
  }
  return values;
}

OpKind producer_of(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.outputs, value) != node.outputs.end()) return node.op;
  }
  ADD_FAILURE() << "no node computes %" << value;
  return OpKind::kFused;
}

TEST(MoveLastRows, StopsAtTheLastAttentionAndAtTheResidualBeforeIt) {
  const Graph graph = with_last_rows_moved(model_graph("tiny-llama", DType::kF32));
  const auto taken = values_with_last_rows_taken(graph);
  ASSERT_THAT(taken, ::testing::SizeIs(2));
  EXPECT_EQ(producer_of(graph, taken[0]), OpKind::kAdd);   // which q, k and v read whole
  EXPECT_EQ(producer_of(graph, taken[1]), OpKind::kView);  // of attention's heads
}

TEST(MoveLastRows, LeavesWhatAnotherReaderNeedsWhole) {
  Graph graph = model_graph("tiny-llama", DType::kF32);
  const auto last = std::ranges::find(graph.nodes, OpKind::kLastRows, &Node::op);
  ASSERT_NE(last, graph.nodes.end());
  graph.outputs.push_back(last->inputs[0]);
  const Graph before = graph;
  EXPECT_EQ(dump(with_last_rows_moved(std::move(graph))), dump(before));
}

TEST(MoveLastRows, ComputesTheSameRowsOnce) {
  Graph graph = model_graph("tiny-llama", DType::kF32);
  const auto last = std::ranges::find(graph.nodes, OpKind::kLastRows, &Node::op);
  ASSERT_NE(last, graph.nodes.end());
  const auto again = static_cast<ValueId>(graph.values.size());
  graph.values.push_back(graph.values[last->outputs[0]]);
  graph.nodes.push_back({OpKind::kLastRows, {last->inputs[0]}, {again}, {}});
  graph.outputs.push_back(again);
  graph = with_last_rows_moved(std::move(graph));
  EXPECT_THAT(values_with_last_rows_taken(graph), ::testing::SizeIs(2));
  EXPECT_EQ(producer_of(graph, graph.outputs.back()), OpKind::kRmsNorm);
}

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
  EXPECT_EQ((*reports)[0].outcome.changes, 10);  // output, MLP, norms, and their additions
  EXPECT_EQ((*reports)[1].outcome.changes, 4);   // qkv, and gate and up, of two layers
}

// Files of mixed formats have v in another than q and k.
TEST(MergeProducts, LeavesWeightsInAnotherFormatAlone) {
  Graph graph = model_graph("tiny-llama", DType::kF32);
  for (Value& value : graph.values) {
    auto* weight = std::get_if<WeightSource>(&value.source);
    if (weight == nullptr || value.type.shape.size() < 2) continue;
    const bool is_v = weight->tensors.front().find("v_proj") != std::string::npos;
    weight->format = is_v ? WeightFormat::kQ6_K : WeightFormat::kQ4_K;
  }
  const auto reports = run_passes(graph, {.disabled = {}, .verify = false});
  ASSERT_TRUE(reports) << reports.error().message;
  EXPECT_EQ((*reports)[1].outcome.changes, 4);
  EXPECT_THAT((*reports)[1].outcome.rejected,
              ::testing::Each(::testing::HasSubstr("expected weights in q4_k, found q6_k")));
  EXPECT_THAT((*reports)[1].outcome.rejected, ::testing::SizeIs(2));  // of two layers
  for (const Value& value : graph.values) {
    const auto* weight = std::get_if<WeightSource>(&value.source);
    if (weight != nullptr && weight->tensors.size() > 1) {
      EXPECT_EQ(weight->format, WeightFormat::kQ4_K);
    }
  }
}

TEST(RunPasses, UnknownNamesAreErrorsWithTheNearest) {
  Graph graph = model_graph("tiny-gpt2", DType::kF32);
  const auto reports = run_passes(graph, {.disabled = {"fuse_nrom"}});
  ASSERT_FALSE(reports);
  EXPECT_EQ(reports.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(reports.error().message,
              HasSubstr("found \"fuse_nrom\" (did you mean \"fuse_norm\"?)"));
}

// Two products of one norm, by the formats of their weights.
std::vector<std::string> kernels_of_two(WeightFormat first, WeightFormat second) {
  const GraphBuilder::MixedWeights weights{{{"table", Shape{8, 256}},
                                            {"norm.weight", Shape{256}},
                                            {"a.weight", Shape{64, 256}, first},
                                            {"b.weight", Shape{64, 256}, second}}};
  GraphBuilder builder(weights, DType::kF32, false, false);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto norm =
      builder.add(OpKind::kRmsNorm, {x, builder.weight("norm.weight")}, NormAttributes{1e-6});
  auto graph = builder.finish({builder.linear(norm, "a", false, WeightLayout::kOutIn),
                               builder.linear(norm, "b", false, WeightLayout::kOutIn)});
  EXPECT_TRUE(graph);
  fuse_norm(*graph);
  return kernels(*graph);
}

TEST(FuseNorm, IsOfEachProductWhereTheirWeightsCannotBeMerged) {
  EXPECT_THAT(kernels_of_two(WeightFormat::kQ4_K, WeightFormat::kQ6_K),
              ElementsAre("embedding", "rms_norm linear", "rms_norm linear"));
  EXPECT_THAT(kernels_of_two(WeightFormat::kQ4_K, WeightFormat::kQ4_K),
              ElementsAre("embedding", "rms_norm", "linear", "linear"));
}

}  // namespace
}  // namespace assay::engine
