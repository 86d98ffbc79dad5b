// The graph of each architecture, unfused, operator by operator as transformers' eager code
// dispatches it.
#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/graph_builder.h"
#include "engine/model/config.h"

namespace assay::engine {

enum class LogitsOf {
  kLastPosition,  // [batch, vocab]: for generation
  kAllPositions,  // [batch, q_len, vocab]: for parity and teacher forcing
};

// Products that a graph marks as LinearAttributes::fp8.
enum class Fp8 {
  kNone,
  kLayers,       // all but the head
  kWithTheHead,  // all
};

// Rows of a cache that the rows of a batch have.
enum class CacheRows {
  kInOrder,
  kNamed,  // by InputKind::kSlots
};

// Outputs: logits, then the argmax of each row's last position, [batch]. The same graph serves
// prefill (q_len > 1) and decode (q_len = 1). `weights`: tensor_specs(config), each in the format
// in which it is in memory. `caches`: the type of keys and values between runs,
// Device::cache_type().
Result<Graph> build_graph(const ModelConfig& config, const std::vector<TensorSpec>& weights,
                          LogitsOf logits_of, DType caches = DType::kF32, Fp8 fp8 = Fp8::kNone,
                          CacheRows rows = CacheRows::kInOrder);
// Weights of one type.
Result<Graph> build_graph(const ModelConfig& config, DType weights, LogitsOf logits_of,
                          DType caches = DType::kF32, Fp8 fp8 = Fp8::kNone,
                          CacheRows rows = CacheRows::kInOrder);

// One builder for each architecture: from the ids to the final norm, [batch, q_len, hidden].
ValueId build_gpt2(GraphBuilder& graph, const ModelConfig& config);
ValueId build_llama(GraphBuilder& graph,
                    const ModelConfig& config);  // Qwen2 too: it differs by its biases

}  // namespace assay::engine
