// Wrong rewrites of every kind that a pass could make, each of which has to be found.
#include "engine/passes/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "engine/passes/pass.h"
#include "engine/passes/rewrite.h"
#include "engine/passes/test_models.h"

namespace assay::engine {
namespace {

using test::model_graph;
using ::testing::HasSubstr;

Node& first(Graph& graph, OpKind op, size_t skip = 0) {
  for (Node& node : graph.nodes) {
    if (node.op == op && skip-- == 0) return node;
  }
  ADD_FAILURE() << "expected a node " << op_name(op);
  return graph.nodes.front();
}

// A fused node's body, to be changed.
void change_body(Node& node, const std::function<void(Graph&)>& change) {
  auto body = std::make_shared<Graph>(*std::get<FusedAttributes>(node.attributes).body);
  change(*body);
  node.attributes = FusedAttributes{std::move(body)};
}

Node& fused_with(Graph& graph, OpKind op) {
  for (Node& node : graph.nodes) {
    if (node.op != OpKind::kFused) continue;
    const auto& nodes = std::get<FusedAttributes>(node.attributes).body->nodes;
    if (std::ranges::find(nodes, op, &Node::op) != nodes.end()) return node;
  }
  ADD_FAILURE() << "expected a fused node with " << op_name(op);
  return graph.nodes.front();
}

WeightSource& merged_weight(Graph& graph, std::string_view part) {
  for (Value& value : graph.values) {
    auto* weight = std::get_if<WeightSource>(&value.source);
    if (weight == nullptr || weight->tensors.size() < 2) continue;
    if (weight->tensors[0].find(part) != std::string::npos) return *weight;
  }
  ADD_FAILURE() << "expected a merged weight of " << part;
  return std::get<WeightSource>(graph.values[1].source);
}

// The model, optimised, then spoilt.
Status check_spoilt(const std::string& name, const std::function<void(Graph&)>& spoil) {
  const Graph original = model_graph(name, DType::kBF16);
  Graph graph = original;
  EXPECT_TRUE(run_passes(graph, {}));
  Verifier verifier(original, 1);
  const Status untouched = verifier.check(graph);
  EXPECT_TRUE(untouched) << untouched.error().message;
  spoil(graph);
  const Status valid = validate(graph);
  EXPECT_TRUE(valid) << valid.error().message;  // the type rules don't see it
  return verifier.check(graph);
}

void expect_found(const std::string& name, const std::string& where,
                  const std::function<void(Graph&)>& spoil) {
  const Status status = check_spoilt(name, spoil);
  ASSERT_FALSE(status) << "expected it to be found";
  EXPECT_THAT(status.error().message, HasSubstr(where));
}

TEST(Verifier, FindsPartsOfAMergedWeightInTheWrongOrder) {
  expect_found("tiny-llama", "output 0: expected", [](Graph& graph) {
    WeightSource& weight = merged_weight(graph, "gate_proj");
    std::swap(weight.tensors[0], weight.tensors[1]);
  });
  expect_found("tiny-qwen2", "output 0: expected", [](Graph& graph) {
    WeightSource& bias = merged_weight(graph, "q_proj.bias");
    std::swap(bias.tensors[1], bias.tensors[2]);
  });
}

TEST(Verifier, FindsAnotherEpsilon) {
  expect_found("tiny-qwen2", "output 0: expected", [](Graph& graph) {
    change_body(fused_with(graph, OpKind::kMultiply), [](Graph& body) {
      first(body, OpKind::kRmsNorm).attributes = NormAttributes{1e-5};  // for 1e-6
    });
  });
}

TEST(Verifier, FindsAnotherActivation) {
  expect_found("tiny-gpt2", "output 0: expected", [](Graph& graph) {
    change_body(fused_with(graph, OpKind::kActivate), [](Graph& body) {
      first(body, OpKind::kActivate).attributes = ActivateAttributes{Activation::kGeluErf};
    });
  });
}

TEST(Verifier, FindsTheWrongResidual) {
  expect_found("tiny-qwen2", "output 0: expected", [](Graph& graph) {
    Node& last = fused_with(graph, OpKind::kAdd);
    last.inputs.back() = last.inputs.front();  // the product's input, which is of the same type
  });
}

TEST(Verifier, FindsAnOutputThatIsAnotherOfItsType) {
  expect_found("tiny-llama", "output 0: expected", [](Graph& graph) {
    Node& node = fused_with(graph, OpKind::kKvWrite);
    change_body(node, [](Graph& body) { std::swap(body.outputs[1], body.outputs[2]); });
  });
}

TEST(Verifier, FindsAForgottenRope) {
  expect_found("tiny-llama", "output 0: expected", [](Graph& graph) {
    change_body(fused_with(graph, OpKind::kRope), [](Graph& body) {
      Node& write = first(body, OpKind::kKvWrite);
      const ValueId turned = write.inputs[1];
      for (const Node& node : body.nodes) {
        if (node.outputs[0] == turned) write.inputs[1] = node.inputs[0];
      }
    });
  });
}

TEST(Verifier, FindsWhatOnlyACacheShows) {
  // The last layer's keys and values are read by that layer's attention alone; with its result
  // dropped, only the next run would see them.
  const auto without_last_attention = [](Graph& graph) {
    const Node& attention = first(graph, OpKind::kAttention, 1);
    Node& view = *std::ranges::find_if(graph.nodes, [&](const Node& node) {
      return node.op == OpKind::kView && node.inputs[0] == attention.outputs[0];
    });
    view.inputs[0] = attention.inputs[0];
  };
  Graph original = model_graph("tiny-gpt2", DType::kF32);
  without_last_attention(original);
  ASSERT_TRUE(validate(original));
  Graph graph = original;
  ASSERT_TRUE(run_passes(graph, {.verify = true}));
  Verifier verifier(original, 1);
  ASSERT_TRUE(verifier.check(graph));
  Graph crossed = original;
  std::swap(first(crossed, OpKind::kKvWrite, 2).inputs[1],
            first(crossed, OpKind::kKvWrite, 3).inputs[1]);
  const Status status = verifier.check(crossed);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("cache layer=1 keys: expected"));
}

TEST(Verifier, FindsADroppedCacheWrite) {
  Graph original = model_graph("tiny-gpt2", DType::kF32);
  const Node write = first(original, OpKind::kKvWrite, 3);
  first(original, OpKind::kAttention, 1).inputs[2] =
      first(original, OpKind::kAttention, 1).inputs[1];
  ASSERT_TRUE(validate(original));
  Graph graph = original;
  std::erase_if(graph.nodes, [&](const Node& node) { return node.outputs == write.outputs; });
  sweep(graph);
  ASSERT_TRUE(validate(graph));
  const Status status = Verifier(original, 1).check(graph);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("caches: expected 4 written, found 3"));
}

TEST(Verifier, FindsOutputsOfOtherTypesOrOrder) {
  const Status swapped = check_spoilt(
      "tiny-gpt2", [](Graph& graph) { std::swap(graph.outputs[0], graph.outputs[1]); });
  ASSERT_FALSE(swapped);
  EXPECT_THAT(swapped.error().message, HasSubstr("outputs: expected the types"));
}

TEST(Verifier, FindsAnInvalidGraph) {
  const Graph original = model_graph("tiny-gpt2", DType::kF32);
  Graph graph = original;
  std::swap(graph.nodes[0], graph.nodes[2]);
  const Status status = Verifier(original, 1).check(graph);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("expected a value defined before its use"));
}

TEST(Verifier, FindsTheArgmaxOfSomethingElse) {
  const Graph original = model_graph("tiny-gpt2", DType::kF32);
  const auto argmax_of = [&](OpKind op) {  // of op(logits, logits)
    Graph graph = original;
    const ValueId logits = first(graph, OpKind::kArgmax).inputs[0];
    const auto other = static_cast<ValueId>(graph.values.size());
    graph.values.push_back(Value(graph.values[logits]));
    first(graph, OpKind::kArgmax).inputs[0] = other;
    graph.nodes.insert(graph.nodes.end() - 1, Node{op, {logits, logits}, {other}, {}});
    return graph;
  };
  Verifier verifier(original, 1);
  EXPECT_TRUE(verifier.check(argmax_of(OpKind::kAdd)));
  const Status status = verifier.check(argmax_of(OpKind::kMultiply));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("output 1: expected"));
}

TEST(Verifier, TakesAnyIndexOfEquallyLargeElements) {
  // Two rows of the weight are equal; a bias decides between their products.
  Graph graph;
  const auto source = [&](const TensorType& type, const Source& from) {
    graph.values.push_back({type, from});
    return static_cast<ValueId>(graph.values.size() - 1);
  };
  const TensorType rows{DType::kF32, {Dim::batch(), Dim::q_len(), Dim(2)}};
  const ValueId ids =
      source({DType::kI32, {Dim::batch(), Dim::q_len()}}, InputSource{InputKind::kIds});
  const ValueId table = source({DType::kF32, {Dim(7), Dim(2)}}, WeightSource{.tensors = {"t"}});
  const ValueId x = source(rows, NodeSource{});
  const ValueId weight = source({DType::kF32, {Dim(2), Dim(2)}},
                                WeightSource{.tensors = {"w", "w"}, .widths = {1, 1}});
  const ValueId bias = source({DType::kF32, {Dim(2)}}, WeightSource{.tensors = {"b"}});
  const ValueId y = source(rows, NodeSource{});
  const ValueId out = source({DType::kI32, {Dim::batch(), Dim::q_len()}}, NodeSource{});
  graph.nodes = {{OpKind::kEmbedding, {ids, table}, {x}, {}},
                 {OpKind::kLinear, {x, weight}, {y}, LinearAttributes{}},
                 {OpKind::kArgmax, {y}, {out}, {}}};
  graph.outputs = {out};
  Graph biased = graph;
  biased.nodes[1].inputs.push_back(bias);
  const auto result = [](const Graph& g) {
    return interpret(g, random_inputs(g, {1, 1, 1}, 1), *make_reference_ops()).outputs[0].i32;
  };
  ASSERT_NE(result(graph), result(biased));  // the second of "b" is the larger one
  EXPECT_TRUE(Verifier(graph, 1).check(biased));
}

// Large graphs are run by the CPU operators, and only where value numbering finds a difference.
TEST(Verifier, WorksOnRealSizes) {
  const Graph original = model_graph("gpt2-25m", DType::kBF16);
  Graph graph = original;
  const auto reports = run_passes(graph, {.verify = true});
  ASSERT_TRUE(reports) << reports.error().message;
  change_body(fused_with(graph, OpKind::kActivate), [](Graph& body) {
    first(body, OpKind::kActivate).attributes = ActivateAttributes{Activation::kGeluErf};
  });
  const Status status = Verifier(original, 1).check(graph);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("output 0: expected"));
}

// The runner with a pass that isn't right.
PassOutcome spoil_nothing(Graph&) {
  return {.changes = 0};
}
PassOutcome drop_residual(Graph& graph) {
  Node& add = first(graph, OpKind::kAdd, 1);
  add.inputs[1] = add.inputs[0];
  return {.changes = 1};
}
PassOutcome break_order(Graph& graph) {
  std::swap(graph.nodes[0], graph.nodes.back());
  return {.changes = 1};
}

TEST(RunPasses, AWrongPassIsNamedAndUndone) {
  const Graph original = model_graph("tiny-gpt2", DType::kF32);
  for (const bool verify : {true, false}) {  // a graph that isn't valid is found without, too
    const std::array passes = {Pass{"right", "", spoil_nothing},
                               Pass{"wrong", "", verify ? drop_residual : break_order}};
    Graph graph = original;
    const auto reports = run_passes(graph, {.verify = verify}, passes);
    ASSERT_FALSE(reports);
    EXPECT_EQ(reports.error().kind, ErrorKind::kEnvironment);
    EXPECT_THAT(reports.error().message, HasSubstr("pass wrong: "));
    EXPECT_EQ(dump(graph), dump(original));
    EXPECT_TRUE(run_passes(graph, {.disabled = {"wrong"}, .verify = verify}, passes));
  }
}

}  // namespace
}  // namespace assay::engine
