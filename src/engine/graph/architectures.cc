// From a config to its graph: the architecture's body, then the head that all share.
#include "engine/graph/architectures.h"

namespace assay::engine {
namespace {

std::string head_tensor(const ModelConfig& config) {
  if (!config.tied_embeddings) return "lm_head.weight";
  return config.architecture == Architecture::kGpt2 ? "transformer.wte.weight"
                                                    : "model.embed_tokens.weight";
}

}  // namespace

Result<Graph> build_graph(const ModelConfig& config, DType weights, LogitsOf logits_of,
                          DType caches, Fp8 fp8, CacheRows rows) {
  std::vector<TensorSpec> specs = tensor_specs(config);
  for (TensorSpec& spec : specs) spec.format = weight_format(weights);
  return build_graph(config, specs, logits_of, caches, fp8, rows);
}

Result<Graph> build_graph(const ModelConfig& config, const std::vector<TensorSpec>& weights,
                          LogitsOf logits_of, DType caches, Fp8 fp8, CacheRows rows) {
  GraphBuilder graph(GraphBuilder::MixedWeights{weights}, caches, fp8 != Fp8::kNone,
                     rows == CacheRows::kNamed);
  ValueId hidden = config.architecture == Architecture::kGpt2 ? build_gpt2(graph, config)
                                                              : build_llama(graph, config);
  if (logits_of == LogitsOf::kLastPosition) hidden = graph.add(OpKind::kLastRows, {hidden});
  const ValueId logits =
      graph.add(OpKind::kLinear, {hidden, graph.weight(head_tensor(config))},
                LinearAttributes{WeightLayout::kOutIn, fp8 == Fp8::kWithTheHead});
  const ValueId last =
      logits_of == LogitsOf::kLastPosition ? logits : graph.add(OpKind::kLastRows, {logits});
  const ValueId next = graph.add(OpKind::kArgmax, {last});
  auto built = graph.finish({logits, next});
  if (!built) return with_context("graph", built.error());
  return built;
}

}  // namespace assay::engine
