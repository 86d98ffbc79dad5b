// Which values of a graph are a layer's cache, before its write and after.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace assay::engine {

// By value. The graph must be valid; writes may be inside fused nodes.
std::vector<std::optional<CacheSource>> cache_values(const Graph& graph);

}  // namespace assay::engine
