// What the passes make of random graphs: every node has a kernel, and kernels compute what their
// nodes do.
#include <gtest/gtest.h>

#include "engine/codegen/cpu/kernel_harness.h"
#include "engine/codegen/cpu/print_cpu.h"
#include "engine/passes/pass.h"
#include "engine/passes/random_graph.h"

namespace assay::engine {
namespace {

constexpr uint64_t kLowered = 300;  // graphs
constexpr uint64_t kCompiled = 24;  // of which one node each

Graph optimized(uint64_t seed) {
  Graph graph = test::RandomGraph(seed).build();
  const auto reports = run_passes(graph, {});
  EXPECT_TRUE(reports) << reports.error().message;
  return graph;
}

// Rows of a symbolic length are in no model: an argmax over them has none.
bool has_kernel(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kArgmax) {
    return graph.values[node.inputs[0]].type.shape.back().is_constant();
  }
  return node.op != OpKind::kView;
}

TEST(RandomKernels, EveryNodeIsLowered) {
  for (uint64_t seed = 0; seed < kLowered; ++seed) {
    const Graph graph = optimized(seed);
    for (const Node& node : graph.nodes) {
      if (!has_kernel(graph, node)) continue;
      const auto kernel = lower(graph, node, {});
      ASSERT_TRUE(kernel) << "seed " << seed << ": " << kernel.error().message << "\n"
                          << dump(graph);
      EXPECT_NE(print_cpu(*kernel).find("assay_run"), std::string::npos);
    }
  }
}

TEST(RandomKernels, KernelsAgreeWithTheInterpreter) {
  for (uint64_t seed = 0; seed < kCompiled && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph graph = optimized(seed);
    // Fused nodes by turns, from the seed's place on.
    std::vector<size_t> nodes;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].op == OpKind::kFused) nodes.push_back(i);
    }
    if (nodes.empty()) continue;
    const bool is_step = seed % 2 == 1;
    test::Case test{.graph = graph, .dims = {2, is_step ? 1 : 5, 7}};
    test.specialization = {{}, is_step ? std::optional<int64_t>(1) : std::nullopt, {}, {}};
    test.capacity = 9;
    test.threads = 2;
    test.node = nodes[seed % nodes.size()];
    test::Harness(std::move(test)).run();
  }
}

}  // namespace
}  // namespace assay::engine
