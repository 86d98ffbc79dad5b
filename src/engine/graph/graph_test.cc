#include "engine/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/architectures.h"

namespace assay::engine {
namespace {

using ::testing::HasSubstr;

ModelConfig tiny_gpt2() {
  ModelConfig config;
  config.architecture = Architecture::kGpt2;
  config.linear_layout = WeightLayout::kInOut;
  config.vocab_size = 11;
  config.hidden_size = 6;
  config.layers = 1;
  config.heads = config.kv_heads = 3;
  config.head_dim = 2;
  config.intermediate_size = 24;
  config.max_positions = 16;
  config.norm = NormKind::kLayerNorm;
  config.activation = Activation::kGeluTanh;
  config.gated_mlp = false;
  config.tied_embeddings = true;
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  config.learned_positions = true;
  return config;
}

ModelConfig tiny_qwen2() {
  ModelConfig config;
  config.architecture = Architecture::kQwen2;
  config.vocab_size = 11;
  config.hidden_size = 8;
  config.layers = 1;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 2;
  config.intermediate_size = 12;
  config.max_positions = 32;
  config.norm_eps = 1e-6;
  config.qkv_bias = true;
  return config;
}

TEST(Dim, ProductsEvaluateAndPrint) {
  const Dim rows = Dim::batch() * Dim::q_len();
  EXPECT_EQ(rows.to_string(), "batch*q_len");
  EXPECT_EQ((Dim(3) * rows).to_string(), "3*batch*q_len");
  EXPECT_EQ(Dim(1).to_string(), "1");
  EXPECT_EQ((Dim(3) * rows).value({.batch = 2, .q_len = 5, .kv_len = 7}), 30);
  EXPECT_EQ(rows, Dim::q_len() * Dim::batch());
  EXPECT_NE(rows, Dim::q_len());
  EXPECT_EQ(elements(SymbolicShape{Dim(4), Dim::kv_len(), Dim(2)}), Dim(8) * Dim::kv_len());
}

TEST(Graph, Gpt2IsUnfusedWithOneProductForQkv) {
  const auto graph = build_graph(tiny_gpt2(), DType::kF32, LogitsOf::kLastPosition);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(dump(*graph), R"(%0 = input ids : int32[batch, q_len]
%1 = weight "transformer.wte.weight" : fp32[11, 6]
%3 = input lengths : int32[batch]
%4 = input pad : int32[batch]
%6 = weight "transformer.wpe.weight" : fp32[16, 6]
%9 = weight "transformer.h.0.ln_1.weight" : fp32[6]
%10 = weight "transformer.h.0.ln_1.bias" : fp32[6]
%12 = weight "transformer.h.0.attn.c_attn.weight" : fp32[6, 18]
%13 = weight "transformer.h.0.attn.c_attn.bias" : fp32[18]
%21 = cache layer=0 keys : fp32[batch, 3, kv_len, 2]
%23 = cache layer=0 values : fp32[batch, 3, kv_len, 2]
%27 = weight "transformer.h.0.attn.c_proj.weight" : fp32[6, 6]
%28 = weight "transformer.h.0.attn.c_proj.bias" : fp32[6]
%31 = weight "transformer.h.0.ln_2.weight" : fp32[6]
%32 = weight "transformer.h.0.ln_2.bias" : fp32[6]
%34 = weight "transformer.h.0.mlp.c_fc.weight" : fp32[6, 24]
%35 = weight "transformer.h.0.mlp.c_fc.bias" : fp32[24]
%38 = weight "transformer.h.0.mlp.c_proj.weight" : fp32[24, 6]
%39 = weight "transformer.h.0.mlp.c_proj.bias" : fp32[6]
%42 = weight "transformer.ln_f.weight" : fp32[6]
%43 = weight "transformer.ln_f.bias" : fp32[6]
%2 = embedding(%0, %1) : fp32[batch, q_len, 6]
%5 = positions(%3, %4) : int32[batch, q_len]
%7 = embedding(%5, %6) : fp32[batch, q_len, 6]
%8 = add(%2, %7) : fp32[batch, q_len, 6]
%11 = layer_norm(%8, %9, %10) eps=1e-05 : fp32[batch, q_len, 6]
%14 = linear(%11, %12, %13) layout=in_out : fp32[batch, q_len, 18]
%15, %16, %17 = split(%14) widths=[6, 6, 6] : fp32[batch, q_len, 6], fp32[batch, q_len, 6], fp32[batch, q_len, 6]
%18 = view(%15) : fp32[batch, q_len, 3, 2]
%19 = view(%16) : fp32[batch, q_len, 3, 2]
%20 = view(%17) : fp32[batch, q_len, 3, 2]
%22 = kv_write(%21, %19, %3) : fp32[batch, 3, kv_len, 2]
%24 = kv_write(%23, %20, %3) : fp32[batch, 3, kv_len, 2]
%25 = attention(%18, %22, %24, %3, %4) : fp32[batch, q_len, 3, 2]
%26 = view(%25) : fp32[batch, q_len, 6]
%29 = linear(%26, %27, %28) layout=in_out : fp32[batch, q_len, 6]
%30 = add(%29, %8) : fp32[batch, q_len, 6]
%33 = layer_norm(%30, %31, %32) eps=1e-05 : fp32[batch, q_len, 6]
%36 = linear(%33, %34, %35) layout=in_out : fp32[batch, q_len, 24]
%37 = activate(%36) kind=gelu_tanh : fp32[batch, q_len, 24]
%40 = linear(%37, %38, %39) layout=in_out : fp32[batch, q_len, 6]
%41 = add(%30, %40) : fp32[batch, q_len, 6]
%44 = layer_norm(%41, %42, %43) eps=1e-05 : fp32[batch, q_len, 6]
%45 = last_rows(%44) : fp32[batch, 6]
%46 = linear(%45, %1) layout=out_in : fp32[batch, 11]
%47 = argmax(%46) : int32[batch]
return %46, %47
)");
}

TEST(Graph, Qwen2HasApartProductsAndRope) {
  const auto graph = build_graph(tiny_qwen2(), DType::kBF16, LogitsOf::kLastPosition);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(dump(*graph), R"(%0 = input ids : int32[batch, q_len]
%1 = weight "model.embed_tokens.weight" : bf16[11, 8]
%3 = weight "model.layers.0.input_layernorm.weight" : bf16[8]
%5 = weight "model.layers.0.self_attn.q_proj.weight" : bf16[8, 8]
%6 = weight "model.layers.0.self_attn.q_proj.bias" : bf16[8]
%9 = weight "model.layers.0.self_attn.k_proj.weight" : bf16[4, 8]
%10 = weight "model.layers.0.self_attn.k_proj.bias" : bf16[4]
%13 = weight "model.layers.0.self_attn.v_proj.weight" : bf16[4, 8]
%14 = weight "model.layers.0.self_attn.v_proj.bias" : bf16[4]
%17 = input lengths : int32[batch]
%18 = input pad : int32[batch]
%19 = constant rope_cos : fp32[32, 1]
%20 = constant rope_sin : fp32[32, 1]
%23 = cache layer=0 keys : fp32[batch, 2, kv_len, 2]
%25 = cache layer=0 values : fp32[batch, 2, kv_len, 2]
%29 = weight "model.layers.0.self_attn.o_proj.weight" : bf16[8, 8]
%32 = weight "model.layers.0.post_attention_layernorm.weight" : bf16[8]
%34 = weight "model.layers.0.mlp.gate_proj.weight" : bf16[12, 8]
%37 = weight "model.layers.0.mlp.up_proj.weight" : bf16[12, 8]
%40 = weight "model.layers.0.mlp.down_proj.weight" : bf16[8, 12]
%43 = weight "model.norm.weight" : bf16[8]
%46 = weight "lm_head.weight" : bf16[11, 8]
%2 = embedding(%0, %1) : fp32[batch, q_len, 8]
%4 = rms_norm(%2, %3) eps=1e-06 : fp32[batch, q_len, 8]
%7 = linear(%4, %5, %6) layout=out_in : fp32[batch, q_len, 8]
%8 = view(%7) : fp32[batch, q_len, 4, 2]
%11 = linear(%4, %9, %10) layout=out_in : fp32[batch, q_len, 4]
%12 = view(%11) : fp32[batch, q_len, 2, 2]
%15 = linear(%4, %13, %14) layout=out_in : fp32[batch, q_len, 4]
%16 = view(%15) : fp32[batch, q_len, 2, 2]
%21 = rope(%8, %17, %18, %19, %20) : fp32[batch, q_len, 4, 2]
%22 = rope(%12, %17, %18, %19, %20) : fp32[batch, q_len, 2, 2]
%24 = kv_write(%23, %22, %17) : fp32[batch, 2, kv_len, 2]
%26 = kv_write(%25, %16, %17) : fp32[batch, 2, kv_len, 2]
%27 = attention(%21, %24, %26, %17, %18) : fp32[batch, q_len, 4, 2]
%28 = view(%27) : fp32[batch, q_len, 8]
%30 = linear(%28, %29) layout=out_in : fp32[batch, q_len, 8]
%31 = add(%2, %30) : fp32[batch, q_len, 8]
%33 = rms_norm(%31, %32) eps=1e-06 : fp32[batch, q_len, 8]
%35 = linear(%33, %34) layout=out_in : fp32[batch, q_len, 12]
%36 = activate(%35) kind=silu : fp32[batch, q_len, 12]
%38 = linear(%33, %37) layout=out_in : fp32[batch, q_len, 12]
%39 = multiply(%36, %38) : fp32[batch, q_len, 12]
%41 = linear(%39, %40) layout=out_in : fp32[batch, q_len, 8]
%42 = add(%31, %41) : fp32[batch, q_len, 8]
%44 = rms_norm(%42, %43) eps=1e-06 : fp32[batch, q_len, 8]
%45 = last_rows(%44) : fp32[batch, 8]
%47 = linear(%45, %46) layout=out_in : fp32[batch, 11]
%48 = argmax(%47) : int32[batch]
return %47, %48
)");
}

TEST(Graph, AllPositionsKeepEveryRowOfTheHead) {
  const auto graph = build_graph(tiny_qwen2(), DType::kF32, LogitsOf::kAllPositions);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(to_string(graph->values[graph->outputs[0]].type), "fp32[batch, q_len, 11]");
  EXPECT_EQ(to_string(graph->values[graph->outputs[1]].type), "int32[batch]");
}

TEST(Graph, CachesHaveATypeOfTheirOwn) {
  const auto graph = build_graph(tiny_qwen2(), DType::kBF16, LogitsOf::kLastPosition, DType::kBF16);
  ASSERT_TRUE(graph) << graph.error().message;
  const std::string text = dump(*graph);
  EXPECT_THAT(text, HasSubstr("= cache layer=0 values : bf16[batch, 2, kv_len, 2]"));
  EXPECT_THAT(text, HasSubstr("%26 = kv_write(%25, %16, %17) : bf16[batch, 2, kv_len, 2]"));
  EXPECT_THAT(text,
              HasSubstr("%27 = attention(%21, %24, %26, %17, %18) : fp32[batch, q_len, 4, 2]"));
}

class BrokenGraph : public ::testing::Test {
 protected:
  void expect_invalid(const std::string& message) {
    const Status status = validate(graph_);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr(message));
  }
  Node& first(OpKind op) { return *std::ranges::find(graph_.nodes, op, &Node::op); }

  Graph graph_ = *build_graph(tiny_gpt2(), DType::kF32, LogitsOf::kLastPosition);
};

TEST_F(BrokenGraph, UseBeforeDefinition) {
  std::swap(graph_.nodes[0], graph_.nodes[2]);
  expect_invalid("expected a value defined before its use");
}

TEST_F(BrokenGraph, SecondDefinition) {
  graph_.nodes[1].outputs = graph_.nodes[0].outputs;
  expect_invalid("expected one definition, found a second");
}

TEST_F(BrokenGraph, ValueWithoutANode) {
  graph_.values.push_back({{DType::kF32, {Dim(1)}}, NodeSource{}});
  expect_invalid("expected a node that computes it, found none");
}

TEST_F(BrokenGraph, UnknownValue) {
  graph_.outputs[0] = 1'000'000;
  expect_invalid("outputs: %1000000: expected a value of the graph");
}

TEST_F(BrokenGraph, DeclaredTypeIsNotTheInferredOne) {
  graph_.values[first(OpKind::kAdd).outputs[0]].type.shape[2] = Dim(7);
  expect_invalid("(add): %");
}

TEST_F(BrokenGraph, WrongOperandShape) {
  Node& norm = first(OpKind::kLayerNorm);
  std::swap(norm.inputs[1], first(OpKind::kEmbedding).inputs[1]);
  expect_invalid("(embedding): table: expected a float matrix, found fp32[6]");
}

TEST_F(BrokenGraph, MissingAttributes) {
  first(OpKind::kLinear).attributes = {};
  expect_invalid("(linear): attributes: expected those of the operator");
}

TEST_F(BrokenGraph, ReadingACacheThatWasOverwritten) {
  const ValueId before = first(OpKind::kKvWrite).inputs[0];
  first(OpKind::kAttention).inputs[1] = before;
  expect_invalid("expected a cache that no write has consumed");
}

TEST_F(BrokenGraph, WritingACacheTwice) {
  const Node write = first(OpKind::kKvWrite);
  const auto copy = static_cast<ValueId>(graph_.values.size());
  graph_.values.push_back(graph_.values[write.outputs[0]]);
  graph_.nodes.push_back(
      {OpKind::kKvWrite, {write.outputs[0], write.inputs[1], write.inputs[2]}, {copy}, {}});
  expect_invalid("expected a layer's cache, found another value");
}

TEST(InferTypes, CountsItsInputs) {
  const auto types = infer_types(OpKind::kAdd, {}, {{DType::kF32, {Dim(2)}}});
  ASSERT_FALSE(types);
  EXPECT_EQ(types.error().message, "inputs: expected 2 to 2, found 1");
}

TEST(InferTypes, SplitMustAddUp) {
  const TensorType x{DType::kF32, {Dim::batch(), Dim(6)}};
  const auto types = infer_types(OpKind::kSplit, SplitAttributes{{2, 4}}, {x});
  ASSERT_TRUE(types);
  EXPECT_EQ(to_string((*types)[1]), "fp32[batch, 4]");
  EXPECT_FALSE(infer_types(OpKind::kSplit, SplitAttributes{{2, 3}}, {x}));
}

TEST(InferTypes, ViewKeepsTheElements) {
  const TensorType x{DType::kF32, {Dim::batch(), Dim::q_len(), Dim(6)}};
  EXPECT_TRUE(infer_types(OpKind::kView,
                          ViewAttributes{{Dim::batch() * Dim::q_len(), Dim(2), Dim(3)}}, {x}));
  EXPECT_FALSE(infer_types(OpKind::kView, ViewAttributes{{Dim::batch(), Dim(6)}}, {x}));
}

TEST(InferTypes, GroupedHeadsMustDivide) {
  const TensorType q{DType::kF32, {Dim::batch(), Dim::q_len(), Dim(4), Dim(2)}};
  const TensorType row{DType::kI32, {Dim::batch()}};
  const auto cache = [](int64_t kv_heads) {
    return TensorType{DType::kF32, {Dim::batch(), Dim(kv_heads), Dim::kv_len(), Dim(2)}};
  };
  EXPECT_TRUE(infer_types(OpKind::kAttention, {}, {q, cache(2), cache(2), row, row}));
  EXPECT_FALSE(infer_types(OpKind::kAttention, {}, {q, cache(3), cache(3), row, row}));
  EXPECT_FALSE(infer_types(OpKind::kAttention, {}, {q, cache(2), cache(4), row, row}));
}

}  // namespace
}  // namespace assay::engine
