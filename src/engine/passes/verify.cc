// Random runs of the original, kept, and each rewritten graph's held against them.
#include "engine/passes/verify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/process/thread_pool.h"
#include "base/random.h"
#include "engine/graph/flatten.h"

namespace assay::engine {
namespace {

// Elements of weights: up to here the reference operators take milliseconds.
constexpr int64_t kSmall = 1 << 18;
// From here on a run's cost is reading the weights, and one run has to do.
constexpr int64_t kLarge = 1 << 26;

int64_t weight_elements(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values) {
    if (std::holds_alternative<WeightSource>(value.source)) {
      count += elements(value.type.shape).factor();
    }
  }
  return count;
}

std::vector<TensorType> types_of_outputs(const Graph& graph) {
  std::vector<TensorType> types;
  for (const ValueId id : graph.outputs) types.push_back(graph.values[id].type);
  return types;
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

std::vector<DimValues> random_dims(uint64_t seed, bool both) {
  Random random(seed, 3);
  const int64_t q_len = between(random, 2, 4);
  std::vector<DimValues> dims = {{between(random, 2, 3), q_len, q_len + between(random, 1, 4)}};
  if (both) dims.push_back({1, 1, between(random, 2, 6)});
  return dims;
}

// The first element that differs by more than `slack` of the largest; NaN equals NaN.
std::optional<size_t> first_difference(const std::vector<float>& found,
                                       const std::vector<float>& expected, double slack) {
  double largest = 0;
  for (const float value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(double{value}));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) continue;
    if (!(std::abs(double{found[i]} - expected[i]) <= slack * largest)) return i;
  }
  return std::nullopt;
}

Status compare_floats(std::string_view name, const std::vector<float>& found,
                      const std::vector<float>& expected, double slack) {
  if (found.size() != expected.size()) {
    return bad_input("{}: expected {} elements, found {}", name, expected.size(), found.size());
  }
  const auto at = first_difference(found, expected, slack);
  if (!at) return {};
  return bad_input("{}: expected {} at {}, found {}", name, expected[*at], *at, found[*at]);
}

// Compares indices of largest elements: another index is as good if its element is as large.
Status compare_argmax(std::string_view name, const std::vector<int32_t>& found,
                      const std::vector<int32_t>& expected, const HostTensor& operand,
                      double slack) {
  const auto width = static_cast<size_t>(operand.shape.back());
  double largest = 0;
  for (const float value : operand.f32) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(double{value}));
  }
  for (size_t row = 0; row < expected.size(); ++row) {
    if (found[row] == expected[row]) continue;
    const auto at = [&](int32_t i) {
      return double{operand.f32[row * width + static_cast<size_t>(i)]};
    };
    const bool inside = found[row] >= 0 && static_cast<size_t>(found[row]) < width;
    if (inside && at(found[row]) >= at(expected[row]) - 2 * slack * largest) continue;
    return bad_input("{}: expected {} at {}, found {}", name, expected[row], row, found[row]);
  }
  return {};
}

InterpreterResult run_graph(const Graph& graph, const InterpreterInputs& inputs, bool reference) {
  if (reference) return interpret(graph, inputs, *make_reference_ops());
  ThreadPool pool(available_cpus());
  return interpret(graph, inputs, *make_cpu_ops(pool, Rounding::kNone));
}

}  // namespace

Verifier::Verifier(const Graph& original, uint64_t seed)
    : output_types_(types_of_outputs(original)), passed_(numbering_.results_of(original)) {
  Graph flat = flatten(original);
  const int64_t weights = weight_elements(flat);
  reference_ = weights <= kSmall;
  const size_t outputs = flat.outputs.size();
  for (size_t i = 0; i < outputs; ++i) {
    for (const Node& node : flat.nodes) {
      if (node.op != OpKind::kArgmax || node.outputs[0] != flat.outputs[i]) continue;
      argmax_operands_[i] = flat.outputs.size();
      flat.outputs.push_back(node.inputs[0]);
    }
  }
  for (const DimValues& dims : random_dims(seed, weights < kLarge)) {
    Run run{random_inputs(original, dims, seed), {}};
    run.expected = run_graph(flat, run.inputs, reference_);
    runs_.push_back(std::move(run));
  }
}

Status Verifier::check(const Graph& rewritten) {
  ASSAY_CHECK(validate(rewritten));
  std::vector<size_t> results = numbering_.results_of(rewritten);
  if (!reference_ && results == passed_) return {};
  if (types_of_outputs(rewritten) != output_types_) {
    return bad_input("outputs: expected the types that they had, found others");
  }
  const double slack = reference_ ? Slack::kReference : Slack::kLibrary;
  for (const Run& run : runs_) {
    const InterpreterResult result = run_graph(rewritten, run.inputs, reference_);
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const std::string name = fmt::format("output {}", i);
      const HostTensor& expected = run.expected.outputs[i];
      const auto operand = argmax_operands_.find(i);
      if (operand != argmax_operands_.end()) {
        ASSAY_CHECK(compare_argmax(name, result.outputs[i].i32, expected.i32,
                                   run.expected.outputs[operand->second], slack));
      } else if (result.outputs[i].i32 != expected.i32) {
        return bad_input("{}: expected the same integers, found others", name);
      } else {
        ASSAY_CHECK(compare_floats(name, result.outputs[i].f32, expected.f32, slack));
      }
    }
    if (result.caches.size() != run.expected.caches.size()) {
      return bad_input("caches: expected {} written, found {}", run.expected.caches.size(),
                       result.caches.size());
    }
    for (const auto& [key, expected] : run.expected.caches) {
      const std::string name = fmt::format("cache layer={} {}", key.first,
                                           key.second == CachePart::kKeys ? "keys" : "values");
      const auto found = result.caches.find(key);
      if (found == result.caches.end()) return bad_input("{}: expected a write, found none", name);
      ASSAY_CHECK(compare_floats(name, found->second, expected, slack));
    }
  }
  passed_ = std::move(results);
  return {};
}

}  // namespace assay::engine
