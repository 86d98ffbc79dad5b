// The eager executor: bind, allocate, dispatch, free, operator by operator.
#include "engine/device/cpu/eager_executor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/graph/input_values.h"
#include "engine/graph/queries.h"

namespace assay::engine {
namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

}  // namespace

EagerExecutor::EagerExecutor(Graph graph, const Weights& weights, OpLibrary& ops,
                             BufferPool& memory, BlockProducts blocks)
    : graph_(std::move(graph)), loaded_(weights), ops_(ops), memory_(memory), blocks_(blocks) {
  slots_.resize(graph_.values.size());
  weights_.resize(graph_.values.size());
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    if (const auto* weight = std::get_if<WeightSource>(&graph_.values[id].source)) {
      assert(weight->tensors.size() == 1 && !weight->packing);
      // Products with weights in blocks read packed copies.
      const std::string& name = weight->tensors.front();
      const bool is_packed = blocks_.linear != nullptr && weights.view(name).in_blocks();
      weights_[id] = is_packed ? weights.view(name) : weights.tensor(name);
    }
  }
  plan_lifetimes();
}

// A value's memory may go after the last node that reads it or a view of it; outputs stay for the
// caller.
void EagerExecutor::plan_lifetimes() {
  const std::vector<ValueId> base = view_bases(graph_);
  std::vector<size_t> last_use(graph_.values.size(), 0);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    for (const ValueId id : node.outputs) last_use[id] = i;
    for (const ValueId id : node.inputs) last_use[base[id]] = i;
  }
  for (const ValueId id : graph_.outputs) last_use[base[id]] = kNever;
  frees_.resize(graph_.nodes.size());
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.outputs) {
      if (base[id] == id && last_use[id] != kNever) frees_[last_use[id]].push_back(id);
    }
  }
}

int64_t EagerExecutor::count(ValueId id, const DimValues& dims) const {
  int64_t product = 1;
  for (const Dim& dim : graph_.values[id].type.shape) product *= dim.value(dims);
  return product;
}

int64_t EagerExecutor::dim(ValueId id, size_t axis, const DimValues& dims) const {
  return graph_.values[id].type.shape[axis].value(dims);
}

int64_t EagerExecutor::last_dim(ValueId id, const DimValues& dims) const {
  return graph_.values[id].type.shape.back().value(dims);
}

std::span<const int32_t> EagerExecutor::i32(ValueId id, const DimValues& dims) const {
  return {reinterpret_cast<const int32_t*>(slots_[id].data), static_cast<size_t>(count(id, dims))};
}

std::span<const float> EagerExecutor::output_f32(size_t index) const {
  const ValueId id = graph_.outputs[index];
  return {f32(id), static_cast<size_t>(count(id, last_dims_))};
}

std::span<const int32_t> EagerExecutor::output_i32(size_t index) const {
  return i32(graph_.outputs[index], last_dims_);
}

void EagerExecutor::bind_inputs(const RunInputs& inputs) {
  const auto bytes = [](const auto& range) {
    return reinterpret_cast<const std::byte*>(range.data());
  };
  for (size_t id = 0; id < slots_.size(); ++id) {
    const Source& source = graph_.values[id].source;
    if (const auto* input = std::get_if<InputSource>(&source)) {
      slots_[id].data = bytes(input_values(inputs, input->kind));
    } else if (const auto* constant = std::get_if<ConstantSource>(&source)) {
      slots_[id].data =
          bytes(constant->kind == ConstantKind::kRopeCos ? inputs.rope->cos : inputs.rope->sin);
    }
  }
}

Status EagerExecutor::allocate_outputs(const Node& node, const DimValues& dims) {
  if (node.op == OpKind::kView || node.op == OpKind::kKvWrite) return {};
  for (const ValueId id : node.outputs) {
    const auto bytes =
        static_cast<size_t>(count(id, dims)) * dtype_size_bytes(graph_.values[id].type.dtype);
    ASSAY_TRY(slots_[id].buffer, memory_.allocate(bytes));
    slots_[id].data = slots_[id].buffer.data();
  }
  return {};
}

Status EagerExecutor::run(const RunInputs& inputs, KvCache& cache) {
  assert(rows_fit(inputs));
  for (const ValueId id : graph_.outputs) slots_[id].buffer = Buffer();
  bind_inputs(inputs);
  ASSAY_CHECK(make_ready());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    ASSAY_CHECK(allocate_outputs(graph_.nodes[i], inputs.dims));
    ASSAY_CHECK(execute(graph_.nodes[i], inputs, cache));
    for (const ValueId id : frees_[i]) slots_[id].buffer = Buffer();
  }
  cache.commit(inputs.dims.kv_len);
  last_dims_ = inputs.dims;
  return {};
}

void EagerExecutor::split(const Node& node, const DimValues& dims) {
  const int64_t width = last_dim(node.inputs[0], dims);
  const int64_t rows = count(node.inputs[0], dims) / width;
  const float* from = f32(node.inputs[0]);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const int64_t part = last_dim(node.outputs[i], dims);
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(out_f32(node, i) + row * part, from + row * width,
                  static_cast<size_t>(part) * sizeof(float));
    }
    from += part;
  }
}

// Not when it is made, because compiled steps have copies of their own, and often nothing runs
// here.
Status EagerExecutor::make_ready() {
  if (is_ready_) return {};
  loaded_.page_in();
  for (const Node& node : graph_.nodes) {
    if (node.op != OpKind::kLinear || blocks_.linear == nullptr) continue;
    const TensorView& weight = weights_[node.inputs[1]];
    if (!weight.in_blocks()) continue;
    const auto& source = std::get<WeightSource>(graph_.values[node.inputs[1]].source);
    const int64_t outputs = weight.shape[0];
    ASSAY_TRY(
        const std::byte* const tiles,
        blocks_.weights->product(source, WeightLayout::kOutIn, Packing{.segments = {outputs}}));
    packed_[node.inputs[1]] = {.format = weight.format,
                               .inputs = weight.shape[1],
                               .outputs = outputs,
                               .tiles = tiles,
                               .input_order = weight.input_order};
  }
  is_ready_ = true;
  return {};
}

Status EagerExecutor::linear(const Node& node, const DimValues& dims) {
  const ValueId x = node.inputs[0];
  const int64_t rows = count(x, dims) / last_dim(x, dims);
  const TensorView* bias = node.inputs.size() > 2 ? &weights_[node.inputs[2]] : nullptr;
  if (const auto packed = packed_.find(node.inputs[1]); packed != packed_.end()) {
    return blocks_.linear->run(f32(x), packed->second, bias, out_f32(node), rows);
  }
  ops_.linear(f32(x), weights_[node.inputs[1]], std::get<LinearAttributes>(node.attributes).layout,
              bias, out_f32(node), rows);
  return {};
}

Status EagerExecutor::execute(const Node& node, const RunInputs& inputs, KvCache& cache) {
  const DimValues& dims = inputs.dims;
  const ValueId x = node.inputs[0];
  const int64_t x_count = count(x, dims);
  const int64_t width = last_dim(x, dims);
  const auto weight = [&](size_t i) -> const TensorView& { return weights_[node.inputs[i]]; };
  const TokenPlaces places{.lengths = inputs.lengths, .pad = inputs.pad, .q_len = dims.q_len};
  // Where the node has the caches' rows as its input `slots`, in these.
  const auto in_rows = [&](size_t slots) {
    TokenPlaces named = places;
    if (node.inputs.size() > slots) named.slots = inputs.slots;
    return named;
  };
  switch (node.op) {
    case OpKind::kEmbedding:
      ops_.embedding(i32(x, dims), weight(1), out_f32(node));
      break;
    case OpKind::kPositions:
      ops_.positions(places, slots_[node.outputs[0]].buffer.i32());
      break;
    case OpKind::kAdd:
      ops_.add(f32(x), f32(node.inputs[1]), out_f32(node), x_count);
      break;
    case OpKind::kMultiply:
      ops_.multiply(f32(x), f32(node.inputs[1]), out_f32(node), x_count);
      break;
    case OpKind::kActivate:
      ops_.activate(std::get<ActivateAttributes>(node.attributes).kind, f32(x), out_f32(node),
                    x_count);
      break;
    case OpKind::kLayerNorm:
      ops_.layer_norm(f32(x), weight(1), weight(2), std::get<NormAttributes>(node.attributes).eps,
                      out_f32(node), x_count / width, width);
      break;
    case OpKind::kRmsNorm:
      ops_.rms_norm(f32(x), weight(1), std::get<NormAttributes>(node.attributes).eps, out_f32(node),
                    x_count / width, width);
      break;
    case OpKind::kLinear:
      ASSAY_CHECK(linear(node, dims));
      break;
    case OpKind::kRope:
      ops_.rope(f32(x), places, f32(node.inputs[3]), f32(node.inputs[4]), out_f32(node),
                dim(x, 2, dims), width);
      break;
    case OpKind::kKvWrite: {
      const auto& place = std::get<CacheSource>(graph_.values[x].source);
      ASSAY_TRY(slots_[node.outputs[0]].cache, cache.extend(place.layer, place.part, dims.kv_len));
      ops_.kv_write(f32(node.inputs[1]), in_rows(3), slots_[node.outputs[0]].cache);
      break;
    }
    case OpKind::kAttention: {
      const KvView& keys = slots_[node.inputs[1]].cache;
      const AttentionShape shape{dims.batch,      dims.q_len,    dims.kv_len,
                                 dim(x, 2, dims), keys.kv_heads, keys.head_dim};
      ops_.attention(f32(x), keys, slots_[node.inputs[2]].cache, in_rows(5), shape, out_f32(node));
      break;
    }
    case OpKind::kLastRows:
      ops_.last_rows(f32(x), dims.batch, dims.q_len, width, out_f32(node));
      break;
    case OpKind::kArgmax:
      ops_.argmax(f32(x), x_count / width, width, slots_[node.outputs[0]].buffer.i32());
      break;
    case OpKind::kSplit:
      split(node, dims);
      break;
    case OpKind::kView:
      slots_[node.outputs[0]].data = slots_[x].data;
      break;
    case OpKind::kFused:
      assert(false && "an eager graph holds no fused node");
      break;
  }
  return {};
}

}  // namespace assay::engine
