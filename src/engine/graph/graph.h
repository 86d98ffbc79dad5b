// The one description of a model's forward pass that every executor and pass works on: a flat list
// of operators over values in SSA form, with symbolic shapes and no state of any executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/graph/dim.h"
#include "engine/model/config.h"
#include "engine/tensor.h"
#include "engine/weight_format.h"
#include "engine/weight_layout.h"

namespace assay::engine {

using ValueId = uint32_t;  // index into Graph::values

struct TensorType {
  DType dtype = DType::kF32;
  SymbolicShape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The sources of values.
enum class InputKind {
  kIds,      // int32 [batch, q_len]
  kLengths,  // int32 [batch]: cache positions that the row has in use before the run
  kPad,      // int32 [batch]: cache positions at the row's start that hold padding
  kSlots,    // int32 [batch]: the row of the caches that the row has, another for each
};
struct InputSource {
  InputKind kind;
};
struct WeightSource {
  // Names in the checkpoint. Several lie behind each other along `axis`: a pass merged products.
  std::vector<std::string> tensors;
  size_t axis = 0;                      // the axis of outputs
  std::vector<int64_t> widths = {};     // of several: each one's size along the axis
  std::optional<Packing> packing = {};  // of a product's weight, once a pass has chosen it
  // Stored so, all of several. The value's type is what a block is decoded to.
  WeightFormat format = WeightFormat::kF32;
  const int32_t* input_order = nullptr;  // TensorView::input_order, of all of several
};
enum class ConstantKind { kRopeCos, kRopeSin };
struct ConstantSource {  // [max_positions, head_dim / 2]; a run may hold only the first rows it
                         // needs
  ConstantKind kind;
};
enum class CachePart { kKeys, kValues };
// A layer's cache as it was before the run, in any float type: a write rounds to it, attention
// widens. It becomes a new value each time it is written (kv_write), so that its readers are
// ordered after the write; executors write in place or not, as their cache does. Its rows are the
// batch's, in order, or, for operators that have `slots`, those that these name: then a cache in
// memory may have more rows than its type says.
struct CacheSource {
  int64_t layer;
  CachePart part;
};
struct NodeSource {};  // an output of a node
// A parameter in the body of a fused node: the node's input of this index.
struct ParameterSource {
  size_t index = 0;
};

using Source = std::variant<NodeSource, InputSource, WeightSource, ConstantSource, CacheSource,
                            ParameterSource>;

struct Value {
  TensorType type;
  Source source;
};

// Operators, with their inputs -> outputs. The arithmetic is OpLibrary's; `...` stands for any
// leading dims. Every operator derives a token's place, in its row's cache and in its row's text,
// from `lengths` and `pad` (TokenPlaces).
enum class OpKind {
  kEmbedding,  // ids [...], table [vocab, hidden] -> [..., hidden]
  kPositions,  // lengths, pad -> int32 [batch, q_len]: the place of each token in its row's text
  kAdd,        // x, y -> like x
  kMultiply,   // x, y -> like x
  kActivate,   // x -> like x ActivateAttributes
  kLayerNorm,  // x [..., width], weight [width], bias [width] -> like x              NormAttributes
  kRmsNorm,    // x [..., width], weight [width] -> like x                            NormAttributes
  kLinear,   // x [..., in], weight, (bias [out]) -> [..., out]                     LinearAttributes
  kRope,     // x [batch, q_len, heads, head_dim], lengths, pad, cos, sin -> like x
  kKvWrite,  // cache [batch, kv_heads, kv_len, head_dim], x [batch, q_len, kv_heads, head_dim],
             // lengths, (slots) -> cache
  kAttention,  // q [batch, q_len, heads, head_dim], keys, values, lengths, pad, (slots) -> like q
  kLastRows,   // x [batch, q_len, width] -> [batch, width]
  kArgmax,     // x [..., width] -> int32 [...]
  kSplit,  // x [..., sum of widths] -> one [..., width] for each width           SplitAttributes
  kView,   // x -> the same elements under another shape                          ViewAttributes
  kFused,  // the parameters of a body -> its outputs                             FusedAttributes
};

struct NormAttributes {
  double eps = 0;
};
struct ActivateAttributes {
  Activation kind = Activation::kSilu;
};
struct LinearAttributes {
  WeightLayout layout = WeightLayout::kOutIn;
  // A device that can multiplies prompts in e4m3: each row of x, and each output's weight, rounded
  // to that type by a scale of its own. The interpreter and other runs compute in the given types.
  bool fp8 = false;
};
struct SplitAttributes {
  std::vector<int64_t> widths;
};
struct ViewAttributes {
  SymbolicShape shape;
};
struct Graph;
// The computation of one kernel: a graph whose sources are parameters alone, and which holds no
// fused node. A cache among the parameters may be written in it; the written cache is then an
// output.
struct FusedAttributes {
  std::shared_ptr<const Graph> body;
};
using Attributes = std::variant<std::monostate, NormAttributes, ActivateAttributes,
                                LinearAttributes, SplitAttributes, ViewAttributes, FusedAttributes>;

struct Node {
  OpKind op = OpKind::kAdd;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
};

struct Graph {
  std::vector<Value> values;     // sources first or between: a node's inputs are defined before it
  std::vector<Node> nodes;       // in an order that may be executed
  std::vector<ValueId> outputs;  // of a model: logits, then their argmax
};

std::string_view op_name(OpKind op);  // "layer_norm"

// The output types of an operator. Errors have expectation and finding; they don't name the
// node.
Result<std::vector<TensorType>> infer_types(OpKind op, const Attributes& attributes,
                                            const std::vector<TensorType>& inputs);

// SSA (every value defined once, before its uses), types as infer_types has them, each cache
// written at most once, and no read of a cache's old value after its write.
Status validate(const Graph& graph);

// One line a value that isn't computed and one a node, in order; the same graph gives the same
// text.
std::string dump(const Graph& graph);
std::string to_string(const TensorType& type);        // "fp32[batch, q_len, 768]"
std::string to_string(const Source& source);          // "input ids"; empty for a computed value
std::string to_string(const Attributes& attributes);  // " eps=1e-05"; a view's and a body: nothing

}  // namespace assay::engine
