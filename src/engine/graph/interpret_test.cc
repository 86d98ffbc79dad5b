#include "engine/graph/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "engine/device/cpu/eager_executor.h"
#include "engine/graph/architectures.h"
#include "engine/graph/flatten.h"
#include "engine/model/convert.h"
#include "engine/model/make.h"
#include "engine/session/session.h"

namespace assay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

void expect_near(std::span<const float> found, std::span<const float> expected) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 1;
  for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-5 * largest) << "at " << i;
  }
}

// A random checkpoint of a tiny architecture, removed at the end.
class InterpretModel : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  InterpretModel()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                fmt::format("assay-interpret-{}-{}", getpid(), std::get<0>(GetParam()))) {
    EXPECT_TRUE(make_checkpoint(std::get<0>(GetParam()), folder_,
                                {.seed = 3, .dtype = std::get<1>(GetParam())}));
  }
  ~InterpretModel() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

std::vector<float> widened(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  convert(tensor, DType::kF32, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// The caches of a run, each head with room for `more` positions behind the `length` it has.
void keep_caches(InterpreterInputs& inputs, const InterpreterResult& result, int64_t head_dim,
                 int64_t more) {
  const auto length = static_cast<size_t>(inputs.dims.kv_len * head_dim);
  const auto room = static_cast<size_t>((inputs.dims.kv_len + more) * head_dim);
  for (const auto& [key, cache] : result.caches) {
    std::vector<float>& kept = inputs.caches[key];
    kept.assign(cache.size() / length * room, 0);
    for (size_t head = 0; head < cache.size() / length; ++head) {
      std::copy_n(cache.data() + head * length, length, kept.data() + head * room);
    }
  }
}

TEST_P(InterpretModel, AgreesWithASessionOverPaddedPromptsAndDecodeSteps) {
  auto session = Session::open(folder_, {.threads = 1, .reference_ops = true});
  ASSERT_TRUE(session) << session.error().message;
  const auto checkpoint = Checkpoint::open(folder_);
  ASSERT_TRUE(checkpoint);
  const ModelConfig& config = session->config();
  const auto graph = build_graph(config, session->model().dtype(), LogitsOf::kLastPosition);
  ASSERT_TRUE(graph);
  const auto ops = make_reference_ops();
  const PromptBatch prompts = PromptBatch::of({{5, 6, 7}, {1, 2, 300, 4, 9}});
  const RopeTables rope = make_rope_tables(config, 16);
  InterpreterInputs inputs;
  inputs.weight = [&](const std::string& name, const std::vector<int64_t>&) {
    return widened(checkpoint->tensor(name));
  };
  inputs.rope_cos = rope.cos;
  inputs.rope_sin = rope.sin;
  inputs.pad = prompts.pad;
  inputs.dims = {2, 5, 5};
  inputs.ids = prompts.ids;
  inputs.lengths = {0, 0};

  ASSERT_TRUE(session->prepare(2, 16));
  ASSERT_TRUE(session->prefill(prompts));
  for (int32_t decoded = 0;; ++decoded) {
    const InterpreterResult result = interpret(*graph, inputs, *ops);
    ASSERT_THAT(result.outputs, SizeIs(2));
    EXPECT_THAT(result.outputs[0].shape, ElementsAre(2, config.vocab_size));
    expect_near(result.outputs[0].f32, session->logits());
    EXPECT_EQ(result.outputs[1].i32,
              std::vector<int32_t>(session->next_tokens().begin(), session->next_tokens().end()));
    EXPECT_THAT(result.caches, SizeIs(static_cast<size_t>(2 * config.layers)));
    if (decoded == 3) break;
    keep_caches(inputs, result, config.head_dim, 1);
    inputs.dims = {2, 1, inputs.dims.kv_len + 1};
    inputs.ids = result.outputs[1].i32;
    inputs.lengths = {5 + decoded, 5 + decoded};
    ASSERT_TRUE(session->decode(session->next_tokens()));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, InterpretModel,
                         ::testing::Values(std::tuple{"tiny-gpt2", DType::kF32},
                                           std::tuple{"tiny-llama", DType::kF16},
                                           std::tuple{"tiny-qwen2", DType::kBF16}),
                         [](const auto& family) {
                           std::string name = std::get<0>(family.param);
                           return name.replace(name.find('-'), 1, "_");
                         });

// ids -> rows of a table [5, 3] -> something.
class InterpretSmall : public ::testing::Test {
 protected:
  InterpretSmall() {
    const ValueId ids =
        source({DType::kI32, {Dim::batch(), Dim::q_len()}}, InputSource{InputKind::kIds});
    const ValueId table =
        source({DType::kF32, {Dim(5), Dim(3)}}, WeightSource{.tensors = {"table"}});
    inputs_.dims = {1, 2, 2};
    inputs_.ids = {3, 1};
    inputs_.weight = [](const std::string& name, const std::vector<int64_t>& shape) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      std::vector<float> values(static_cast<size_t>(count));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i) + (name == "b" ? 100.0F : 0.0F);
      }
      return values;
    };
    x_ = add(OpKind::kEmbedding, {ids, table})[0];  // rows 9 10 11, 3 4 5
  }

  ValueId source(const TensorType& type, const Source& from) {
    graph_.values.push_back({type, from});
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  std::vector<ValueId> add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    std::vector<TensorType> types;
    for (const ValueId id : inputs) types.push_back(graph_.values[id].type);
    const auto inferred = infer_types(op, attributes, types);
    EXPECT_TRUE(inferred) << inferred.error().message;
    std::vector<ValueId> outputs;
    for (const TensorType& type : *inferred) {
      outputs.push_back(static_cast<ValueId>(graph_.values.size()));
      graph_.values.push_back({type, NodeSource{}});
    }
    graph_.nodes.push_back({op, std::move(inputs), outputs, std::move(attributes)});
    return outputs;
  }

  InterpreterResult run(std::vector<ValueId> outputs) {
    graph_.outputs = std::move(outputs);
    const Status status = validate(graph_);
    EXPECT_TRUE(status) << status.error().message;
    const auto ops = make_reference_ops();
    return interpret(graph_, inputs_, *ops);
  }

  Graph graph_;
  InterpreterInputs inputs_;
  ValueId x_ = 0;
};

TEST_F(InterpretSmall, SplitsAndViewsMoveNothingElse) {
  const auto parts = add(OpKind::kSplit, {x_}, SplitAttributes{{1, 2}});
  const auto view =
      add(OpKind::kView, {parts[1]}, ViewAttributes{{Dim(2) * Dim::batch() * Dim::q_len()}});
  const InterpreterResult result = run({parts[0], parts[1], view[0]});
  EXPECT_THAT(result.outputs[0].f32, ElementsAre(9, 3));
  EXPECT_THAT(result.outputs[1].f32, ElementsAre(10, 11, 4, 5));
  EXPECT_EQ(result.outputs[2].f32, result.outputs[1].f32);
  EXPECT_THAT(result.outputs[2].shape, ElementsAre(4));
}

TEST_F(InterpretSmall, MergedWeightsLieBehindEachOtherAlongTheirAxis) {
  const auto weight = [&](const SymbolicShape& shape, size_t axis) {
    return source({DType::kF32, shape},
                  WeightSource{.tensors = {"a", "b"}, .axis = axis, .widths = {1, 2}});
  };
  const ValueId rows = weight({Dim(3), Dim(2)}, 0);
  const ValueId columns = weight({Dim(2), Dim(3)}, 1);
  const InterpreterResult result = run({rows, columns});
  EXPECT_THAT(result.outputs[0].f32, ElementsAre(0, 1, 100, 101, 102, 103));
  EXPECT_THAT(result.outputs[1].f32, ElementsAre(0, 100, 101, 1, 102, 103));
}

TEST_F(InterpretSmall, WeightsAreRoundedToTheirType) {
  inputs_.weight = [](const std::string&, const std::vector<int64_t>& shape) {
    // 1 + 2^-8 is a tie of bf16's: it goes to the even 1.
    return std::vector<float>(static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1)),
                              1.00390625F);
  };
  const ValueId weight = source({DType::kBF16, {Dim(2)}}, WeightSource{.tensors = {"a"}});
  const InterpreterResult result = run({weight, x_});
  EXPECT_THAT(result.outputs[0].f32, ElementsAre(1, 1));
  EXPECT_THAT(result.outputs[1].f32, ::testing::Each(1.00390625F));  // of an fp32 table
}

TEST_F(InterpretSmall, FusedBodiesAreRunInPlace) {
  const TensorType type = graph_.values[x_].type;
  auto body = std::make_shared<Graph>();
  for (const Source& from : {Source(ParameterSource{1}), Source(ParameterSource{0}),
                             Source(NodeSource{}), Source(NodeSource{})}) {
    body->values.push_back({type, from});
  }
  body->nodes = {{OpKind::kAdd, {0, 1}, {2}, {}}, {OpKind::kMultiply, {2, 1}, {3}, {}}};
  body->outputs = {3, 2, 1};  // the second and a parameter as they are
  const auto doubled = add(OpKind::kAdd, {x_, x_});
  const auto fused = add(OpKind::kFused, {x_, doubled[0]}, FusedAttributes{body});
  const auto after = add(OpKind::kAdd, {fused[0], fused[2]});
  const InterpreterResult result = run({fused[1], after[0]});
  EXPECT_THAT(result.outputs[0].f32, ElementsAre(27, 30, 33, 9, 12, 15));      // 3 x
  EXPECT_THAT(result.outputs[1].f32, ElementsAre(252, 310, 374, 30, 52, 80));  // 3 x^2 + x
  const Graph flat = flatten(graph_);
  EXPECT_TRUE(validate(flat));
  EXPECT_THAT(flat.nodes, SizeIs(5));
  for (const Node& node : flat.nodes) EXPECT_NE(node.op, OpKind::kFused);
}

TEST(RandomInputs, DependOnNamesAndNotOnTheGraph) {
  ModelConfig config;
  config.vocab_size = 11;
  config.hidden_size = 8;
  config.layers = 1;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 2;
  config.intermediate_size = 12;
  config.max_positions = 32;
  config.architecture = Architecture::kQwen2;
  const auto last = build_graph(config, DType::kBF16, LogitsOf::kLastPosition);
  const auto all = build_graph(config, DType::kBF16, LogitsOf::kAllPositions);
  ASSERT_TRUE(last && all);
  const DimValues dims{3, 4, 20};
  const InterpreterInputs a = random_inputs(*last, dims, 5);
  const InterpreterInputs b = random_inputs(*all, dims, 5);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.pad, b.pad);
  EXPECT_EQ(a.lengths, b.lengths);
  EXPECT_EQ(a.caches, b.caches);
  EXPECT_EQ(a.weight("x", {8, 3}), b.weight("x", {8, 3}));
  EXPECT_NE(a.weight("x", {8, 3}), a.weight("y", {8, 3}));
  EXPECT_NE(a.weight("x", {8, 3}), random_inputs(*last, dims, 6).weight("x", {8, 3}));
  EXPECT_THAT(a.caches.at({0, CachePart::kKeys}), SizeIs(3 * 2 * 20 * 2));
  EXPECT_THAT(a.rope_cos, SizeIs(20));
  for (const int32_t id : a.ids) EXPECT_TRUE(id >= 0 && id < 11);
  EXPECT_EQ(std::ranges::max(a.lengths), 16);
  for (size_t row = 0; row < 3; ++row) {
    const int32_t end = a.lengths[row] + 4;
    EXPECT_TRUE(a.lengths[row] >= 0 && a.pad[row] >= 0 && a.pad[row] < end);
    EXPECT_LE(end - a.pad[row], 11) << "a place in the text that the table has no row for";
  }
}

TEST(ValidateWeight, PartsAndSegmentsMustAddUp) {
  const auto status_of = [](const WeightSource& source) {
    Graph graph;
    const TensorType type{DType::kF32, {Dim(6), Dim(4)}};
    graph.values.push_back({type, source});
    graph.outputs = {0};
    return validate(graph);
  };
  EXPECT_TRUE(status_of({.tensors = {"a", "b"}, .axis = 0, .widths = {2, 4}}));
  EXPECT_TRUE(status_of({.tensors = {"a", "b"}, .axis = 1, .widths = {3, 1}}));
  EXPECT_FALSE(status_of({.tensors = {"a", "b"}, .axis = 1, .widths = {2, 4}}));
  EXPECT_FALSE(status_of({.tensors = {"a", "b"}, .axis = 0}));
  EXPECT_FALSE(status_of({.tensors = {}}));
  const auto packed = [&](Packing packing) {
    return status_of({.tensors = {"a"}, .packing = std::move(packing)});
  };
  EXPECT_TRUE(packed({.tile = 64, .segments = {6}}));
  EXPECT_TRUE(packed({.tile = 128, .segments = {3, 3}, .interleaved = true}));
  EXPECT_FALSE(packed({.tile = 64, .segments = {4}}));
  EXPECT_FALSE(packed({.tile = 96, .segments = {6}}));
  EXPECT_FALSE(packed({.tile = 64, .segments = {3, 3}, .interleaved = true}));
  EXPECT_FALSE(packed({.tile = 128, .segments = {2, 4}, .interleaved = true}));
  const auto rows = TileLayout::kRows;
  EXPECT_TRUE(packed({.tile = 64, .segments = {3, 3}, .interleaved = true, .layout = rows}));
  EXPECT_TRUE(packed({.tile = 64, .segments = {6}, .layout = rows, .half_head = 3}));
  EXPECT_FALSE(packed({.tile = 64, .segments = {6}, .half_head = 3}));
  EXPECT_FALSE(packed(
      {.tile = 64, .segments = {3, 3}, .interleaved = true, .layout = rows, .half_head = 3}));
}

}  // namespace
}  // namespace assay::engine
