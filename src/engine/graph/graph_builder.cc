// Appends operators to a graph: sources are made once each, types inferred, the first error kept.
#include "engine/graph/graph_builder.h"

#include <utility>

namespace assay::engine {

GraphBuilder::GraphBuilder(std::vector<TensorSpec> specs, DType weights, DType caches, bool fp8,
                           bool slots)
    : caches_(caches), fp8_(fp8), named_slots_(slots) {
  for (TensorSpec& spec : specs) {
    spec.format = weight_format(weights);
    specs_[spec.name] = spec;
  }
}

GraphBuilder::GraphBuilder(const MixedWeights& weights, DType caches, bool fp8, bool slots)
    : caches_(caches), fp8_(fp8), named_slots_(slots) {
  for (const TensorSpec& spec : weights.specs) specs_[spec.name] = spec;
}

ValueId GraphBuilder::source(const std::string& key, TensorType type, Source source) {
  const auto [it, is_new] = sources_.try_emplace(key, static_cast<ValueId>(graph_.values.size()));
  if (is_new) graph_.values.push_back({std::move(type), std::move(source)});
  return it->second;
}

ValueId GraphBuilder::ids() {
  return source("ids", {DType::kI32, {Dim::batch(), Dim::q_len()}}, InputSource{InputKind::kIds});
}

ValueId GraphBuilder::lengths() {
  return source("lengths", {DType::kI32, {Dim::batch()}}, InputSource{InputKind::kLengths});
}

ValueId GraphBuilder::pad() {
  return source("pad", {DType::kI32, {Dim::batch()}}, InputSource{InputKind::kPad});
}

ValueId GraphBuilder::slots() {
  return source("slots", {DType::kI32, {Dim::batch()}}, InputSource{InputKind::kSlots});
}

ValueId GraphBuilder::weight(const std::string& tensor) {
  const auto found = specs_.find(tensor);
  if (found == specs_.end() && status_) {
    status_ = bad_input("{}: expected a tensor of the model, found none of this name", tensor);
  }
  const TensorSpec spec = found == specs_.end() ? TensorSpec{} : found->second;
  return source(
      "weight " + tensor, {traits(spec.format).element, symbolic(spec.shape)},
      WeightSource{.tensors = {tensor}, .format = spec.format, .input_order = spec.input_order});
}

ValueId GraphBuilder::rope_table(ConstantKind kind, int64_t max_positions, int64_t head_dim) {
  return source(kind == ConstantKind::kRopeCos ? "cos" : "sin",
                {DType::kF32, {Dim(max_positions), Dim(head_dim / 2)}}, ConstantSource{kind});
}

ValueId GraphBuilder::cache(int64_t layer, CachePart part, int64_t kv_heads, int64_t head_dim) {
  return source(fmt::format("cache {} {}", layer, static_cast<int>(part)),
                {caches_, {Dim::batch(), Dim(kv_heads), Dim::kv_len(), Dim(head_dim)}},
                CacheSource{layer, part});
}

std::vector<ValueId> GraphBuilder::add_many(OpKind op, std::vector<ValueId> inputs,
                                            Attributes attributes) {
  std::vector<TensorType> types;
  for (const ValueId id : inputs) types.push_back(graph_.values[id].type);
  auto inferred = infer_types(op, attributes, types);
  if (!inferred) {
    if (status_) {
      status_ = with_context(fmt::format("node {} ({})", graph_.nodes.size(), op_name(op)),
                             inferred.error());
    }
    return {};
  }
  std::vector<ValueId> outputs;
  for (TensorType& type : *inferred) {
    outputs.push_back(static_cast<ValueId>(graph_.values.size()));
    graph_.values.push_back({std::move(type), NodeSource{}});
  }
  graph_.nodes.push_back({op, std::move(inputs), outputs, std::move(attributes)});
  return outputs;
}

ValueId GraphBuilder::add(OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
  const ValueId first = inputs.at(0);
  const std::vector<ValueId> outputs = add_many(op, std::move(inputs), std::move(attributes));
  return outputs.empty() ? first : outputs[0];  // any value will do once an error is kept
}

ValueId GraphBuilder::linear(ValueId x, const std::string& prefix, bool bias, WeightLayout layout) {
  std::vector<ValueId> inputs = {x, weight(prefix + ".weight")};
  if (bias) inputs.push_back(weight(prefix + ".bias"));
  return add(OpKind::kLinear, std::move(inputs), LinearAttributes{layout, fp8_});
}

ValueId GraphBuilder::split_heads(ValueId x, int64_t heads, int64_t head_dim) {
  return add(OpKind::kView, {x},
             ViewAttributes{{Dim::batch(), Dim::q_len(), Dim(heads), Dim(head_dim)}});
}

ValueId GraphBuilder::merge_heads(ValueId x, int64_t heads, int64_t head_dim) {
  return add(OpKind::kView, {x},
             ViewAttributes{{Dim::batch(), Dim::q_len(), Dim(heads * head_dim)}});
}

ValueId GraphBuilder::kv_write(ValueId cache, ValueId x) {
  std::vector<ValueId> inputs = {cache, x, lengths()};
  if (named_slots_) inputs.push_back(slots());
  return add(OpKind::kKvWrite, std::move(inputs));
}

ValueId GraphBuilder::attention(ValueId q, ValueId keys, ValueId values) {
  std::vector<ValueId> inputs = {q, keys, values, lengths(), pad()};
  if (named_slots_) inputs.push_back(slots());
  return add(OpKind::kAttention, std::move(inputs));
}

Result<Graph> GraphBuilder::finish(std::vector<ValueId> outputs) {
  ASSAY_CHECK(status_);
  graph_.outputs = std::move(outputs);
  ASSAY_CHECK(validate(graph_));
  sources_.clear();
  return std::exchange(graph_, {});
}

}  // namespace assay::engine
