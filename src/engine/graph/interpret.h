// Runs any graph, fused or not, node by node with plain operators on tensors of its own: the oracle
// that passes and generated kernels are held against.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/graph/graph.h"
#include "engine/ops/ops.h"

namespace assay::engine {

// A tensor of the interpreter's: fp32 or int32 elements, row-major.
struct HostTensor {
  std::vector<int64_t> shape;
  std::vector<float> f32;    // floats of any stored type, widened
  std::vector<int32_t> i32;  // of int32 values; the other is empty
};

// The values of a graph's sources in one run.
struct InterpreterInputs {
  DimValues dims;
  std::vector<int32_t> ids;      // [batch, q_len]
  std::vector<int32_t> lengths;  // [batch], each at most kv_len - q_len
  std::vector<int32_t> pad;      // [batch]
  std::vector<int32_t> slots;    // [batch]: the caches' rows, each once
  // One checkpoint tensor as fp32, of the shape given; interpret() rounds it to the graph's type
  // for it, and puts merged weights together.
  std::function<std::vector<float>(const std::string& name, const std::vector<int64_t>& shape)>
      weight;
  std::vector<float> rope_cos, rope_sin;  // [at least the largest position + 1, head_dim / 2]
  // Caches by layer and part: [batch, kv_heads, kv_len, head_dim], of which a row's length counts.
  // A missing one is zeros.
  std::map<std::pair<int64_t, CachePart>, std::vector<float>> caches;
};

struct InterpreterResult {
  std::vector<HostTensor> outputs;                                     // the graph's
  std::map<std::pair<int64_t, CachePart>, std::vector<float>> caches;  // as written
};

// A cache of any type is fp32 here and isn't rounded. The graph must be valid, the inputs of the
// sizes that `dims` gives its sources, ids and places in a row's text below the rows of every table
// that they look up: asserts. Packings change nothing.
InterpreterResult interpret(const Graph& graph, const InterpreterInputs& inputs, OpLibrary& ops);

// Random inputs for a graph, the same for the same seed and sources. Weights depend on the seed,
// their name and their shape alone, so that a graph before and after a rewrite gets the same ones;
// long ones repeat themselves with a prime period, which makes billions of them cheap. One row
// is as long as `dims` says, others may be shorter, and about half are padded; slots are in any
// order; ids and places in
// the text are below the rows of every embedding table; a cache holds only values of its type.
InterpreterInputs random_inputs(const Graph& graph, const DimValues& dims, uint64_t seed);

}  // namespace assay::engine
