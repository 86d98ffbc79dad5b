// Random valid graphs for tests: layers as models have them and as none has, over every operator,
// with shared and dead values, odd widths and outputs in odd places.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/graph/graph.h"

namespace assay::engine::test {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed, 77), names_slots_(seed / 2 % 2 == 1) {
    head_dim_ = likely(16) ? std::array{20, 48, 72, 80}[below(4)] : 2 * (1 + below(6));
  }

  Graph build() {
    const ValueId ids = input(InputKind::kIds, {Dim::batch(), Dim::q_len()});
    lengths_ = input(InputKind::kLengths, {Dim::batch()});
    pad_ = input(InputKind::kPad, {Dim::batch()});
    if (names_slots_) slots_ = input(InputKind::kSlots, {Dim::batch()});
    const int64_t width = likely(6) ? 1 + below(3) : 4 + below(16);
    ValueId x = embed(ids, width);
    if (likely(2)) {
      const ValueId positions = one(OpKind::kPositions, {lengths_, pad_});
      x = one(OpKind::kAdd, {x, embed(positions, width)});
    }
    keep(x);
    const int64_t layers = 1 + below(3);
    for (int64_t layer = 0; layer < layers; ++layer) {
      if (!likely(5)) x = attention_block(x, layer);
      if (likely(2)) noise();
      if (!likely(5)) x = mlp_block(x);
      if (likely(2)) noise();
    }
    if (!likely(4)) head(x);
    choose_outputs(x);
    const Status status = validate(graph_);
    EXPECT_TRUE(status) << status.error().message << "\n" << dump(graph_);
    return std::move(graph_);
  }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound)));
  }
  bool likely(int64_t one_in) { return below(one_in) == 0; }

  const TensorType& type(ValueId id) const { return graph_.values[id].type; }
  int64_t width_of(ValueId id) const { return type(id).shape.back().factor(); }

  ValueId value(const TensorType& of, const Source& source) {
    graph_.values.push_back({of, source});
    return static_cast<ValueId>(graph_.values.size() - 1);
  }
  ValueId input(InputKind kind, const SymbolicShape& shape) {
    return value({DType::kI32, shape}, InputSource{kind});
  }

  // Now and then one that another node reads already.
  ValueId weight(const SymbolicShape& shape) {
    if (likely(12)) {
      for (ValueId id = 0; id < graph_.values.size(); ++id) {
        const bool is_weight = std::holds_alternative<WeightSource>(graph_.values[id].source);
        if (is_weight && type(id).shape == shape) return id;
      }
    }
    const DType dtype = likely(20) ? DType::kF16 : likely(3) ? DType::kBF16 : DType::kF32;
    return value({dtype, shape},
                 WeightSource{.tensors = {fmt::format("w{}", graph_.values.size())}});
  }

  std::vector<ValueId> many(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    std::vector<TensorType> types;
    for (const ValueId id : inputs) types.push_back(type(id));
    const auto inferred = infer_types(op, attributes, types);
    EXPECT_TRUE(inferred) << op_name(op) << ": " << inferred.error().message;
    std::vector<ValueId> outputs;
    for (const TensorType& t : *inferred) outputs.push_back(value(t, NodeSource{}));
    graph_.nodes.push_back({op, std::move(inputs), outputs, std::move(attributes)});
    return outputs;
  }
  ValueId one(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return many(op, std::move(inputs), std::move(attributes)).front();
  }

  // Something that later nodes and outputs may pick.
  ValueId keep(ValueId id) {
    pool_.push_back(id);
    return id;
  }
  ValueId pick() { return pool_[static_cast<size_t>(below(static_cast<int64_t>(pool_.size())))]; }

  ValueId embed(ValueId ids, int64_t width) {
    return one(OpKind::kEmbedding, {ids, weight({Dim(7 + below(9)), Dim(width)})});
  }

  ValueId norm(ValueId x) {
    const Dim width = type(x).shape.back();
    const NormAttributes eps{likely(2) ? 1e-5 : 1e-2};
    if (likely(2)) return one(OpKind::kRmsNorm, {x, weight({width})}, eps);
    return one(OpKind::kLayerNorm, {x, weight({width}), weight({width})}, eps);
  }

  ValueId linear(ValueId x, int64_t outputs, WeightLayout layout, bool bias) {
    const Dim in = type(x).shape.back();
    const Dim out(outputs);
    const bool out_in = layout == WeightLayout::kOutIn;
    std::vector<ValueId> inputs = {x, out_in ? weight({out, in}) : weight({in, out})};
    if (bias) inputs.push_back(weight({out}));
    return one(OpKind::kLinear, std::move(inputs), LinearAttributes{layout});
  }
  ValueId linear(ValueId x, int64_t outputs) {
    return linear(x, outputs, likely(3) ? WeightLayout::kInOut : WeightLayout::kOutIn, likely(2));
  }

  ValueId activate(ValueId x) {
    return one(OpKind::kActivate, {x}, ActivateAttributes{static_cast<Activation>(below(4))});
  }

  ValueId heads_of(ValueId x, int64_t heads) {
    return one(OpKind::kView, {x},
               ViewAttributes{{Dim::batch(), Dim::q_len(), Dim(heads), Dim(head_dim_)}});
  }

  ValueId rope(ValueId x) {
    if (!cos_) {
      const TensorType table{DType::kF32, {Dim(64), Dim(head_dim_ / 2)}};
      cos_ = value(table, ConstantSource{ConstantKind::kRopeCos});
      sin_ = value(table, ConstantSource{ConstantKind::kRopeSin});
    }
    return one(OpKind::kRope, {x, lengths_, pad_, *cos_, *sin_});
  }

  ValueId attention_block(ValueId x, int64_t layer) {
    const int64_t kv_heads = 1 + below(2);
    const int64_t heads = kv_heads * (head_dim_ > 16 ? 1 : 1 + below(3));
    const ValueId n = likely(6) ? x : norm(x);
    const std::vector<int64_t> widths = {heads * head_dim_, kv_heads * head_dim_,
                                         kv_heads * head_dim_};
    std::vector<ValueId> qkv;
    if (likely(2)) {
      qkv = many(OpKind::kSplit, {linear(n, widths[0] + 2 * widths[1])}, SplitAttributes{widths});
    } else {
      const WeightLayout layout = likely(2) ? WeightLayout::kInOut : WeightLayout::kOutIn;
      const bool bias = likely(2);
      for (const int64_t w : widths) qkv.push_back(linear(n, w, layout, likely(9) != bias));
    }
    if (likely(8)) keep(qkv[static_cast<size_t>(below(3))]);
    ValueId q = heads_of(qkv[0], heads);
    ValueId k = heads_of(qkv[1], kv_heads);
    const ValueId v = heads_of(qkv[2], kv_heads);
    const bool turned = !likely(3);
    if (turned) q = rope(q);
    if (turned && !likely(8)) k = rope(k);
    const ValueId mixed = attend(q, k, v, kv_heads, layer);
    const ValueId merged =
        one(OpKind::kView, {mixed},
            ViewAttributes{{Dim::batch(), Dim::q_len(), Dim(heads * head_dim_)}});
    return residual(x, linear(merged, width_of(x)));
  }

  ValueId attend(ValueId q, ValueId k, ValueId v, int64_t kv_heads, int64_t layer) {
    const TensorType cache{DType::kF32,
                           {Dim::batch(), Dim(kv_heads), Dim::kv_len(), Dim(head_dim_)}};
    const ValueId keys = value(cache, CacheSource{layer, CachePart::kKeys});
    const ValueId values = value(cache, CacheSource{layer, CachePart::kValues});
    // A node that reads a cache's old content comes before the write.
    if (likely(8)) {
      const ValueId old = one(OpKind::kAttention, in_slots({q, keys, values, lengths_, pad_}));
      const ValueId again = one(OpKind::kAdd, {old, q});
      keep(again);
      if (likely(2)) k = kv_heads == type(q).shape[2].factor() ? again : k;
    }
    const ValueId new_keys = one(OpKind::kKvWrite, in_slots({keys, k, lengths_}));
    if (likely(10)) return one(OpKind::kAttention, in_slots({q, new_keys, values, lengths_, pad_}));
    const ValueId new_values = one(OpKind::kKvWrite, in_slots({values, v, lengths_}));
    if (likely(10)) caches_.push_back(new_values);
    return one(OpKind::kAttention, in_slots({q, new_keys, new_values, lengths_, pad_}));
  }

  ValueId mlp_block(ValueId x) {
    const ValueId n = likely(6) ? x : norm(x);
    const int64_t inner = 1 + below(24);
    ValueId active = 0;
    switch (below(3)) {
      case 0:
        active = activate(linear(n, inner));
        break;
      case 1: {
        const ValueId gate = activate(linear(n, inner, WeightLayout::kOutIn, false));
        const ValueId up = linear(n, inner, WeightLayout::kOutIn, false);
        if (likely(6)) keep(up);
        active = one(OpKind::kMultiply, {gate, up});
        break;
      }
      default: {
        const auto halves =
            many(OpKind::kSplit, {linear(n, 2 * inner)}, SplitAttributes{{inner, inner}});
        active =
            one(likely(3) ? OpKind::kAdd : OpKind::kMultiply, {halves[1], activate(halves[0])});
        if (likely(6)) keep(halves[static_cast<size_t>(below(2))]);
      }
    }
    if (likely(6)) keep(active);
    return residual(x, linear(active, width_of(x)));
  }

  ValueId residual(ValueId x, ValueId y) {
    if (likely(8)) return keep(y);
    return keep(likely(2) ? one(OpKind::kAdd, {x, y}) : one(OpKind::kAdd, {y, x}));
  }

  // A few operators on anything there is; much of it is never read.
  void noise() {
    for (int64_t i = 1 + below(4); i > 0; --i) add_noise(pick());
  }

  void add_noise(ValueId x) {
    const bool rows = type(x).shape.size() == 3;
    switch (below(10)) {
      case 0:
        keep(activate(x));
        break;
      case 1:
      case 2: {
        const ValueId y = pick();
        const ValueId other = type(y) == type(x) ? y : x;
        keep(one(likely(2) ? OpKind::kAdd : OpKind::kMultiply, {x, other}));
        break;
      }
      case 3:
        keep(norm(x));
        break;
      case 4:
        keep(linear(x, 1 + below(20)));
        break;
      case 5:
        if (width_of(x) > 1) {
          const int64_t first = 1 + below(width_of(x) - 1);
          for (const ValueId part :
               many(OpKind::kSplit, {x}, SplitAttributes{{first, width_of(x) - first}})) {
            keep(part);
          }
        }
        break;
      case 6:
        if (rows) keep(one(OpKind::kLastRows, {x}));
        break;
      case 7: {
        const ValueId index = one(OpKind::kArgmax, {x});
        integers_.push_back(index);
        break;
      }
      case 8:
        if (rows) {
          const Dim both = Dim::batch() * Dim::q_len();
          keep(one(OpKind::kView, {x}, ViewAttributes{{both, type(x).shape.back()}}));
        }
        break;
      default:
        if (rows) {  // rows run into each other
          const ValueId flat = one(OpKind::kView, {x},
                                   ViewAttributes{{Dim::batch(), Dim::q_len() * type(x).shape[2]}});
          integers_.push_back(one(OpKind::kArgmax, {activate(flat)}));
        }
    }
  }

  void head(ValueId x) {
    ValueId hidden = likely(2) ? one(OpKind::kLastRows, {norm(x)}) : norm(x);
    if (likely(6)) keep(hidden);
    const ValueId logits = keep(linear(hidden, 3 + below(30), WeightLayout::kOutIn, false));
    integers_.push_back(one(OpKind::kArgmax, {logits}));
    graph_.outputs = {logits, integers_.back()};
  }

  void choose_outputs(ValueId x) {
    if (graph_.outputs.empty()) graph_.outputs.push_back(x);
    while (likely(2)) graph_.outputs.push_back(pick());
    if (!integers_.empty() && likely(2)) graph_.outputs.push_back(integers_.front());
    if (!caches_.empty()) graph_.outputs.push_back(caches_.front());
  }

  std::vector<ValueId> in_slots(std::vector<ValueId> inputs) const {
    if (names_slots_) inputs.push_back(slots_);
    return inputs;
  }

  Random random_;
  bool names_slots_;
  Graph graph_;
  int64_t head_dim_ = 2;
  ValueId lengths_ = 0, pad_ = 0, slots_ = 0;
  std::optional<ValueId> cos_, sin_;
  std::vector<ValueId> pool_;      // floats, [..., a constant width]
  std::vector<ValueId> integers_;  // of argmax
  std::vector<ValueId> caches_;    // written
};

}  // namespace assay::engine::test
