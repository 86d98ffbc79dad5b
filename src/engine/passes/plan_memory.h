// Places in one arena for the values that a graph computes: those that are never alive together
// share memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace assay::engine {

struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;  // bytes, of offsets

  // Offsets by value, in bytes from the arena's begin. A view has its base's. Absent for sources,
  // written caches, and views of either.
  std::vector<std::optional<int64_t>> offsets;
  int64_t arena_bytes = 0;
  int64_t unshared_bytes = 0;  // were each value to have a place of its own
};

// For runs with dims up to `most`. Nodes run in order, each after the one before has ended: a value
// is alive from the node that computes it to the last that reads it or a view of it, both included,
// so that no output shares memory with an input of its own node; the graph's outputs live to the
// end. Without `share` (kPlanMemory is disabled) each value has a place of its own. Values are
// placed by size, the largest first, each in the lowest gap that fits.
MemoryPlan plan_memory(const Graph& graph, const DimValues& most, bool share);

}  // namespace assay::engine
