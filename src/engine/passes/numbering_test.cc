#include "engine/passes/numbering.h"

#include <gtest/gtest.h>

#include "engine/passes/pass.h"
#include "engine/passes/random_graph.h"
#include "engine/passes/test_models.h"

namespace assay::engine {
namespace {

using test::model_graph;

std::vector<std::string> all_but(std::string_view kept) {
  std::vector<std::string> names;
  for (const Pass& pass : graph_passes()) {
    if (pass.name != kept) names.emplace_back(pass.name);
  }
  return names;
}

// Fusing, dropping and packing move work and change none.
TEST(Numbering, IsTheSameAfterWhatOnlyMovesWork) {
  for (const char* pass : {"fuse_epilogue", "fuse_pointwise", "eliminate_dead", "pack_weights"}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Graph graph = test::RandomGraph(seed).build();
      Numbering numbering;
      const auto before = numbering.results_of(graph);
      ASSERT_TRUE(run_passes(graph, {.disabled = all_but(pass)}));
      ASSERT_EQ(numbering.results_of(graph), before) << pass << ", seed " << seed;
    }
  }
}

TEST(Numbering, IsAnotherAfterARewriteOfTheArithmetic) {
  Graph graph = model_graph("tiny-llama", DType::kF32);
  Numbering numbering;
  const auto before = numbering.results_of(graph);
  Graph merged = graph;
  ASSERT_TRUE(run_passes(merged, {.disabled = all_but("merge_products")}));
  EXPECT_NE(numbering.results_of(merged), before);
  const auto after = [&](const auto& change) {
    Graph changed = graph;
    for (Node& node : changed.nodes) {
      if (change(changed, node)) break;
    }
    return numbering.results_of(changed);
  };
  EXPECT_NE(after([](Graph&, Node& node) {
              if (node.op != OpKind::kRmsNorm) return false;
              node.attributes = NormAttributes{1e-4};
              return true;
            }),
            before);
  EXPECT_NE(after([](Graph&, Node& node) {
              if (node.op != OpKind::kAdd) return false;
              std::swap(node.inputs[0], node.inputs[1]);
              return true;
            }),
            before);
  EXPECT_NE(after([](Graph& changed, Node& node) {
              if (node.op != OpKind::kRmsNorm) return false;
              std::get<WeightSource>(changed.values[node.inputs[1]].source).tensors = {"other"};
              return true;
            }),
            before);
}

TEST(Numbering, CountsCachesThatNothingReads) {
  Graph graph = model_graph("tiny-gpt2", DType::kF32);
  Numbering numbering;
  const auto before = numbering.results_of(graph);
  EXPECT_EQ(before.size(), graph.outputs.size() + 4);
  size_t writes = 0;
  for (Node& node : graph.nodes) {  // the last layer's values are written from its keys
    if (node.op == OpKind::kKvWrite && ++writes == 3) {
      for (Node& other : graph.nodes) {
        if (other.op == OpKind::kKvWrite && &other > &node) other.inputs[1] = node.inputs[1];
      }
    }
  }
  EXPECT_NE(numbering.results_of(graph).back(), before.back());
}

}  // namespace
}  // namespace assay::engine
