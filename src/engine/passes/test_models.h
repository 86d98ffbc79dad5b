// Graphs of the named architectures, for tests of passes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "engine/graph/architectures.h"
#include "engine/model/architectures.h"
#include "engine/passes/pass.h"

namespace assay::engine::test {

inline Graph model_graph(const std::string& name, DType weights,
                         LogitsOf logits_of = LogitsOf::kLastPosition, DType caches = DType::kF32,
                         Fp8 fp8 = Fp8::kNone) {
  const auto architecture = find_architecture(name);
  EXPECT_TRUE(architecture) << architecture.error().message;
  const auto config = parse_model_config(make_config_json(*architecture, weights), name);
  EXPECT_TRUE(config) << config.error().message;
  auto graph = build_graph(*config, weights, logits_of, caches, fp8);
  EXPECT_TRUE(graph) << graph.error().message;
  return std::move(*graph);
}

// The graph after all passes, for a device of this layout.
inline Graph fused_graph(Graph graph, TileLayout layout) {
  const auto reports = run_passes(graph, {.disabled = {}, .verify = false}, graph_passes(layout));
  EXPECT_TRUE(reports) << reports.error().message;
  return graph;
}

}  // namespace assay::engine::test
