// For tests: compiles the kernel of a graph's node, runs it on the interpreter's inputs, and
// compares its stores with the interpreter's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/codegen/cpu/kernel_library.h"
#include "engine/codegen/lower/lower.h"
#include "engine/graph/input_values.h"
#include "engine/graph/interpret.h"
#include "engine/model/convert.h"

namespace assay::engine::test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  Graph graph;
  DimValues dims;
  Specialization specialization = {};
  int64_t capacity = 0;  // at least kv_len
  int64_t threads = 1;
  bool through_library = false;  // products: prologue, a plain product, epilogue
  uint64_t seed = 1;
  std::optional<size_t> node = {};          // under test; the last. Others compute its inputs.
  TileLayout layout = TileLayout::kPanels;  // of weights that no pass has packed
};

inline std::vector<std::byte> stored(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * dtype_size_bytes(dtype));
  const TensorView view{reinterpret_cast<const std::byte*>(values.data()), DType::kF32,
                        Shape{static_cast<int64_t>(values.size())}};
  convert(view, dtype, bytes.data());
  return bytes;
}

// [columns padded, inputs padded] as panels of a type, from a matrix in its own layout.
inline std::vector<float> packed(const std::vector<float>& matrix, WeightLayout layout,
                                 int64_t inputs, int64_t outputs, const Packing& packing,
                                 DType dtype) {
  const int64_t padded = Packing::padded_inputs(inputs);
  std::vector<float> result(static_cast<size_t>(packed_elements(packing, inputs)));
  for (int64_t column = 0; column < packed_columns(packing); ++column) {
    const int64_t source = packed_output(packing, column);
    for (int64_t i = 0; i < inputs && source >= 0; ++i) {
      const int64_t from =
          layout == WeightLayout::kOutIn ? source * inputs + i : i * outputs + source;
      const int64_t to = column / 64 * padded * 64 + Packing::element(dtype, i, column % 64);
      result[static_cast<size_t>(to)] = matrix[static_cast<size_t>(from)];
    }
  }
  return result;
}

// A buffer's bytes, with a border that shows writes past its end.
struct Bound {
  std::vector<std::byte> bytes;
  size_t used = 0;
  static constexpr size_t kBorder = 256;

  void set(const void* data, size_t size) {
    used = size;
    bytes.assign(size + kBorder, std::byte{0xFF});  // NaN in fp32
    if (data != nullptr) std::memcpy(bytes.data(), data, size);
  }
  bool border_intact() const {
    return std::all_of(bytes.begin() + static_cast<ptrdiff_t>(used), bytes.end(),
                       [](std::byte b) { return b == std::byte{0xFF}; });
  }
};

class Harness {
 public:
  explicit Harness(Case test) : case_(std::move(test)) {}
  virtual ~Harness() = default;

  void run() {
    const Node node = case_.graph.nodes[case_.node.value_or(case_.graph.nodes.size() - 1)];
    auto lowered = lower(case_.graph, node, case_.specialization, case_.layout);
    ASSERT_TRUE(lowered) << lowered.error().message;
    kernel_ = std::move(*lowered);
    inputs_ = random_inputs(case_.graph, case_.dims, case_.seed);
    interpret_all(node);
    bind(node);
    execute();
    if (!testing::Test::HasFatalFailure()) check(node);
  }

 protected:
  int64_t capacity() const { return std::max(case_.capacity, case_.dims.kv_len); }
  // Overridden for another device: its own layout, its own launches; then `bound_` is checked.
  virtual std::vector<float> packed_weight(const std::vector<float>& matrix, int64_t outputs,
                                           const ProductKernel& product, DType dtype) const {
    return packed(matrix, layout_, product.inputs, outputs, product.packing, dtype);
  }
  virtual void execute();

  Case case_;
  Kernel kernel_;
  std::vector<Bound> bound_;
  WeightLayout layout_ = WeightLayout::kOutIn;
  double tolerance_ = 3e-6;  // of the largest value

 private:
  // Makes the node's operands and its weights outputs of the interpreted graph too.
  void interpret_all(const Node& node) {
    Graph graph = case_.graph;
    graph.outputs.clear();
    const auto add = [&](ValueId id) {
      const Source& source = graph.values[id].source;
      const bool known = !std::holds_alternative<NodeSource>(source) &&
                         !std::holds_alternative<WeightSource>(source);
      if (!known && !is_cache(id)) graph.outputs.push_back(id);
    };
    for (const ValueId id : node.inputs) add(id);
    for (const ValueId id : node.outputs) add(id);
    const auto ops = make_reference_ops();
    InterpreterResult result = interpret(graph, inputs_, *ops);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      expected_[graph.outputs[i]] = std::move(result.outputs[i]);
    }
    caches_ = std::move(result.caches);
  }

  bool is_cache(ValueId id) const {
    const SymbolicShape& shape = case_.graph.values[id].type.shape;
    return shape.size() == 4 && shape[2] == Dim::kv_len();
  }

  // The layout of the product that reads buffer `index` as its weight.
  WeightLayout layout(const Node& node, size_t index) const {
    if (node.op == OpKind::kLinear) return std::get<LinearAttributes>(node.attributes).layout;
    const Graph& body = *std::get<FusedAttributes>(node.attributes).body;
    for (const Node& inner : body.nodes) {
      if (inner.op != OpKind::kLinear) continue;
      const auto& source = std::get<ParameterSource>(body.values[inner.inputs[1]].source);
      if (source.index == index) return std::get<LinearAttributes>(inner.attributes).layout;
    }
    return WeightLayout::kOutIn;
  }

  void bind(const Node& node) {
    bound_.resize(kernel_.bound_buffers);
    for (size_t i = 0; i < bound_.size(); ++i) {
      const KernelBuffer& buffer = kernel_.buffers[i];
      const Value& value = case_.graph.values[buffer.value];
      if (i >= node.inputs.size()) {
        bound_[i].set(nullptr,
                      static_cast<size_t>(elements(value.type.shape).value(case_.dims)) * 4);
      } else if (std::holds_alternative<WeightSource>(value.source)) {
        bind_weight(node, i);
      } else if (is_cache(buffer.value)) {
        bind_cache(i);
      } else {
        bind_tensor(i);
      }
    }
  }

  void bind_weight(const Node& node, size_t index) {
    const Value& value = case_.graph.values[kernel_.buffers[index].value];
    std::vector<float> values = expected_.at(kernel_.buffers[index].value).f32;
    const auto* product = std::get_if<ProductKernel>(&kernel_.body);
    if (product != nullptr && product->weight == index) {
      weight_ = values;
      const int64_t outputs = static_cast<int64_t>(values.size()) / product->inputs;
      layout_ = layout(node, index);
      values = packed_weight(values, outputs, *product, value.type.dtype);
    }
    const auto bytes = stored(values, value.type.dtype);
    bound_[index].set(bytes.data(), bytes.size());
  }

  void bind_cache(size_t index) {
    const Value& value = case_.graph.values[kernel_.buffers[index].value];
    const auto& source = std::get<CacheSource>(value.source);
    const std::vector<float>& from = inputs_.caches.at({source.layer, source.part});
    const int64_t planes = case_.dims.batch * value.type.shape[1].factor();
    const int64_t run = case_.dims.kv_len * value.type.shape[3].factor();
    const int64_t pitch = capacity() * value.type.shape[3].factor();
    std::vector<float> spread(static_cast<size_t>(planes * pitch), kNan);
    for (int64_t p = 0; p < planes; ++p)
      std::copy_n(&from[static_cast<size_t>(p * run)], run,
                  &spread[static_cast<size_t>(p * pitch)]);
    const auto bytes = stored(spread, value.type.dtype);
    bound_[index].set(bytes.data(), bytes.size());
  }

  void bind_tensor(size_t index) {
    const ValueId id = kernel_.buffers[index].value;
    const Source& source = case_.graph.values[id].source;
    std::span<const int32_t> integers;
    const std::vector<float>* floats = nullptr;
    if (const auto* input = std::get_if<InputSource>(&source)) {
      integers = input_values(inputs_, input->kind);
    } else if (const auto* constant = std::get_if<ConstantSource>(&source)) {
      floats = constant->kind == ConstantKind::kRopeCos ? &inputs_.rope_cos : &inputs_.rope_sin;
    } else {
      const HostTensor& tensor = expected_.at(id);
      integers = tensor.i32;
      if (integers.empty()) floats = &tensor.f32;
    }
    if (!integers.empty()) bound_[index].set(integers.data(), integers.size_bytes());
    if (floats != nullptr) bound_[index].set(floats->data(), floats->size() * 4);
  }

  // Rows and tiles in uneven pieces.
  void run_library(const KernelFunctions& functions, const KernelArgs& args) {
    const auto& product = std::get<ProductKernel>(kernel_.body);
    const int64_t rows = product.rows.value(case_.dims);
    std::vector<float> inputs(static_cast<size_t>(rows * product.inputs), kNan);
    const float* x = inputs.data();
    if (product.has_prologue) {
      functions.prologue(&args, 0, rows / 2, inputs.data());
      functions.prologue(&args, rows / 2, rows, inputs.data() + rows / 2 * product.inputs);
    } else {
      x = static_cast<const float*>(args.buffers[product.x]);
    }
    const Packing& packing = product.packing;
    const int64_t pitch = packed_columns(packing) + 5;
    const auto outputs = static_cast<int64_t>(weight_.size()) / product.inputs;
    std::vector<float> products(static_cast<size_t>(rows * pitch), kNan);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < packed_columns(packing); ++c) {
        const int64_t column = packed_output(packing, c);
        double sum = 0;
        for (int64_t i = 0; i < product.inputs && column >= 0; ++i) {
          const int64_t at =
              layout_ == WeightLayout::kOutIn ? column * product.inputs + i : i * outputs + column;
          sum += double{x[r * product.inputs + i]} * weight_[static_cast<size_t>(at)];
        }
        products[static_cast<size_t>(r * pitch + c)] = static_cast<float>(sum);
      }
    }
    const int64_t cut = (tile_count(packing) + 1) / 2, row_cut = rows / 3;
    for (const auto& [row, row_end] : {std::pair(int64_t{0}, row_cut), std::pair(row_cut, rows)}) {
      const float* at = products.data() + row * pitch;
      functions.epilogue(&args, row, row_end, 0, cut, at, pitch);
      functions.epilogue(&args, row, row_end, cut, tile_count(packing), at + cut * packing.tile,
                         pitch);
    }
  }

  void check(const Node& node) {
    for (size_t i = 0; i < bound_.size(); ++i) {
      EXPECT_TRUE(bound_[i].border_intact()) << kernel_.buffers[i].name;
      if (!kernel_.buffers[i].writable) continue;
      if (i < node.inputs.size()) {
        check_cache(i);
      } else {
        check_output(i);
      }
    }
  }

  void check_output(size_t index) {
    const HostTensor& expected = expected_.at(kernel_.buffers[index].value);
    if (!expected.i32.empty()) {
      std::vector<int32_t> actual(expected.i32.size());
      std::memcpy(actual.data(), bound_[index].bytes.data(), actual.size() * 4);
      EXPECT_EQ(actual, expected.i32);
      return;
    }
    std::vector<float> actual(expected.f32.size());
    std::memcpy(actual.data(), bound_[index].bytes.data(), actual.size() * 4);
    expect_close(expected.f32, actual, kernel_.buffers[index].name);
  }

  void expect_close(const std::vector<float>& expected, const std::vector<float>& actual,
                    const std::string& name) const {
    double largest = 1e-3;
    for (const float v : expected) largest = std::max(largest, std::fabs(double{v}));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], tolerance_ * largest) << name << " at " << i;
    }
  }

  // Checks the positions written in the cache, and that nothing else was written.
  void check_cache(size_t index) {
    const Value& value = case_.graph.values[kernel_.buffers[index].value];
    const auto& source = std::get<CacheSource>(value.source);
    const int64_t planes = case_.dims.batch * value.type.shape[1].factor();
    const int64_t head_dim = value.type.shape[3].factor();
    const DType dtype = value.type.dtype;
    const auto count = static_cast<int64_t>(bound_[index].used / dtype_size_bytes(dtype));
    std::vector<float> actual(static_cast<size_t>(count)), used;
    convert({bound_[index].bytes.data(), dtype, Shape{count}}, DType::kF32,
            reinterpret_cast<std::byte*>(actual.data()));
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t at = 0; at < capacity() * head_dim; ++at) {
        const float v = actual[static_cast<size_t>(p * capacity() * head_dim + at)];
        if (at < case_.dims.kv_len * head_dim) {
          used.push_back(v);
        } else {
          EXPECT_TRUE(std::isnan(v)) << "written past kv_len";
        }
      }
    }
    expect_close(caches_.at({source.layer, source.part}), used, "cache");
  }

  InterpreterInputs inputs_;
  std::map<ValueId, HostTensor> expected_;
  std::map<std::pair<int64_t, CachePart>, std::vector<float>> caches_;
  std::vector<float> weight_;  // as stored, widened, in its own layout
};

inline void Harness::execute() {
  auto compiler = CpuCompiler::find();
  ASSERT_TRUE(compiler) << compiler.error().message;
  KernelLibrary library(std::move(*compiler), std::nullopt, 1);
  const auto loaded = library.load({&kernel_, 1});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const KernelFunctions& functions = loaded->front();
  std::vector<void*> pointers;
  for (Bound& bound : bound_) pointers.push_back(bound.bytes.data());
  const auto floats = kernel_scratch_floats(kernel_, case_.dims);
  const auto shared = kernel_shared_floats(kernel_, case_.dims, case_.threads);
  std::vector<float> scratch(static_cast<size_t>(floats), kNan);
  std::vector<float> common(static_cast<size_t>(shared));
  const KernelArgs args{pointers.data(),
                        {case_.dims.batch, case_.dims.q_len, case_.dims.kv_len, capacity()},
                        scratch.data(),
                        common.data()};
  if (case_.through_library) return run_library(functions, args);
  for (int64_t thread = 0; thread < case_.threads; ++thread) {
    std::fill(scratch.begin(), scratch.end(), kNan);
    functions.run(&args, thread, case_.threads);
  }
}

}  // namespace assay::engine::test
