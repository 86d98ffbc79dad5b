// For tests: one kernel of a random graph, as the passes leave it for a device's layout.
#pragma once

#include <optional>
#include <utility>

#include "engine/codegen/cpu/kernel_harness.h"
#include "engine/passes/pass.h"
#include "engine/passes/random_graph.h"

namespace assay::engine::test {

inline constexpr uint64_t kRandomCases = 24;  // seeds whose kernels are compiled and run

inline Graph optimized_random_graph(uint64_t seed, TileLayout layout) {
  Graph graph = RandomGraph(seed).build();
  const auto reports = run_passes(graph, {}, graph_passes(layout));
  EXPECT_TRUE(reports) << reports.error().message;
  return graph;
}

// A fused node, by turns from the seed's place on; a step of one token or a prompt of five.
// Nothing: the graph has none.
inline std::optional<Case> random_case(uint64_t seed, TileLayout layout) {
  Graph graph = optimized_random_graph(seed, layout);
  std::vector<size_t> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op == OpKind::kFused) nodes.push_back(i);
  }
  if (nodes.empty()) return std::nullopt;
  const bool is_step = seed % 2 == 1;
  Case test{.graph = std::move(graph), .dims = {2, is_step ? 1 : 5, 7}};
  test.specialization = {{}, is_step ? std::optional<int64_t>(1) : std::nullopt, {}, {}};
  test.capacity = 9;
  test.threads = 2;
  test.node = nodes[seed % nodes.size()];
  test.layout = layout;
  return test;
}

}  // namespace assay::engine::test
