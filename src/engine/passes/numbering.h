// Value numbering: finds values of different graphs that are the same operators of the same
// sources.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace assay::engine {

// Numbers are common to all graphs given to one object. The order of nodes, ids, fused bodies, dead
// values and packings don't count, as they change no value.
class Numbering {
 public:
  // Numbers of the graph's outputs, then of the caches that it writes, by layer and part: two valid
  // graphs with the same numbers compute the same.
  std::vector<size_t> results_of(const Graph& graph);

 private:
  size_t number(const std::string& expression);
  std::map<std::string, size_t> numbers_;
};

}  // namespace assay::engine
