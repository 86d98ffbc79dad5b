// Output types of every operator, from its input types and attributes.
#include <algorithm>
#include <array>
#include <span>

#include "engine/graph/graph.h"

namespace assay::engine {
namespace {

using Types = std::vector<TensorType>;

bool is_float(DType dtype) {
  return dtype != DType::kI32;
}

// A type that is wrong for the operand it stands in.
std::unexpected<Error> wrong(std::string_view operand, std::string_view expected,
                             const TensorType& found) {
  return bad_input("{}: expected {}, found {}", operand, expected, to_string(found));
}

Status expect(std::string_view operand, const TensorType& expected, const TensorType& found) {
  if (expected != found) return wrong(operand, to_string(expected), found);
  return {};
}

Status expect_f32(std::string_view operand, const TensorType& type, size_t min_rank) {
  if (type.dtype != DType::kF32 || type.shape.size() < min_rank) {
    return wrong(operand, fmt::format("fp32 of at least {} dims", min_rank), type);
  }
  return {};
}

// A weight: any float type, the shape given.
Status expect_weight(std::string_view operand, const SymbolicShape& shape, const TensorType& type) {
  if (!is_float(type.dtype) || type.shape != shape) {
    return wrong(operand, to_string(TensorType{type.dtype, shape}), type);
  }
  return {};
}

template <typename T>
Result<T> attributes_as(const Attributes& attributes) {
  if (const T* found = std::get_if<T>(&attributes)) return *found;
  return bad_input("attributes: expected those of the operator, found alternative {}",
                   attributes.index());
}

SymbolicShape with_last(SymbolicShape shape, const Dim& last) {
  shape.back() = last;
  return shape;
}

Result<Types> embedding(const Types& in) {
  if (in[0].dtype != DType::kI32) return wrong("ids", "int32", in[0]);
  if (!is_float(in[1].dtype) || in[1].shape.size() != 2) {
    return wrong("table", "a float matrix", in[1]);
  }
  SymbolicShape shape = in[0].shape;
  shape.push_back(in[1].shape[1]);
  return Types{{DType::kF32, shape}};
}

// Checks an operand with one entry for each row of the batch: its length, its padding.
Status expect_by_row(std::string_view operand, const Dim& batch, const TensorType& type) {
  return expect(operand, {DType::kI32, {batch}}, type);
}

Result<Types> positions(const Types& in) {
  ASSAY_CHECK(expect_by_row("lengths", Dim::batch(), in[0]));
  ASSAY_CHECK(expect_by_row("pad", Dim::batch(), in[1]));
  return Types{{DType::kI32, {Dim::batch(), Dim::q_len()}}};
}

Result<Types> binary(const Types& in) {
  ASSAY_CHECK(expect_f32("x", in[0], 1));
  ASSAY_CHECK(expect("y", in[0], in[1]));
  return Types{in[0]};
}

Result<Types> activate(const Types& in, const Attributes& attributes) {
  ASSAY_CHECK(attributes_as<ActivateAttributes>(attributes));
  ASSAY_CHECK(expect_f32("x", in[0], 1));
  return Types{in[0]};
}

Result<Types> norm(const Types& in, const Attributes& attributes) {
  ASSAY_CHECK(attributes_as<NormAttributes>(attributes));
  ASSAY_CHECK(expect_f32("x", in[0], 1));
  ASSAY_CHECK(expect_weight("weight", {in[0].shape.back()}, in[1]));
  if (in.size() == 3) ASSAY_CHECK(expect_weight("bias", {in[0].shape.back()}, in[2]));
  return Types{in[0]};
}

Result<Types> linear(const Types& in, const Attributes& attributes) {
  ASSAY_TRY(const auto linear, attributes_as<LinearAttributes>(attributes));
  ASSAY_CHECK(expect_f32("x", in[0], 2));
  if (!is_float(in[1].dtype) || in[1].shape.size() != 2) {
    return wrong("weight", "a float matrix", in[1]);
  }
  const bool out_first = linear.layout == WeightLayout::kOutIn;
  const Dim out = in[1].shape[out_first ? 0 : 1];
  if (in[1].shape[out_first ? 1 : 0] != in[0].shape.back()) {
    return wrong("weight", fmt::format("{} inputs", in[0].shape.back().to_string()), in[1]);
  }
  if (in.size() == 3) ASSAY_CHECK(expect_weight("bias", {out}, in[2]));
  return Types{{DType::kF32, with_last(in[0].shape, out)}};
}

Result<Types> rope(const Types& in) {
  const SymbolicShape& shape = in[0].shape;
  if (in[0].dtype != DType::kF32 || shape.size() != 4 || !shape[3].is_constant() ||
      shape[3].factor() % 2 != 0) {
    return wrong("x", "fp32[batch, q_len, heads, an even head_dim]", in[0]);
  }
  ASSAY_CHECK(expect_by_row("lengths", shape[0], in[1]));
  ASSAY_CHECK(expect_by_row("pad", shape[0], in[2]));
  for (const TensorType& table : {in[3], in[4]}) {
    if (table.dtype != DType::kF32 || table.shape.size() != 2 ||
        table.shape[1] * Dim(2) != shape[3]) {
      return wrong("cos or sin", "fp32[positions, head_dim / 2]", table);
    }
  }
  return Types{in[0]};
}

Result<Types> kv_write(const Types& in) {
  if (in[1].dtype != DType::kF32 || in[1].shape.size() != 4) {
    return wrong("x", "fp32[batch, q_len, kv_heads, head_dim]", in[1]);
  }
  const SymbolicShape& x = in[1].shape;
  if (!is_float(in[0].dtype)) return wrong("cache", "a float type", in[0]);
  ASSAY_CHECK(expect("cache", {in[0].dtype, {x[0], x[2], Dim::kv_len(), x[3]}}, in[0]));
  ASSAY_CHECK(expect_by_row("lengths", x[0], in[2]));
  if (in.size() == 4) ASSAY_CHECK(expect_by_row("slots", x[0], in[3]));
  return Types{in[0]};
}

Result<Types> attention(const Types& in) {
  if (in[0].dtype != DType::kF32 || in[0].shape.size() != 4) {
    return wrong("q", "fp32[batch, q_len, heads, head_dim]", in[0]);
  }
  const SymbolicShape& q = in[0].shape;
  const SymbolicShape& keys = in[1].shape;
  const bool grouped = keys.size() == 4 && keys[1].is_constant() && q[2].is_constant() &&
                       keys[1].factor() > 0 && q[2].factor() % keys[1].factor() == 0;
  if (!grouped) return wrong("keys", "kv heads that divide the query's", in[1]);
  if (!is_float(in[1].dtype)) return wrong("keys", "a float type", in[1]);
  const TensorType cache{in[1].dtype, {q[0], keys[1], Dim::kv_len(), q[3]}};
  ASSAY_CHECK(expect("keys", cache, in[1]));
  ASSAY_CHECK(expect("values", cache, in[2]));
  ASSAY_CHECK(expect_by_row("lengths", q[0], in[3]));
  ASSAY_CHECK(expect_by_row("pad", q[0], in[4]));
  if (in.size() == 6) ASSAY_CHECK(expect_by_row("slots", q[0], in[5]));
  return Types{in[0]};
}

Result<Types> last_rows(const Types& in) {
  if (in[0].dtype != DType::kF32 || in[0].shape.size() != 3) {
    return wrong("x", "fp32[batch, q_len, width]", in[0]);
  }
  return Types{{DType::kF32, {in[0].shape[0], in[0].shape[2]}}};
}

Result<Types> argmax(const Types& in) {
  ASSAY_CHECK(expect_f32("x", in[0], 2));
  SymbolicShape shape = in[0].shape;
  shape.pop_back();
  return Types{{DType::kI32, shape}};
}

Result<Types> split(const Types& in, const Attributes& attributes) {
  ASSAY_TRY(const auto split, attributes_as<SplitAttributes>(attributes));
  ASSAY_CHECK(expect_f32("x", in[0], 1));
  Types out;
  int64_t sum = 0;
  for (const int64_t width : split.widths) {
    sum += width;
    out.push_back({DType::kF32, with_last(in[0].shape, Dim(width))});
  }
  if (in[0].shape.back() != Dim(sum)) {
    return wrong("x", fmt::format("a last dim of {}", sum), in[0]);
  }
  return out;
}

Result<Types> view(const Types& in, const Attributes& attributes) {
  ASSAY_TRY(auto view, attributes_as<ViewAttributes>(attributes));
  const TensorType out{in[0].dtype, std::move(view.shape)};
  if (elements(out.shape) != elements(in[0].shape)) {
    return wrong("x", fmt::format("the elements of {}", to_string(out)), in[0]);
  }
  return Types{out};
}

Result<Types> fused(const Types& in, const Attributes& attributes) {
  ASSAY_TRY(const auto fused, attributes_as<FusedAttributes>(attributes));
  for (const Value& value : fused.body->values) {
    const auto* parameter = std::get_if<ParameterSource>(&value.source);
    if (parameter == nullptr) continue;
    if (parameter->index >= in.size()) {
      return bad_input("parameter: expected an index below {}, found {}", in.size(),
                       parameter->index);
    }
    ASSAY_CHECK(expect("parameter", value.type, in[parameter->index]));
  }
  Types out;
  for (const ValueId id : fused.body->outputs) out.push_back(fused.body->values[id].type);
  return out;
}

constexpr size_t kMaxFusedInputs = 64;

struct Arity {
  size_t least, most;
};

Arity arity(OpKind op) {
  switch (op) {
    case OpKind::kActivate:
    case OpKind::kLastRows:
    case OpKind::kArgmax:
    case OpKind::kSplit:
    case OpKind::kView:
      return {1, 1};
    case OpKind::kEmbedding:
    case OpKind::kPositions:
    case OpKind::kAdd:
    case OpKind::kMultiply:
    case OpKind::kRmsNorm:
      return {2, 2};
    case OpKind::kLinear:
      return {2, 3};
    case OpKind::kLayerNorm:
      return {3, 3};
    case OpKind::kKvWrite:
      return {3, 4};
    case OpKind::kRope:
      return {5, 5};
    case OpKind::kAttention:
      return {5, 6};
    case OpKind::kFused:
      return {1, kMaxFusedInputs};
  }
  return {0, 0};
}

}  // namespace

Result<Types> infer_types(OpKind op, const Attributes& attributes, const Types& inputs) {
  const Arity allowed = arity(op);
  if (inputs.size() < allowed.least || inputs.size() > allowed.most) {
    return bad_input("inputs: expected {} to {}, found {}", allowed.least, allowed.most,
                     inputs.size());
  }
  switch (op) {
    case OpKind::kEmbedding:
      return embedding(inputs);
    case OpKind::kPositions:
      return positions(inputs);
    case OpKind::kAdd:
    case OpKind::kMultiply:
      return binary(inputs);
    case OpKind::kActivate:
      return activate(inputs, attributes);
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm:
      return norm(inputs, attributes);
    case OpKind::kLinear:
      return linear(inputs, attributes);
    case OpKind::kRope:
      return rope(inputs);
    case OpKind::kKvWrite:
      return kv_write(inputs);
    case OpKind::kAttention:
      return attention(inputs);
    case OpKind::kLastRows:
      return last_rows(inputs);
    case OpKind::kArgmax:
      return argmax(inputs);
    case OpKind::kSplit:
      return split(inputs, attributes);
    case OpKind::kView:
      return view(inputs, attributes);
    case OpKind::kFused:
      return fused(inputs, attributes);
  }
  return bad_input("operator: expected a known one, found {}", static_cast<int>(op));
}

}  // namespace assay::engine
