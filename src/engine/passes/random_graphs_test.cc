// Every pass on random graphs: alone, in the whole sequence, and the sequence without it.
#include <gtest/gtest.h>

#include <set>

#include "engine/codegen/lower/lower.h"
#include "engine/passes/pass.h"
#include "engine/passes/random_graph.h"
#include "engine/passes/verify.h"

namespace assay::engine {
namespace {

constexpr uint64_t kGraphs = 500;

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : graph_passes()) names.emplace_back(pass.name);
  return names;
}

Graph optimised(Graph graph, const std::vector<std::string>& disabled) {
  const auto reports = run_passes(graph, {.disabled = disabled});
  EXPECT_TRUE(reports) << reports.error().message;
  return graph;
}

TEST(RandomGraphs, HaveEveryOperator) {
  std::set<OpKind> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const Node& node : test::RandomGraph(seed).build().nodes) seen.insert(node.op);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(OpKind::kFused));  // all before it
}

TEST(RandomGraphs, SurviveThePassesInSequence) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph = test::RandomGraph(seed).build();
    const Graph original = graph;
    const auto reports = run_passes(graph, {.verify = true, .seed = seed});
    ASSERT_TRUE(reports) << "seed " << seed << ": " << reports.error().message << "\n"
                         << dump(original);
  }
}

TEST(RandomGraphs, FusedNodesAreWhatKernelsCompute) {
  size_t fused = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = optimised(test::RandomGraph(seed).build(), {});
    for (const Node& node : graph.nodes) {
      if (node.op != OpKind::kFused) continue;
      const auto kernel = lower(graph, node, {});
      ASSERT_TRUE(kernel) << "seed " << seed << ": " << kernel.error().message;
      ++fused;
    }
  }
  EXPECT_GT(fused, kGraphs);
}

class RandomGraphsAndPass : public ::testing::TestWithParam<size_t> {};

TEST_P(RandomGraphsAndPass, SurviveItAloneAndTheOthersWithoutIt) {
  const std::string name(graph_passes()[GetParam()].name);
  std::vector<std::string> others = pass_names();
  std::erase(others, name);
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = test::RandomGraph(seed).build();
    Verifier verifier(graph, seed);
    for (const auto& disabled : {others, {name}}) {
      const Graph found = optimised(graph, disabled);
      const Status status = verifier.check(found);
      ASSERT_TRUE(status) << "seed " << seed << ": " << status.error().message << "\n"
                          << dump(graph) << dump(found);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, RandomGraphsAndPass,
                         ::testing::Range(size_t{0}, graph_passes().size()), [](const auto& pass) {
                           return std::string(graph_passes()[pass.param].name);
                         });

}  // namespace
}  // namespace assay::engine
