#include "engine/passes/plan_memory.h"

#include <gtest/gtest.h>

#include "engine/passes/pass.h"
#include "engine/passes/random_graph.h"
#include "engine/passes/test_models.h"

namespace assay::engine {
namespace {

using test::model_graph;

int64_t bytes_of(const Graph& graph, ValueId id, const DimValues& dims) {
  const TensorType& type = graph.values[id].type;
  return elements(type.shape).value(dims) * static_cast<int64_t>(dtype_size_bytes(type.dtype));
}

// Runs the graph in thought: each node's outputs overwrite their place, and a value that is read
// must still be there. Views write nothing.
void expect_sound(const Graph& graph, const MemoryPlan& plan, const DimValues& dims) {
  std::vector<ValueId> base(graph.values.size());
  for (ValueId id = 0; id < base.size(); ++id) base[id] = id;
  std::map<ValueId, std::pair<int64_t, int64_t>> live;  // written and not written over since
  const auto expect_live = [&](ValueId id) {
    if (!plan.offsets[id]) return;
    EXPECT_EQ(plan.offsets[id], plan.offsets[base[id]]);
    EXPECT_TRUE(live.contains(base[id])) << "%" << id << " was written over";
  };
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kView) {
      base[node.outputs[0]] = base[node.inputs[0]];
      expect_live(node.inputs[0]);
      continue;
    }
    for (const ValueId id : node.outputs) {
      if (!plan.offsets[id]) continue;
      EXPECT_EQ(*plan.offsets[id] % MemoryPlan::kAlignment, 0);
      const std::pair range(*plan.offsets[id], *plan.offsets[id] + bytes_of(graph, id, dims));
      EXPECT_LE(range.second, plan.arena_bytes);
      std::erase_if(live, [&](const auto& entry) {
        return entry.second.first < range.second && range.first < entry.second.second;
      });
    }
    // Checked after the outputs: an output must not lie over an input of its own node.
    for (const ValueId id : node.inputs) expect_live(id);
    for (const ValueId id : node.outputs) {
      if (!plan.offsets[id]) continue;
      live[id] = {*plan.offsets[id], *plan.offsets[id] + bytes_of(graph, id, dims)};
    }
  }
  for (const ValueId id : graph.outputs) expect_live(id);
}

TEST(PlanMemory, ValuesThatLiveTogetherDontOverlap) {
  const DimValues most{3, 5, 9};
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Graph graph = test::RandomGraph(seed).build();
    for (const bool fused : {false, true}) {
      if (fused) {
        EXPECT_TRUE(run_passes(graph, {}));
      }
      const MemoryPlan shared = plan_memory(graph, most, true);
      const MemoryPlan apart = plan_memory(graph, most, false);
      expect_sound(graph, shared, most);
      expect_sound(graph, apart, most);
      expect_sound(graph, shared, {1, 1, 9});  // smaller values in the same places
      EXPECT_LE(shared.arena_bytes, shared.unshared_bytes);
      EXPECT_EQ(apart.arena_bytes, apart.unshared_bytes);
      EXPECT_EQ(apart.unshared_bytes, shared.unshared_bytes);
      ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << dump(graph);
    }
  }
}

TEST(PlanMemory, OnlyComputedValuesHaveAPlace) {
  Graph graph = model_graph("tiny-llama", DType::kF32);
  ASSERT_TRUE(run_passes(graph, {}));
  const MemoryPlan plan = plan_memory(graph, {1, 8, 64}, true);
  std::vector<bool> expected(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs) {
      const TensorType& type = graph.values[id].type;
      expected[id] = type.shape.size() < 4 || type.shape[2] != Dim::kv_len();
    }
  }
  for (ValueId id = 0; id < expected.size(); ++id) {
    EXPECT_EQ(plan.offsets[id].has_value(), expected[id]) << "%" << id;
  }
}

TEST(PlanMemory, ADeepModelNeedsWhatAFewLayersNeed) {
  const auto arena = [](const char* name) {
    Graph graph = model_graph(name, DType::kF32);
    EXPECT_TRUE(run_passes(graph, {}));
    return plan_memory(graph, {1, 128, 128}, true);
  };
  const MemoryPlan plan = arena("gpt2-100m");
  // The widest point of a layer: x, the MLP's inner values and little else, of 9 layers.
  EXPECT_LT(plan.arena_bytes, plan.unshared_bytes / 8);
}

}  // namespace
}  // namespace assay::engine
