// The one place that says which values a graph's input is bound to.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "engine/graph/graph.h"

namespace assay::engine {

// `inputs` has a member for each kind: those of a run, or of the interpreter.
template <class Inputs>
std::span<const int32_t> input_values(const Inputs& inputs, InputKind kind) {
  switch (kind) {
    case InputKind::kIds:
      return inputs.ids;
    case InputKind::kLengths:
      return inputs.lengths;
    case InputKind::kPad:
      return inputs.pad;
    case InputKind::kSlots:
      return inputs.slots;
  }
  std::unreachable();
}

}  // namespace assay::engine
