// One step of a model as data: its kernels in their order, the binding of each buffer of a kernel,
// and the places of values. A plan holds no address and knows no device; any device can load it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/graph/graph.h"

namespace assay::engine {

// The bindings that a buffer of a kernel may have.
struct ArenaBinding {  // an input or a computed value, at its place in the arena
  ValueId value = 0;   // never a view: the value that the view shows
};
struct WeightBinding {
  ValueId value = 0;  // whose source is a WeightSource
  // For a product's weight: its layouts in the checkpoint and for the kernel. Absent: the kernel
  // reads it as the checkpoint has it.
  struct Product {
    WeightLayout layout = WeightLayout::kOutIn;
    Packing packing;
  };
  std::optional<Product> product;
};
struct ConstantBinding {
  ConstantKind kind = ConstantKind::kRopeCos;
};
struct CacheBinding {
  int64_t layer = 0;
  CachePart part = CachePart::kKeys;
};
using Binding = std::variant<ArenaBinding, WeightBinding, ConstantBinding, CacheBinding>;

struct PlannedKernel {
  Kernel kernel;
  Dim rows = Dim(1);
  std::vector<Binding> bindings;  // kernel.bound_buffers of them
};

struct StepPlan {
  std::shared_ptr<const Graph> graph;  // as the passes left it
  Specialization dims;
  std::vector<PlannedKernel> kernels;  // each after the one before has ended
  std::vector<ValueId> bases;          // by value: view_bases()
  int64_t layers = 0;                  // that have a cache
  bool share_memory = true;            // values that are never alive together share a place
};

// Lowers every node of a graph that the passes have seen. bad_input names the node that can't be.
// `layout`: of weights of products that no pass has packed.
Result<StepPlan> make_step_plan(std::shared_ptr<const Graph> graph, const Specialization& dims,
                                bool share_memory, TileLayout layout);

// Places in one arena for runs with dims up to some.
struct ArenaPlan {
  static constexpr size_t kAlignment = 64;
  struct Input {
    InputKind kind;
    size_t offset = 0;
  };
  std::vector<std::optional<size_t>> offsets;  // by value; inputs and computed values have one
  std::vector<Input> inputs;                   // behind all computed values
  size_t bytes = 0;
};
ArenaPlan plan_arena(const StepPlan& plan, const DimValues& most);
// The arena of the inputs alone, for runs whose computed values are elsewhere.
ArenaPlan plan_inputs(const StepPlan& plan, const DimValues& most);

// Elements of an output of the graph in a run with these dims.
int64_t output_elements(const StepPlan& plan, size_t index, const DimValues& dims);

}  // namespace assay::engine
