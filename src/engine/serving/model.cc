// Loads weights and builds the graph; whatever else is made of them is made when it is asked for.
#include "engine/serving/model.h"

#include <algorithm>
#include <utility>

#include "engine/block_cells.h"
#include "engine/device/cuda/cublaslt.h"
#include "engine/model/summary.h"

namespace assay::engine {

Result<std::shared_ptr<Model>> Model::load(Checkpoint checkpoint, const ModelOptions& options,
                                           std::shared_ptr<Device> device) {
  std::shared_ptr<Model> model(new Model(options, std::move(device)));
  ASSAY_CHECK(model->build(std::move(checkpoint)));
  return model;
}

// bad_input: the device doesn't multiply e4m3, or weights of this type aren't rounded to it.
Status Model::check_fp8() const {
  if (options_.fp8 == Fp8::kNone) return {};
  const DeviceInfo info = device_->info();
  if (info.compute_capability != cuda::kFp8Capability) {
    return bad_input(
        "dtype fp8: expected a GPU of compute capability {}, found {}", cuda::kFp8Capability,
        info.compute_capability.empty() ? "device " + info.kind
                                        : info.name + " of " + info.compute_capability);
  }
  if (options_.dtype == DType::kF32) {
    return bad_input("dtype fp8: expected weights of fp16 or bf16 beside it, found fp32");
  }
  return {};
}

// bad_input: a product in e4m3 rounds weights of 16 bits, or has codes of e4m3 as they are.
Status Model::check_fp8_weights() const {
  if (options_.fp8 == Fp8::kNone) return {};
  for (const TensorSpec& spec : weights_->tensors()) {
    if (!traits(spec.format).in_blocks() || block_parts(spec.format).is_float) continue;
    return bad_input("dtype fp8: expected weights of fp16, bf16 or fp8, found {} in {}",
                     traits(spec.format).name, spec.name);
  }
  return {};
}

// bad_input: kernels of a GPU read a table's rows in their own order.
Status Model::check_tables() const {
  if (device_->info().kind == "cpu") return {};
  for (const Node& node : graph_.nodes) {
    if (node.op != OpKind::kEmbedding) continue;
    const auto* table = std::get_if<WeightSource>(&graph_.values[node.inputs[1]].source);
    if (table == nullptr || table->input_order == nullptr) continue;
    return bad_input(
        "weights: expected an embedding in its own order on a GPU, found another order (act-order) "
        "in "
        "{}; dtype fp16 or bf16 converts all when they are loaded",
        table->tensors.front());
  }
  return {};
}

// A GPU's kernels of attention are fast on 16 bits, of which fp16 keeps more of what blocks say.
DType Model::cache_type() const {
  return device_->cache_type(weights_->block_formats().empty() ? dtype() : DType::kF16);
}

Status Model::build(Checkpoint checkpoint) {
  ASSAY_CHECK(check_fp8());
  const bool in_blocks = std::ranges::any_of(
      checkpoint.tensors(), [](const TensorSpec& spec) { return traits(spec.format).in_blocks(); });
  const bool too_wide =
      options_.fp8 != Fp8::kNone && !in_blocks && checkpoint.config().dtype == DType::kF32;
  if (too_wide && !options_.dtype) options_.dtype = DType::kBF16;
  const bool from_file = options_.compiler.keeps_weights && !options_.gpu;
  ASSAY_TRY(Weights loaded,
            Weights::load(std::move(checkpoint), options_.dtype, weight_memory_,
                          from_file ? Weights::Paging::kWhenAsked : Weights::Paging::kNow));
  weights_ = std::make_unique<Weights>(std::move(loaded));
  ASSAY_CHECK(check_fp8_weights());
  ASSAY_TRY(graph_, make_graph(options_.logits, options_.fp8));
  ASSAY_CHECK(check_tables());
  ASSAY_TRY(eager_, device_->make_eager(graph_, *weights_));
  return {};
}

Result<Graph> Model::make_graph(LogitsOf logits, Fp8 fp8) const {
  return build_graph(config(), weights_->tensors(), logits, cache_type(), fp8, options_.rows);
}

Result<Executor*> Model::eager(LogitsOf logits, Fp8 fp8) {
  if (logits == options_.logits && fp8 == options_.fp8) return eager_.get();
  for (const Variant& variant : variants_) {
    if (variant.logits == logits && variant.fp8 == fp8) return variant.executor.get();
  }
  ASSAY_TRY(Graph graph, make_graph(logits, fp8));
  ASSAY_TRY(auto executor, device_->make_eager(std::move(graph), *weights_));
  variants_.push_back({logits, fp8, std::move(executor)});
  return variants_.back().executor.get();
}

Result<GraphCompiler*> Model::compiler() {
  if (!compiler_) {
    ASSAY_TRY(auto compiler, GraphCompiler::create(graph_, options_.compiler, *device_));
    const Status loaded = compiler->load(*weights_);
    if (!loaded && device_->fault().kind != DeviceFault::Kind::kNone) {
      return std::unexpected(loaded.error());
    }
    compiler_ = std::move(compiler);
  }
  return compiler_.get();
}

CacheShape Model::cache_shape(int64_t rows, int64_t capacity) const {
  const ModelConfig& c = config();
  return {.layers = c.layers,
          .batch = rows,
          .kv_heads = c.kv_heads,
          .capacity = capacity,
          .head_dim = c.head_dim,
          .dtype = cache_type()};
}

Result<std::unique_ptr<KvCache>> Model::make_cache(CacheKind kind, int64_t rows, int64_t capacity) {
  const CacheShape shape = cache_shape(rows, capacity);
  if (kind == CacheKind::kDynamic) return make_dynamic_cache(shape, device_->memory());
  return make_static_cache(shape, device_->memory());
}

const RopeTables& Model::rope(int64_t positions) {
  if (rope_positions_ < positions) {
    rope_ = make_rope_tables(config(), positions);
    rope_positions_ = positions;
  }
  return rope_;
}

uint64_t Model::step_bytes(int64_t batch, int64_t kv_len) const {
  std::vector<uint64_t> read(
      graph_.values.size());  // of each weight: the most that a node reads of it
  for (const Node& node : graph_.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const auto* weight = std::get_if<WeightSource>(&graph_.values[id].source);
      if (weight == nullptr) continue;
      const TensorView& tensor = weights_->view(weight->tensors.front());
      const bool rows_only = node.op == OpKind::kEmbedding;
      const auto table_rows = static_cast<uint64_t>(std::max<int64_t>(tensor.shape[0], 1));
      const uint64_t bytes = rows_only ? tensor.size_bytes() / table_rows *
                                             std::min(static_cast<uint64_t>(batch), table_rows)
                                       : tensor.size_bytes();
      read[id] = std::max(read[id], bytes);
    }
  }
  uint64_t total = 0;
  for (const uint64_t bytes : read) total += bytes;
  return total +
         static_cast<uint64_t>(batch * kv_len) * kv_bytes_per_position(config(), cache_type());
}

}  // namespace assay::engine
