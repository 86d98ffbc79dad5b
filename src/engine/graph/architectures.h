// The graph of each architecture, unfused, operator by operator as transformers' eager code
// dispatches it.
#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/graph_builder.h"
#include "engine/model/config.h"

namespace assay::engine {

enum class LogitsOf {
  kLastPosition,  // logits [batch, vocab], next tokens [batch]: for generation
  kAllPositions,  // logits [batch, q_len, vocab], next tokens [batch, q_len]: for parity and
                  // teacher forcing
};

// Outputs: logits, then their argmax. The same graph serves prefill (q_len > 1) and decode (q_len =
// 1). `caches`: the type of keys and values between runs, Device::cache_type().
Result<Graph> build_graph(const ModelConfig& config, DType weights, LogitsOf logits_of,
                          DType caches = DType::kF32);

// One builder for each architecture: from the ids to the final norm, [batch, q_len, hidden].
ValueId build_gpt2(GraphBuilder& graph, const ModelConfig& config);
ValueId build_llama(GraphBuilder& graph,
                    const ModelConfig& config);  // Qwen2 too: it differs by its biases

}  // namespace assay::engine
