// Appends operators to a graph, inferring types as it goes, for the architectures' builders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/model/checkpoint.h"
#include "engine/model/config.h"

namespace assay::engine {

class GraphBuilder {
 public:
  // Weights take their shapes from `specs` and `weights` as their type, caches `caches`. `fp8`: of
  // products that linear() adds; `slots`: kv_write() and attention() have them.
  GraphBuilder(std::vector<TensorSpec> specs, DType weights, DType caches = DType::kF32,
               bool fp8 = false, bool slots = false);
  // The same with weights in the formats of `specs`.
  struct MixedWeights {
    std::vector<TensorSpec> specs;
  };
  GraphBuilder(const MixedWeights& weights, DType caches, bool fp8, bool slots);

  // Sources; asking twice gives the same value.
  ValueId ids();      // [batch, q_len]
  ValueId lengths();  // [batch]
  ValueId pad();      // [batch]
  ValueId slots();    // [batch]
  ValueId weight(const std::string& tensor);
  ValueId rope_table(ConstantKind kind, int64_t max_positions, int64_t head_dim);
  ValueId cache(int64_t layer, CachePart part, int64_t kv_heads, int64_t head_dim);

  // Operators. The first one that is ill-typed makes finish() fail; later ones are of no use.
  ValueId add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_many(OpKind op, std::vector<ValueId> inputs, Attributes attributes);

  // x . prefix.weight + prefix.bias, the bias if `bias`.
  ValueId linear(ValueId x, const std::string& prefix, bool bias, WeightLayout layout);
  // [batch, q_len, heads * head_dim] -> [batch, q_len, heads, head_dim], and back.
  ValueId split_heads(ValueId x, int64_t heads, int64_t head_dim);
  ValueId merge_heads(ValueId x, int64_t heads, int64_t head_dim);

  // x, [batch, q_len, kv_heads, head_dim], written to a cache, and attention to what is written.
  ValueId kv_write(ValueId cache, ValueId x);
  ValueId attention(ValueId q, ValueId keys, ValueId values);

  // The graph, validated. The builder is empty after.
  Result<Graph> finish(std::vector<ValueId> outputs);

 private:
  ValueId source(const std::string& key, TensorType type, Source source);

  std::map<std::string, TensorSpec> specs_;
  DType caches_;
  bool fp8_, named_slots_;
  Graph graph_;
  std::map<std::string, ValueId> sources_;
  Status status_;
};

}  // namespace assay::engine
