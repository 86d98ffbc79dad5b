// Every operator and every kind of fused body as a compiled kernel, against the interpreter.
#include "engine/codegen/lower/lower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/codegen/cpu/kernel_harness.h"
#include "engine/codegen/cpu/print_cpu.h"
#include "engine/graph/graph_builder.h"

namespace assay::engine {
namespace {

using test::Case;
using ::testing::HasSubstr;

constexpr int64_t kVocab = 61;

// Builds graphs on weights that come into being as they are named.
struct Model {
  explicit Model(const std::vector<TensorSpec>& specs, DType dtype = DType::kF32)
      : graph(specs, dtype) {}
  GraphBuilder graph;

  ValueId rows(const std::string& table) {
    return graph.add(OpKind::kEmbedding, {graph.ids(), graph.weight(table)});
  }
  ValueId norm(ValueId x, const std::string& name, bool centred) {
    std::vector<ValueId> inputs = {x, graph.weight(name + ".weight")};
    if (centred) inputs.push_back(graph.weight(name + ".bias"));
    return graph.add(centred ? OpKind::kLayerNorm : OpKind::kRmsNorm, inputs, NormAttributes{1e-5});
  }
  ValueId rope(ValueId x, int64_t head_dim) {
    return graph.add(OpKind::kRope, {x, graph.lengths(), graph.pad(),
                                     graph.rope_table(ConstantKind::kRopeCos, 64, head_dim),
                                     graph.rope_table(ConstantKind::kRopeSin, 64, head_dim)});
  }
  ValueId write(ValueId x, int64_t layer, CachePart part, int64_t heads, int64_t head_dim) {
    return graph.add(OpKind::kKvWrite,
                     {graph.cache(layer, part, heads, head_dim), x, graph.lengths()});
  }
  Graph finish(std::vector<ValueId> outputs) {
    auto built = graph.finish(std::move(outputs));
    EXPECT_TRUE(built) << built.error().message;
    return std::move(*built);
  }
};

std::vector<TensorSpec> specs(int64_t width, int64_t outputs) {
  return {{"table", Shape{kVocab, width}},
          {"other", Shape{kVocab, outputs}},
          {"n.weight", Shape{width}},
          {"n.bias", Shape{width}},
          {"m.weight", Shape{outputs}},
          {"m.bias", Shape{outputs}},
          {"out_in.weight", Shape{outputs, width}},
          {"out_in.bias", Shape{outputs}},
          {"in_out.weight", Shape{width, outputs}},
          {"in_out.bias", Shape{outputs}}};
}

// The nodes from `first` on become one fused node with the graph's outputs.
Graph fuse_from(const Graph& graph, size_t first) {
  Graph body;
  Node fused{OpKind::kFused, {}, graph.outputs, {}};
  std::map<ValueId, ValueId> inner;
  const auto parameter = [&](ValueId id) {
    if (inner.contains(id)) return inner[id];
    inner[id] = static_cast<ValueId>(body.values.size());
    body.values.push_back({graph.values[id].type, ParameterSource{fused.inputs.size()}});
    fused.inputs.push_back(id);
    return inner[id];
  };
  for (size_t i = first; i < graph.nodes.size(); ++i) {
    Node node{graph.nodes[i].op, {}, {}, graph.nodes[i].attributes};
    for (const ValueId id : graph.nodes[i].inputs) node.inputs.push_back(parameter(id));
    for (const ValueId id : graph.nodes[i].outputs) {
      inner[id] = static_cast<ValueId>(body.values.size());
      node.outputs.push_back(inner[id]);
      body.values.push_back({graph.values[id].type, NodeSource{}});
    }
    body.nodes.push_back(std::move(node));
  }
  for (const ValueId id : graph.outputs) body.outputs.push_back(inner.at(id));
  fused.attributes = FusedAttributes{std::make_shared<const Graph>(std::move(body))};
  Graph result = graph;
  result.nodes.resize(first);
  result.nodes.push_back(std::move(fused));
  return result;
}

void run(Case test) {
  test::Harness(std::move(test)).run();
}

constexpr DimValues kPrompt{3, 5, 9};
constexpr DimValues kStep{3, 1, 9};

TEST(LowerPlain, Embedding) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Model m(specs(37, 1), dtype);
    run({.graph = m.finish({m.rows("table")}), .dims = kPrompt, .threads = 2});
  }
}

TEST(LowerPlain, Elementwise) {
  for (const OpKind op : {OpKind::kAdd, OpKind::kMultiply}) {
    Model m(specs(37, 37));
    run({.graph = m.finish({m.graph.add(op, {m.rows("table"), m.rows("other")})}),
         .dims = kPrompt,
         .threads = 4});
  }
}

TEST(LowerPlain, Activations) {
  for (const Activation kind :
       {Activation::kGeluErf, Activation::kGeluTanh, Activation::kRelu, Activation::kSilu}) {
    Model m(specs(37, 1));
    const ValueId x = m.rows("table");
    // Values from about -30 to 30.
    ValueId wide = m.graph.add(OpKind::kAdd, {x, x});
    for (int i = 0; i < 4; ++i) wide = m.graph.add(OpKind::kAdd, {wide, wide});
    run({.graph = m.finish({m.graph.add(OpKind::kActivate, {wide}, ActivateAttributes{kind})}),
         .dims = kPrompt});
  }
}

TEST(LowerPlain, Norms) {
  for (const bool centred : {false, true}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Model m(specs(1000, 1), dtype);
      run({.graph = m.finish({m.norm(m.rows("table"), "n", centred)}),
           .dims = kPrompt,
           .threads = 2});
    }
  }
}

TEST(LowerPlain, NormOfHeads) {
  Model m({{"table", Shape{kVocab, 24}}, {"n.weight", Shape{8}}});
  const ValueId heads = m.graph.split_heads(m.rows("table"), 3, 8);
  run({.graph = m.finish({m.norm(heads, "n", false)}), .dims = kPrompt});
}

TEST(LowerPlain, SplitLastRowsArgmax) {
  Model m(specs(42, 1));
  const std::vector<ValueId> parts =
      m.graph.add_many(OpKind::kSplit, {m.rows("table")}, SplitAttributes{{12, 20, 10}});
  run({.graph = m.finish(parts), .dims = kPrompt});
  run({.graph = m.finish({m.graph.add(OpKind::kLastRows, {m.rows("table")})}), .dims = kPrompt});
  Model wide(specs(1500, 1));
  run({.graph = wide.finish({wide.graph.add(OpKind::kArgmax, {wide.rows("table")})}),
       .dims = kPrompt});
}

TEST(LowerPlain, RopeAndKvWrite) {
  for (const DimValues& dims : {kPrompt, kStep}) {
    Model m(specs(30, 1));
    const ValueId heads = m.graph.split_heads(m.rows("table"), 3, 10);
    run({.graph = m.finish({m.rope(heads, 10)}), .dims = dims});
    Model w(specs(30, 1));
    const ValueId x = w.graph.split_heads(w.rows("table"), 3, 10);
    run({.graph = w.finish({w.write(x, 0, CachePart::kKeys, 3, 10)}),
         .dims = dims,
         .capacity = 12});
  }
}

TEST(LowerPlain, Linear) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const WeightLayout layout : {WeightLayout::kOutIn, WeightLayout::kInOut}) {
      Model m(specs(37, 200), dtype);
      const bool out_in = layout == WeightLayout::kOutIn;
      const ValueId y = m.graph.linear(m.rows("table"), out_in ? "out_in" : "in_out", true, layout);
      run({.graph = m.finish({y}), .dims = kPrompt, .threads = 3});
    }
  }
}

TEST(LowerPlain, LinearOfEveryRowCount) {
  for (int64_t rows = 1; rows <= 9; ++rows) {
    Model m(specs(48, 70));
    const ValueId y = m.graph.linear(m.rows("table"), "out_in", false, WeightLayout::kOutIn);
    run({.graph = m.finish({y}), .dims = {rows, 1, 4}, .specialization = {rows, {}, {}, {}}});
  }
}

// An attention block's inputs as the passes leave them: norm, q/k/v in one product, bias, rope, and
// the cache's writes.
Graph qkv(int64_t heads, int64_t kv_heads, int64_t head_dim, bool turned, DType dtype) {
  const int64_t q = heads * head_dim, kv = kv_heads * head_dim;
  Model m(specs(40, q + 2 * kv), dtype);
  const ValueId x = m.norm(m.rows("table"), "n", !turned);
  const ValueId y = m.graph.linear(x, "out_in", true, WeightLayout::kOutIn);
  const auto parts = m.graph.add_many(OpKind::kSplit, {y}, SplitAttributes{{q, kv, kv}});
  ValueId query = m.graph.split_heads(parts[0], heads, head_dim);
  ValueId key = m.graph.split_heads(parts[1], kv_heads, head_dim);
  const ValueId value = m.graph.split_heads(parts[2], kv_heads, head_dim);
  if (turned) {
    query = m.rope(query, head_dim);
    key = m.rope(key, head_dim);
  }
  const ValueId keys = m.write(key, 0, CachePart::kKeys, kv_heads, head_dim);
  const ValueId values = m.write(value, 0, CachePart::kValues, kv_heads, head_dim);
  return fuse_from(m.finish({query, keys, values}), 1);
}

TEST(LowerProduct, NormSplitRopeKvWrite) {
  for (const bool turned : {true, false}) {
    const Graph graph = qkv(4, 2, 6, turned, DType::kF32);
    run({.graph = graph, .dims = kPrompt, .capacity = 14, .threads = 2});
    run({.graph = graph,
         .dims = kStep,
         .specialization = {3, 1, std::nullopt, 14},
         .capacity = 14,
         .threads = 2});
    run({.graph = graph,
         .dims = kPrompt,
         .specialization = {3, 5, 9, 14},
         .capacity = 14,
         .through_library = true});
  }
}

TEST(LowerProduct, WholeHeadsFillTiles) {
  run({.graph = qkv(3, 1, 64, true, DType::kBF16), .dims = kStep, .capacity = 14, .threads = 3});
  run({.graph = qkv(2, 1, 80, true, DType::kF32), .dims = kStep, .capacity = 14, .threads = 3});
}

TEST(LowerProduct, GatingOfInterleavedTiles) {
  for (const int64_t width : {64, 100}) {
    Model m(specs(40, 2 * width));
    const ValueId x = m.norm(m.rows("table"), "n", false);
    const ValueId y = m.graph.linear(x, "out_in", true, WeightLayout::kOutIn);
    const auto parts = m.graph.add_many(OpKind::kSplit, {y}, SplitAttributes{{width, width}});
    const ValueId gate =
        m.graph.add(OpKind::kActivate, {parts[0]}, ActivateAttributes{Activation::kSilu});
    const ValueId gated = m.graph.add(OpKind::kMultiply, {gate, parts[1]});
    const Graph graph = fuse_from(m.finish({gated}), 1);
    const auto packing = product_packing(graph, graph.nodes.back());
    ASSERT_TRUE(packing);
    EXPECT_TRUE(packing->interleaved);
    EXPECT_EQ(packing->tile, 128);
    run({.graph = graph, .dims = kPrompt, .threads = 2});
    run({.graph = graph, .dims = kPrompt, .through_library = true});
  }
}

TEST(LowerProduct, BiasActivationAndResidual) {
  Model m(specs(40, 100));
  const ValueId residual = m.rows("other");
  const ValueId x = m.rows("table");
  const ValueId y = m.graph.linear(x, "in_out", true, WeightLayout::kInOut);
  const ValueId active =
      m.graph.add(OpKind::kActivate, {y}, ActivateAttributes{Activation::kGeluTanh});
  const ValueId sum = m.graph.add(OpKind::kAdd, {residual, active});
  const Graph graph = fuse_from(m.finish({sum, active}), 2);
  run({.graph = graph, .dims = kPrompt, .threads = 2});
  run({.graph = graph, .dims = kPrompt, .through_library = true});
}

TEST(LowerProduct, HeadOfTheLastPosition) {
  for (const bool norm_first : {true, false}) {
    Model m(specs(40, 150));
    ValueId x = m.rows("table");
    if (norm_first) x = m.norm(x, "n", true);
    x = m.graph.add(OpKind::kLastRows, {x});
    if (!norm_first) x = m.norm(x, "n", true);
    const ValueId y = m.graph.linear(x, "out_in", false, WeightLayout::kOutIn);
    const Graph graph = fuse_from(m.finish({y}), 1);
    run({.graph = graph, .dims = kPrompt, .threads = 2});
    run({.graph = graph, .dims = kPrompt, .through_library = true});
  }
}

// A prompt's last rows are gathered; in a step of one position they are read where they lie.
TEST(LowerProduct, LastRowsOfTheInputsAndOfTheResidual) {
  Model m(specs(40, 40));
  const auto last = [&](ValueId x) { return m.graph.add(OpKind::kLastRows, {x}); };
  const ValueId x = m.rows("table"), residual = m.rows("other");
  const ValueId y = m.graph.linear(last(x), "out_in", true, WeightLayout::kOutIn);
  const Graph graph = fuse_from(m.finish({m.graph.add(OpKind::kAdd, {last(residual), y})}), 2);
  for (const DimValues& dims : {kPrompt, kStep}) {
    run({.graph = graph, .dims = dims, .threads = 2});
    run({.graph = graph, .dims = dims, .through_library = true});
  }
  for (const std::optional<int64_t> q_len :
       {std::optional<int64_t>(), std::optional<int64_t>(5), std::optional<int64_t>(1)}) {
    const auto kernel = lower(graph, graph.nodes.back(),
                              {.batch = {}, .q_len = q_len, .kv_len = {}, .capacity = {}});
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ(std::get<ProductKernel>(kernel->body).has_prologue, q_len != 1);
  }
}

// The first layer's product looks its rows up itself, and so may the residual behind it.
TEST(LowerProduct, EmbeddingBeforeAndBehind) {
  Model m(specs(40, 40));
  const ValueId x =
      m.graph.add(OpKind::kAdd,
                  {m.rows("table"),
                   m.graph.add(OpKind::kEmbedding,
                               {m.graph.add(OpKind::kPositions, {m.graph.lengths(), m.graph.pad()}),
                                m.graph.weight("other")})});
  const ValueId y = m.graph.linear(m.norm(x, "n", true), "out_in", true, WeightLayout::kOutIn);
  const ValueId sum = m.graph.add(OpKind::kAdd, {x, y});
  run({.graph = fuse_from(m.finish({sum}), 0), .dims = kPrompt, .threads = 2});
}

TEST(LowerRows, SumThenNorm) {
  Model m(specs(300, 300));
  const ValueId sum = m.graph.add(OpKind::kAdd, {m.rows("table"), m.rows("other")});
  const ValueId norm = m.norm(sum, "n", true);
  run({.graph = fuse_from(m.finish({sum, norm}), 0), .dims = kPrompt, .threads = 2});
}

TEST(LowerRows, RopeAndWriteOfBoth) {
  Model m(specs(24, 24));
  const ValueId key = m.rope(m.graph.split_heads(m.rows("table"), 3, 8), 8);
  const ValueId value = m.graph.split_heads(m.rows("other"), 3, 8);
  const ValueId keys = m.write(key, 0, CachePart::kKeys, 3, 8);
  const ValueId values = m.write(value, 0, CachePart::kValues, 3, 8);
  const Graph graph = m.finish({keys, values});
  run({.graph = fuse_from(graph, 2), .dims = kPrompt, .capacity = 11});
  run({.graph = fuse_from(graph, 2),
       .dims = kStep,
       .specialization = {3, 1, std::nullopt, {}},
       .capacity = 11});
}

TEST(LowerRows, LastRowsOfANormAndItsArgmax) {
  Model m(specs(700, 1));
  const ValueId x = m.graph.add(OpKind::kLastRows, {m.norm(m.rows("table"), "n", false)});
  const ValueId best = m.graph.add(OpKind::kArgmax, {x});
  run({.graph = fuse_from(m.finish({x, best}), 0), .dims = kPrompt});
}

std::string reason(const Graph& graph) {
  const Status status = can_lower(*std::get<FusedAttributes>(graph.nodes.back().attributes).body);
  return status ? "" : status.error().message;
}

TEST(CanLower, SaysWhyNot) {
  {
    Model m(specs(40, 40));
    const ValueId y = m.graph.linear(m.rows("table"), "out_in", false, WeightLayout::kOutIn);
    const ValueId z = m.graph.linear(y, "in_out", false, WeightLayout::kInOut);
    EXPECT_EQ(reason(fuse_from(m.finish({z}), 0)), "linear: expected one product, found a second");
  }
  {
    Model m(specs(40, 40));
    const ValueId y = m.graph.linear(m.rows("table"), "out_in", false, WeightLayout::kOutIn);
    EXPECT_EQ(reason(fuse_from(m.finish({m.norm(y, "m", false)}), 0)),
              "rms_norm: expected it before the product, found it behind");
  }
  {
    Model m(specs(40, 40));
    const ValueId x = m.rows("table");
    const ValueId last = m.graph.add(OpKind::kLastRows, {x});
    EXPECT_THAT(reason(fuse_from(m.finish({x, last}), 0)), HasSubstr("expected batch*q_len rows"));
  }
  {
    Model m(specs(40, 90));
    const ValueId y = m.graph.linear(m.rows("table"), "out_in", false, WeightLayout::kOutIn);
    const auto parts = m.graph.add_many(OpKind::kSplit, {y}, SplitAttributes{{30, 30, 30}});
    const ValueId z = m.graph.add(OpKind::kMultiply, {parts[0], parts[1]});
    EXPECT_EQ(reason(fuse_from(m.finish({z}), 0)),
              "split: expected two equal parts to meet, found 3 parts");
  }
}

TEST(Lower, RefusesAPackingThatCutsHeads) {
  Graph graph = qkv(4, 2, 6, true, DType::kF32);
  for (Value& value : graph.values) {
    auto* source = std::get_if<WeightSource>(&value.source);
    if (source == nullptr || source->tensors[0] != "out_in.weight") continue;
    source->packing = Packing{.tile = 64, .segments = {24, 12, 12}};
  }
  const auto kernel = lower(graph, graph.nodes.back(), {});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().message,
            "packing: expected tile=192 segments=[24,12,12], found tile=64 segments=[24,12,12]");
}

TEST(PrintCpu, LayersGiveTheSameText) {
  const Graph graph = qkv(4, 2, 6, true, DType::kF32);
  Graph other = graph;
  for (Value& value : other.values) {
    if (auto* source = std::get_if<WeightSource>(&value.source)) source->tensors[0] += ".1";
  }
  // The same values under other ids.
  other.values.insert(other.values.begin(),
                      Value{{DType::kI32, {Dim::batch()}}, InputSource{InputKind::kPad}});
  for (Node& node : other.nodes) {
    for (ValueId& id : node.inputs) ++id;
    for (ValueId& id : node.outputs) ++id;
  }
  EXPECT_EQ(print_cpu(lower(graph, graph.nodes.back(), {}).value()),
            print_cpu(lower(other, other.nodes.back(), {}).value()));
}

}  // namespace
}  // namespace assay::engine
