// The interpreter: a flat graph, a tensor for each value, one call of the operator library a node.
#include "engine/graph/interpret.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "engine/graph/flatten.h"
#include "engine/graph/input_values.h"
#include "engine/model/convert.h"

namespace assay::engine {
namespace {

// A weight in its own type.
struct Weight {
  std::vector<std::byte> bytes;
  TensorView view;
};

std::vector<int64_t> shape_at(const TensorType& type, const DimValues& dims) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.value(dims));
  return shape;
}

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// The tensors that a weight names, put together along its axis.
std::vector<float> merged_weight(const WeightSource& source, const std::vector<int64_t>& shape,
                                 const InterpreterInputs& inputs) {
  if (source.tensors.size() == 1) return inputs.weight(source.tensors.front(), shape);
  int64_t inner = 1;
  for (size_t axis = source.axis + 1; axis < shape.size(); ++axis) inner *= shape[axis];
  const int64_t pitch = shape[source.axis] * inner;
  std::vector<float> whole(static_cast<size_t>(count_of(shape)));
  int64_t first = 0;
  for (size_t i = 0; i < source.tensors.size(); ++i) {
    std::vector<int64_t> part_shape = shape;
    part_shape[source.axis] = source.widths[i];
    const std::vector<float> part = inputs.weight(source.tensors[i], part_shape);
    const int64_t run = source.widths[i] * inner;
    for (int64_t row = 0; row * run < static_cast<int64_t>(part.size()); ++row) {
      std::copy_n(part.data() + row * run, run, whole.data() + row * pitch + first);
    }
    first += run;
  }
  return whole;
}

class Interpreter {
 public:
  Interpreter(const Graph& flat, const InterpreterInputs& inputs, OpLibrary& ops)
      : graph_(flat), inputs_(inputs), ops_(ops), values_(flat.values.size()) {}

  InterpreterResult run() {
    for (ValueId id = 0; id < values_.size(); ++id) bind(id);
    for (const Node& node : graph_.nodes) execute(node);
    InterpreterResult result;
    for (const Node& node : graph_.nodes) {
      if (node.op != OpKind::kKvWrite) continue;
      const auto& cache = std::get<CacheSource>(graph_.values[node.inputs[0]].source);
      result.caches[{cache.layer, cache.part}] = values_[node.outputs[0]].f32;
    }
    for (const ValueId id : graph_.outputs) {
      f32(id);  // a weight may be an output
      result.outputs.push_back(values_[id]);
    }
    return result;
  }

 private:
  // Sources but weights, which are fetched when a node reads them: a model's all at once may be
  // more than fits.
  void bind(ValueId id) {
    const Source& source = graph_.values[id].source;
    HostTensor& tensor = values_[id];
    tensor.shape = shape_at(graph_.values[id].type, inputs_.dims);
    if (const auto* input = std::get_if<InputSource>(&source)) {
      const auto values = input_values(inputs_, input->kind);
      tensor.i32.assign(values.begin(), values.end());
      assert(static_cast<int64_t>(tensor.i32.size()) == count_of(tensor.shape));
    } else if (const auto* constant = std::get_if<ConstantSource>(&source)) {
      tensor.f32 = constant->kind == ConstantKind::kRopeCos ? inputs_.rope_cos : inputs_.rope_sin;
      tensor.shape[0] = static_cast<int64_t>(tensor.f32.size()) / tensor.shape[1];
    } else if (const auto* cache = std::get_if<CacheSource>(&source)) {
      const auto found = inputs_.caches.find({cache->layer, cache->part});
      if (found != inputs_.caches.end()) tensor.f32 = found->second;
      tensor.f32.resize(static_cast<size_t>(count_of(tensor.shape)));
    }
  }

  int64_t count(ValueId id) const { return count_of(values_[id].shape); }
  int64_t width(ValueId id) const { return values_[id].shape.back(); }
  std::span<const int32_t> i32(ValueId id) const { return values_[id].i32; }
  TokenPlaces places(ValueId lengths, ValueId pad) const {
    return {.lengths = i32(lengths), .pad = i32(pad), .q_len = inputs_.dims.q_len};
  }
  // Those of a node that may have slots as its input `slots`.
  TokenPlaces places(const Node& node, size_t lengths, size_t pad, size_t slots) const {
    TokenPlaces found = places(node.inputs[lengths], node.inputs[pad]);
    if (node.inputs.size() > slots) found.slots = i32(node.inputs[slots]);
    return found;
  }

  const float* f32(ValueId id) {
    HostTensor& tensor = values_[id];
    if (tensor.f32.empty() && std::holds_alternative<WeightSource>(graph_.values[id].source)) {
      const Weight stored = weight(id);
      tensor.f32.resize(static_cast<size_t>(count(id)));
      convert(stored.view, DType::kF32, reinterpret_cast<std::byte*>(tensor.f32.data()));
    }
    return tensor.f32.data();
  }

  Weight weight(ValueId id) {
    const TensorType& type = graph_.values[id].type;
    const Shape shape{std::span<const int64_t>(values_[id].shape)};
    const auto* source = std::get_if<WeightSource>(&graph_.values[id].source);
    Weight result;
    if (source == nullptr) {  // computed: nothing of it is stored
      result.view = {reinterpret_cast<const std::byte*>(f32(id)), DType::kF32, shape};
      return result;
    }
    const std::vector<float> wide = merged_weight(*source, values_[id].shape, inputs_);
    assert(static_cast<int64_t>(wide.size()) == shape.elements());
    result.bytes.resize(wide.size() * dtype_size_bytes(type.dtype));
    convert({reinterpret_cast<const std::byte*>(wide.data()), DType::kF32, shape}, type.dtype,
            result.bytes.data());
    result.view = {result.bytes.data(), type.dtype, shape};
    return result;
  }

  float* out_f32(ValueId id) {
    values_[id].f32.resize(static_cast<size_t>(count(id)));
    return values_[id].f32.data();
  }
  int32_t* out_i32(ValueId id) {
    values_[id].i32.resize(static_cast<size_t>(count(id)));
    return values_[id].i32.data();
  }

  KvView cache_view(ValueId id) {
    const std::vector<int64_t>& shape = values_[id].shape;
    return {.data = values_[id].f32.data(),
            .batch = shape[0],
            .kv_heads = shape[1],
            .capacity = shape[2],
            .head_dim = shape[3],
            .batch_stride = shape[1] * shape[2] * shape[3],
            .head_stride = shape[2] * shape[3]};
  }

  void split(const Node& node) {
    const int64_t pitch = width(node.inputs[0]);
    const int64_t rows = count(node.inputs[0]) / pitch;
    const float* from = f32(node.inputs[0]);
    for (const ValueId id : node.outputs) {
      float* out = out_f32(id);
      for (int64_t row = 0; row < rows; ++row) {
        std::copy_n(from + row * pitch, width(id), out + row * width(id));
      }
      from += width(id);
    }
  }

  void kv_write(const Node& node) {
    assert(values_[node.inputs[1]].shape[1] == inputs_.dims.q_len);
    values_[node.outputs[0]].f32 = values_[node.inputs[0]].f32;
    ops_.kv_write(f32(node.inputs[1]), places(node, 2, 2, 3), cache_view(node.outputs[0]));
  }

  void attention(const Node& node) {
    const std::vector<int64_t>& q = values_[node.inputs[0]].shape;
    const KvView keys = cache_view(node.inputs[1]);
    const AttentionShape shape{.batch = q[0],
                               .q_len = q[1],
                               .kv_len = keys.capacity,
                               .heads = q[2],
                               .kv_heads = keys.kv_heads,
                               .head_dim = q[3]};
    ops_.attention(f32(node.inputs[0]), keys, cache_view(node.inputs[2]), places(node, 3, 4, 5),
                   shape, out_f32(node.outputs[0]));
  }

  void linear(const Node& node, int64_t rows) {
    const Weight matrix = weight(node.inputs[1]);
    const Weight bias = node.inputs.size() > 2 ? weight(node.inputs[2]) : Weight{};
    ops_.linear(f32(node.inputs[0]), matrix.view,
                std::get<LinearAttributes>(node.attributes).layout,
                node.inputs.size() > 2 ? &bias.view : nullptr, out_f32(node.outputs[0]), rows);
  }

  void execute(const Node& node) {
    const ValueId x = node.inputs[0];
    const ValueId out = node.outputs[0];
    const int64_t rows = width(x) == 0 ? 0 : count(x) / width(x);
    switch (node.op) {
      case OpKind::kEmbedding:
        return ops_.embedding(i32(x), weight(node.inputs[1]).view, out_f32(out));
      case OpKind::kPositions:
        return ops_.positions(places(x, node.inputs[1]), out_i32(out));
      case OpKind::kAdd:
        return ops_.add(f32(x), f32(node.inputs[1]), out_f32(out), count(x));
      case OpKind::kMultiply:
        return ops_.multiply(f32(x), f32(node.inputs[1]), out_f32(out), count(x));
      case OpKind::kActivate:
        return ops_.activate(std::get<ActivateAttributes>(node.attributes).kind, f32(x),
                             out_f32(out), count(x));
      case OpKind::kLayerNorm:
        return ops_.layer_norm(f32(x), weight(node.inputs[1]).view, weight(node.inputs[2]).view,
                               std::get<NormAttributes>(node.attributes).eps, out_f32(out), rows,
                               width(x));
      case OpKind::kRmsNorm:
        return ops_.rms_norm(f32(x), weight(node.inputs[1]).view,
                             std::get<NormAttributes>(node.attributes).eps, out_f32(out), rows,
                             width(x));
      case OpKind::kLinear:
        return linear(node, rows);
      case OpKind::kRope:
        return ops_.rope(f32(x), places(node.inputs[1], node.inputs[2]), f32(node.inputs[3]),
                         f32(node.inputs[4]), out_f32(out), values_[x].shape[2], width(x));
      case OpKind::kKvWrite:
        return kv_write(node);
      case OpKind::kAttention:
        return attention(node);
      case OpKind::kLastRows:
        return ops_.last_rows(f32(x), values_[x].shape[0], values_[x].shape[1], width(x),
                              out_f32(out));
      case OpKind::kArgmax:
        return ops_.argmax(f32(x), rows, width(x), out_i32(out));
      case OpKind::kSplit:
        return split(node);
      case OpKind::kView:
        f32(x);
        values_[out].f32 = values_[x].f32;
        values_[out].i32 = values_[x].i32;
        return;
      case OpKind::kFused:
        assert(false && "a flat graph holds no fused node");
    }
  }

  const Graph& graph_;
  const InterpreterInputs& inputs_;
  OpLibrary& ops_;
  std::vector<HostTensor> values_;
};

}  // namespace

InterpreterResult interpret(const Graph& graph, const InterpreterInputs& inputs, OpLibrary& ops) {
  const Graph flat = flatten(graph);
  return Interpreter(flat, inputs, ops).run();
}

}  // namespace assay::engine
