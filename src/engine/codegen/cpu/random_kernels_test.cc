// Kernels of random graphs behind the passes: every node has one, and kernels compute what their
// nodes do.
#include <gtest/gtest.h>

#include "engine/codegen/cpu/print_cpu.h"
#include "engine/codegen/cpu/random_case.h"

namespace assay::engine {
namespace {

constexpr uint64_t kLowered = 300;  // graphs

// Rows of a symbolic length are in no model: an argmax over them has none.
bool has_kernel(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kArgmax) {
    return graph.values[node.inputs[0]].type.shape.back().is_constant();
  }
  return node.op != OpKind::kView;
}

TEST(RandomKernels, EveryNodeIsLowered) {
  for (uint64_t seed = 0; seed < kLowered; ++seed) {
    const Graph graph = test::optimized_random_graph(seed, TileLayout::kPanels);
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
  for (uint64_t seed = 0; seed < test::kRandomCases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto test = test::random_case(seed, TileLayout::kPanels);
    if (test) test::Harness(*std::move(test)).run();
  }
}

}  // namespace
}  // namespace assay::engine
