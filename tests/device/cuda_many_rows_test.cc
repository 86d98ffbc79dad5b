// Kernels on a GPU against the interpreter: the processor's own suite, of random graphs; products
// of many rows by cuBLASLt between their prologues and epilogues; attention of prompts and of steps
// over caches of the model's type; in odd sizes. Skipped where there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "cuda_driver.h"
#include "engine/codegen/cpu/random_case.h"
#include "engine/codegen/cuda/cuda_attention.h"
#include "engine/codegen/cuda/fp8_product.h"
#include "engine/codegen/cuda/library_product.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"
#include "engine/device/cuda/many_rows.h"
#include "engine/graph/architectures.h"
#include "engine/graph/graph_builder.h"
#include "engine/passes/test_models.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {
namespace {

// Driver and compiler, which all cases share: opened once.
class Gpu {
 public:
  static Gpu* get() {
    static Gpu* const gpu = [] {
      auto driver = cuda::Driver::open();
      auto nvrtc = Nvrtc::open();
      return driver && nvrtc ? new Gpu(std::move(*driver), std::move(*nvrtc)) : nullptr;
    }();
    return gpu;
  }

  cuda::Module module(const std::string& source) {
    cuda::Module& module = modules_[source];
    if (module != nullptr) return module;
    const auto cubin = nvrtc_.compile(source, driver_->info().target);
    EXPECT_TRUE(cubin) << cubin.error().message;
    const auto loaded = driver_->load(cubin->bytes);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return module = *loaded;
  }

  cuda::Driver& driver() { return *driver_; }
  cuda::LazyCublasLt& library() { return library_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Gpu(std::unique_ptr<cuda::Driver> driver, Nvrtc nvrtc)
      : driver_(std::move(driver)), nvrtc_(std::move(nvrtc)), library_(*driver_, notes_) {}

  std::unique_ptr<cuda::Driver> driver_;
  Nvrtc nvrtc_;
  std::vector<std::string> notes_;
  cuda::LazyCublasLt library_;
  std::map<std::string, cuda::Module> modules_;
};

class GpuHarness : public test::Harness {
 public:
  // `narrow`: what products read, and attention stores, is in this type. `known_capacity`: the
  // cache's is a constant of the kernel.
  GpuHarness(test::Case test, Gpu& gpu, std::optional<DType> narrow, double tolerance,
             bool known_capacity = false)
      : Harness(std::move(test)), gpu_(gpu), narrow_(narrow), known_capacity_(known_capacity) {
    tolerance_ = tolerance;
  }

 private:
  std::vector<float> packed_weight(const std::vector<float>& matrix, int64_t outputs,
                                   const ProductKernel& product, DType) const override {
    const int64_t inputs = product.inputs, padded = Packing::padded_inputs(inputs);
    std::vector<float> rows(static_cast<size_t>(packed_elements(product.packing, inputs)));
    for (int64_t column = 0; column < packed_columns(product.packing); ++column) {
      const int64_t output = packed_output(product.packing, column);
      for (int64_t i = 0; i < inputs && output >= 0; ++i) {
        const int64_t from =
            layout_ == WeightLayout::kOutIn ? output * inputs + i : i * outputs + output;
        rows[static_cast<size_t>(column * padded + i)] = matrix[static_cast<size_t>(from)];
      }
    }
    return rows;
  }

  // Buffers that are narrow here hold fp32 for the rest of the harness.
  std::vector<size_t> narrow_buffers() const {
    std::vector<size_t> buffers;
    if (const auto* product = std::get_if<ProductKernel>(&kernel_.body)) {
      if (!product->has_prologue) buffers.push_back(product->x);
    } else if (const auto* attention = std::get_if<AttentionKernel>(&kernel_.body)) {
      buffers.push_back(attention->out);
      if (cuda_attention_on_tensor_cores(kernel_, *attention)) buffers.push_back(attention->q);
    }
    return buffers;
  }

  static void change_type(test::Bound& bound, DType from, DType to) {
    const auto count = static_cast<int64_t>(bound.used / dtype_size_bytes(from));
    const std::vector<std::byte> before(bound.bytes);
    std::vector<std::byte> middle(static_cast<size_t>(count) * 4);
    convert({before.data(), from, Shape{count}}, DType::kF32, middle.data());
    std::vector<std::byte> after(static_cast<size_t>(count) * dtype_size_bytes(to));
    convert({middle.data(), DType::kF32, Shape{count}}, to, after.data());
    const std::vector<std::byte> border(before.begin() + static_cast<ptrdiff_t>(bound.used),
                                        before.end());
    bound.set(after.data(), after.size());
    std::ranges::copy(border, bound.bytes.begin() + static_cast<ptrdiff_t>(bound.used));
  }

  void execute() override {
    if (std::holds_alternative<AttentionKernel>(kernel_.body)) {
      kernel_.run_sizes = {case_.dims.batch, case_.dims.q_len, {}, {}};  // it has forms by them
      if (known_capacity_) kernel_.dims.capacity = capacity();
    } else if (case_.dims.q_len == 1) {  // a step, of the forms of a batch
      kernel_.run_sizes = {case_.dims.batch, 1, {}, {}};
      kernel_.dims.q_len = 1;
    }
    if (narrow_) {
      for (const size_t buffer : narrow_buffers()) {
        kernel_.buffers[buffer].dtype = *narrow_;
        change_type(bound_[buffer], DType::kF32, *narrow_);
      }
    }
    const auto ran = run_on_gpu();
    ASSERT_TRUE(ran) << ran.error().message;
    if (!narrow_) return;
    for (const size_t buffer : narrow_buffers()) change_type(bound_[buffer], *narrow_, DType::kF32);
  }

  Status run_on_gpu() {
    cuda::Driver& driver = gpu_.driver();
    kernel_.target = driver.info().target;
    ASSAY_TRY(const std::string source, print_cuda(kernel_));
    const cuda::Module module = gpu_.module(source);
    std::vector<cuda::GpuBlock> blocks;
    std::vector<cuda::Address> arguments;
    const auto add = [&](const void* data, size_t bytes) -> Status {
      ASSAY_TRY(cuda::GpuBlock block, cuda::GpuBlock::allocate(driver, bytes));
      ASSAY_CHECK(driver.upload(block.address(), {static_cast<const std::byte*>(data), bytes}));
      arguments.push_back(block.address());
      blocks.push_back(std::move(block));
      return {};
    };
    for (const test::Bound& bound : bound_)
      ASSAY_CHECK(add(bound.bytes.data(), bound.bytes.size()));
    const int64_t sizes[] = {case_.dims.batch, case_.dims.q_len, case_.dims.kv_len, capacity()};
    ASSAY_CHECK(add(sizes, sizeof sizes));
    const CudaWorkspace room = cuda_workspace(kernel_, case_.dims, capacity());
    const std::vector<std::byte> workspace(room.bytes() + 1);
    ASSAY_CHECK(add(workspace.data(), workspace.size()));
    arguments.back() = room.place_in(arguments.back());
    ASSAY_CHECK(launch(module, arguments));
    for (size_t i = 0; i < bound_.size(); ++i) {
      ASSAY_CHECK(driver.download(bound_[i].bytes, blocks[i].address()));
    }
    std::vector<float> words(static_cast<size_t>(room.words));
    ASSAY_CHECK(driver.download(std::as_writable_bytes(std::span(words)), blocks.back().address()));
    const bool clean =
        std::ranges::all_of(words, [](float word) { return std::bit_cast<uint32_t>(word) == 0; });
    if (!clean) return environment_error("expected words of zeros behind a launch");
    return {};
  }

  Status launch(cuda::Module module, std::vector<cuda::Address>& arguments) {
    cuda::Driver& driver = gpu_.driver();
    const CudaLaunches launches = cuda_launches(kernel_, case_.dims, capacity());
    const auto start = [&](const CudaLaunch& one) -> Status {
      ASSAY_TRY(const cuda::Function function, driver.function(module, one.entry));
      if (one.shared_bytes > 0) ASSAY_CHECK(driver.share_memory(function, one.shared_bytes));
      return driver.launch(
          function,
          {static_cast<unsigned>(one.blocks_x), static_cast<unsigned>(one.blocks_y),
           static_cast<unsigned>(one.blocks_z)},
          static_cast<unsigned>(one.threads), arguments.data(), false, one.shared_bytes);
    };
    const auto* product = std::get_if<ProductKernel>(&kernel_.body);
    if (product == nullptr || product->rows.value(case_.dims) <= kProductRows ||
        !may_have_many_rows(kernel_, *product)) {
      for (const CudaLaunch& one : launches.run) ASSAY_CHECK(start(one));
      return {};
    }
    StepPlan plan;
    plan.kernels.push_back({kernel_, Dim(1), {}});
    cuda::ManyRows many(driver, gpu_.library());
    ASSAY_CHECK(many.reserve(plan, case_.dims));
    const auto shape = many.shape(kernel_, case_.dims);
    if (!shape) return environment_error("{}", gpu_.notes().empty() ? "?" : gpu_.notes().back());
    cuda::GpuBlock codes;
    cuda::Fp8Weight rounded;
    if (shape->fp8) {
      const Fp8Rows places = fp8_rows(shape->outputs, shape->inputs);
      ASSAY_TRY(codes, cuda::GpuBlock::allocate(driver, static_cast<size_t>(places.bytes)));
      rounded = {codes.address(), codes.address() + static_cast<size_t>(places.scales_at)};
      const DType dtype = kernel_.buffers[product->weight].dtype;
      ASSAY_TRY(
          const cuda::Function function,
          driver.function(gpu_.module(print_fp8_weight(dtype, shape->inputs)), "assay_round"));
      cuda::Address parts[] = {arguments[product->weight], rounded.codes, rounded.scales};
      ASSAY_CHECK(driver.launch(function, {static_cast<unsigned>(shape->outputs), 1, 1},
                                kCudaThreads, parts, false));
    }
    arguments.back() = many.inputs();
    if (launches.prologue) ASSAY_CHECK(start(*launches.prologue));
    ASSAY_CHECK(many.multiply(kernel_, *shape, arguments, 0, rounded));
    arguments.back() = many.products();
    return launches.epilogue ? start(*launches.epilogue) : Status();
  }

  Gpu& gpu_;
  std::optional<DType> narrow_;
  bool known_capacity_;
};

double tolerance_of(DType dtype) {
  return dtype == DType::kF32 ? 1e-5 : dtype == DType::kF16 ? 3e-3 : 2e-2;
}

Graph graph_of(const std::string& config_text, DType dtype, bool fused, Fp8 fp8 = Fp8::kNone) {
  const auto config = parse_model_config(Json::parse("{" + config_text + "}"), "test");
  EXPECT_TRUE(config) << config.error().message;
  auto graph = build_graph(*config, dtype, LogitsOf::kAllPositions, dtype, fp8);
  EXPECT_TRUE(graph) << graph.error().message;
  return fused ? engine::test::fused_graph(*std::move(graph), TileLayout::kRows)
               : *std::move(graph);
}

class CudaManyRows : public testing::Test {
 protected:
  void SetUp() override {
    if (Gpu::get() == nullptr) GTEST_SKIP() << "no GPU here";
    if (Gpu::get()->library().get() == nullptr) GTEST_SKIP() << Gpu::get()->notes().front();
  }

  // The products of the first layer and of the head, or its attention.
  template <typename Body>
  void run(const Graph& graph, DType dtype, const std::vector<DimValues>& all_dims,
           std::optional<double> tolerance = std::nullopt) {
    const size_t last = graph.nodes.size() - 1;
    int found = 0;
    for (size_t node = 0; node <= last; ++node) {
      if (node > 20 && node + 3 < last) continue;
      if (graph.nodes[node].op == OpKind::kView) continue;
      const auto kernel = lower(graph, graph.nodes[node], {}, TileLayout::kRows);
      ASSERT_TRUE(kernel) << kernel.error().message;
      if (!std::holds_alternative<Body>(kernel->body)) continue;
      for (const DimValues& dims : all_dims) {
        for (const bool narrow : {false, true}) {
          if (narrow && dtype == DType::kF32) continue;
          SCOPED_TRACE(fmt::format("{} {} batch {} q_len {} kv_len {}{}", kernel->label,
                                   dtype_name(dtype), dims.batch, dims.q_len, dims.kv_len,
                                   narrow ? " narrow" : ""));
          GpuHarness({.graph = graph,
                      .dims = dims,
                      .capacity = dims.kv_len + 7,
                      .node = node,
                      .layout = TileLayout::kRows},
                     *Gpu::get(), narrow ? std::optional(dtype) : std::nullopt,
                     tolerance.value_or(tolerance_of(dtype)), known_capacity_)
              .run();
          if (HasFatalFailure()) return;
          ++found;
        }
      }
      if (std::is_same_v<Body, AttentionKernel>) break;
    }
    EXPECT_GT(found, 0);
  }

  bool known_capacity_ = false;
};

class CudaManyRowsOf : public CudaManyRows,
                       public testing::WithParamInterface<std::tuple<size_t, DType, bool>> {};

TEST_P(CudaManyRowsOf, ProductsEqualTheInterpreters) {
  const auto [family, dtype, fused] = GetParam();
  // 9, 17, 64 and 130 rows.
  run<ProductKernel>(graph_of(families()[family].config, dtype, fused), dtype,
                     {{1, 9, 9}, {1, 17, 20}, {2, 32, 32}, {2, 65, 65}});
}

constexpr std::array kTypes = {DType::kF32, DType::kBF16, DType::kF16};

// True where a case takes the processor seconds, and the soak has all of them.
bool only_few_cases() {
  return assay::test::on_the_processor() && !assay::test::in_the_soak();
}

std::vector<std::tuple<size_t, DType, bool>> family_cases() {
  if (only_few_cases()) {
    return {{0, DType::kF32, true},
            {1, DType::kBF16, true},
            {2, DType::kF16, true},
            {0, DType::kBF16, false}};
  }
  std::vector<std::tuple<size_t, DType, bool>> all;
  for (const size_t family : {0, 1, 2}) {
    for (const DType dtype : kTypes) {
      for (const bool fused : {false, true}) all.emplace_back(family, dtype, fused);
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Families, CudaManyRowsOf, testing::ValuesIn(family_cases()));

// So wide that blocks share a row's columns, and rows that divide them unevenly.
TEST_F(CudaManyRows, WideRowsAreMovedByBlocks) {
  GraphBuilder builder({{"table", Shape{50, 9001}}}, DType::kF32);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  auto graph = builder.finish({x, builder.add(OpKind::kLastRows, {x})});
  ASSERT_TRUE(graph) << graph.error().message;
  run<RowsKernel>(*graph, DType::kF32, {{1, 5, 5}, {3, 2, 2}});
}

// Sizes that a row of codes may have: of products behind a norm, of attention, behind an epilogue.
constexpr std::string_view kEvenLlama =
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 48,
       "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 240,
       "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": false)";
constexpr std::string_view kEvenGpt2 =
    R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 48,
       "n_embd": 96, "n_layer": 1, "n_head": 3, "n_positions": 96, "n_inner": null,
       "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true)";

// Sizes whose elements lie in vectors: with RoPE and caches, with a bias, with a bias behind a gate
// of one input.
constexpr std::array kOfVectors = {
    R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 48,
       "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 192,
       "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false,
       "tie_word_embeddings": false)",
    R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 41,
       "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 8,
       "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 4160,
       "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu",
       "rope_theta": 10000.0, "tie_word_embeddings": true)",
    R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 48,
       "n_embd": 128, "n_layer": 1, "n_head": 4, "n_positions": 96, "n_inner": null,
       "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true)"};

TEST_F(CudaManyRows, EpiloguesByUnitsEqualTheInterpreters) {
  for (const std::string_view config : kOfVectors) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      if (only_few_cases() && dtype == DType::kF16) continue;
      const Graph graph = graph_of(std::string(config), dtype, true);
      int64_t by_units = 0;
      for (const Node& node : graph.nodes) {
        if (node.op == OpKind::kView) continue;
        const auto kernel = lower(graph, node, {}, TileLayout::kRows);
        const auto* product = std::get_if<ProductKernel>(&kernel->body);
        if (product != nullptr && !library_product(*kernel, *product).direct) {
          by_units += unit_epilogue_blocks(*kernel, *product) ? 1 : 0;
        }
      }
      EXPECT_GE(by_units, 2) << config;
      run<ProductKernel>(graph, dtype, {{2, 33, 33}, {1, 9, 20}});
    }
  }
}

// An element of either operand is off by 2^-4 of itself at most, 2^-5.3 in the root mean square; a
// product of many by 2^-4.8 of its own deviation. 41 or more values have a largest of two such
// deviations, and of some thousand differences none is five: 0.09 of the largest.
TEST_F(CudaManyRows, ProductsInFp8AreNearTheInterpreters) {
  constexpr double kTolerance = 0.09;
  for (const auto& [config, dtype] : {std::pair(kEvenLlama, DType::kBF16),
                                      {kEvenLlama, DType::kF16},
                                      {kEvenGpt2, DType::kBF16}}) {
    if (only_few_cases() && dtype == DType::kF16) continue;
    const std::vector<DimValues> few = {{2, 33, 33}}, all = {{1, 9, 9}, {2, 33, 33}};
    for (const bool fused : {true, false}) {
      run<ProductKernel>(graph_of(std::string(config), dtype, fused, Fp8::kWithTheHead), dtype,
                         only_few_cases() ? few : all, kTolerance);
    }
  }
}

// Codes and scales to the bit: the nearest of each element over its row's scale.
TEST_F(CudaManyRows, RowsAreRoundedToTheNearestCode) {
  constexpr int64_t kRows = 7, kInputs = 4112;
  std::vector<uint16_t> from(static_cast<size_t>(kRows * kInputs));
  Random random(11);
  for (size_t i = 0; i < from.size(); ++i) {
    const double spread = std::exp2(-12 * random.uniform());  // codes of all sizes
    from[i] = f32_to_bf16(static_cast<float>((2 * random.uniform() - 1) * spread));
  }
  const auto row = [&](size_t at) { return std::span(from).subspan(at * kInputs, kInputs); };
  std::ranges::fill(row(1), uint16_t{0});
  std::ranges::transform(row(2), row(2).begin(),
                         [](uint16_t x) { return f32_to_bf16(bf16_to_f32(x) * 0x1p100F); });
  row(3)[5] = f32_to_bf16(std::numeric_limits<float>::quiet_NaN());
  row(4)[7] = f32_to_bf16(std::numeric_limits<float>::infinity());
  cuda::Driver& driver = Gpu::get()->driver();
  const size_t codes_bytes = from.size(), from_bytes = from.size() * 2;
  auto memory = cuda::GpuBlock::allocate(driver, from_bytes + codes_bytes + kRows * sizeof(float));
  ASSERT_TRUE(memory) << memory.error().message;
  cuda::Address parts[] = {memory->address(), memory->address() + from_bytes,
                           memory->address() + from_bytes + codes_bytes};
  ASSERT_TRUE(driver.upload(parts[0], std::as_bytes(std::span(from))));
  const auto function =
      driver.function(Gpu::get()->module(print_fp8_weight(DType::kBF16, kInputs)), "assay_round");
  ASSERT_TRUE(function) << function.error().message;
  ASSERT_TRUE(driver.launch(*function, {kRows, 1, 1}, kCudaThreads, parts, false));
  std::vector<uint8_t> codes(codes_bytes);
  std::vector<float> scales(kRows);
  ASSERT_TRUE(driver.download(std::as_writable_bytes(std::span(codes)), parts[1]));
  ASSERT_TRUE(driver.download(std::as_writable_bytes(std::span(scales)), parts[2]));
  const auto value_of = [](int code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double size =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return code & 0x80 ? -size : size;
  };
  for (size_t r = 0; r < kRows; ++r) {
    SCOPED_TRACE(r);
    if (r == 3 || r == 4) {  // NaN where NaN or an infinity was
      EXPECT_EQ(codes[r * kInputs + (r == 3 ? 5 : 7)] & 0x7f, 0x7f);
      continue;
    }
    float largest = 0;
    for (const uint16_t x : row(r)) largest = std::max(largest, std::abs(bf16_to_f32(x)));
    ASSERT_EQ(scales[r], largest / 448.0F);
    for (size_t i = 0; i < kInputs; ++i) {
      const int code = codes[r * kInputs + i];
      ASSERT_NE(code & 0x7f, 0x7f) << i;
      const double exact = largest == 0 ? 0 : bf16_to_f32(row(r)[i]) * (448.0F / largest);
      const double off = std::abs(value_of(code) - exact);
      for (const int other : {code - 1, code + 1}) {
        if (other < 0 || (other & 0x7f) == 0x7f || (other ^ code) & 0x80) continue;
        ASSERT_LE(off, std::abs(value_of(other) - exact)) << i;
      }
    }
  }
}

std::string one_layer(int64_t hidden, int64_t intermediate) {
  return fmt::format(
      R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 41,
         "hidden_size": {}, "num_hidden_layers": 1, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": {},
         "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "hidden_act": "silu",
         "rope_theta": 10000.0, "tie_word_embeddings": true)",
      hidden, intermediate);
}

// Products by warpgroups of a step's batch: blocks that share columns and blocks that don't, and a
// loader more from 33 rows on. A session of wide inputs has more stages than the ring.
TEST_F(CudaManyRows, ProductsOfBatchesEqualTheInterpreters) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    if (only_few_cases() && dtype == DType::kF16) continue;
    run<ProductKernel>(graph_of(one_layer(128, 3100), dtype, true), dtype,
                       dtype == DType::kBF16 ? std::vector<DimValues>{{17, 1, 3}, {40, 1, 2}}
                                             : std::vector<DimValues>{{64, 1, 2}});
  }
}

// Blocks that share a norm's inputs leave the squares of each row too.
TEST_F(CudaManyRows, BlocksThatShareANormsInputsEqualTheInterpreters) {
  run<ProductKernel>(graph_of(one_layer(2176, 64), DType::kBF16, true), DType::kBF16,
                     {{8, 1, 2}, {12, 1, 2}});
}

// x needs no prologue where it is of the weights' type.
TEST_F(CudaManyRows, ProductsOfBatchesReadWhatIsThere) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    if (only_few_cases() && dtype == DType::kF16) continue;
    GraphBuilder builder({{"table", Shape{50, 128}}, {"product.weight", Shape{6200, 128}}}, dtype);
    const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
    const auto product = builder.linear(x, "product", false, WeightLayout::kOutIn);
    auto graph = builder.finish({builder.add(OpKind::kActivate, {product}, ActivateAttributes{})});
    ASSERT_TRUE(graph) << graph.error().message;
    run<ProductKernel>(test::fused_graph(*std::move(graph), TileLayout::kRows), dtype,
                       {{24, 1, 2}, {33, 1, 2}});
  }
}

// The processor's own suite: every kind of kernel, of steps and prompts.
TEST_F(CudaManyRows, KernelsOfRandomGraphsEqualTheInterpreters) {
  for (uint64_t seed = 0; seed < test::kRandomCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto test = test::random_case(seed, TileLayout::kRows);
    if (!test) continue;
    // With many rows the library reads x in the weights' type.
    const auto kernel =
        lower(test->graph, test->graph.nodes[*test->node], test->specialization, TileLayout::kRows);
    ASSERT_TRUE(kernel) << kernel.error().message;
    const auto* product = std::get_if<ProductKernel>(&kernel->body);
    const bool many = product != nullptr && product->rows.value(test->dims) > kProductRows;
    const DType read_as = many ? kernel->buffers[product->weight].dtype : DType::kF32;
    GpuHarness(*std::move(test), *Gpu::get(), std::nullopt, tolerance_of(read_as)).run();
    if (HasFatalFailure()) return;
  }
}

// A row's norm in each of its forms: held in registers, of even shares and not; too long for them;
// loaded one by one.
TEST_F(CudaManyRows, NormsOfAllWidths) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t width : {6, 512, 1000, 2048, 4104}) {
      GraphBuilder builder({{"table", Shape{50, width}},
                            {"norm", Shape{width}},
                            {"product.weight", Shape{64, width}}},
                           dtype);
      const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
      const auto norm =
          builder.add(OpKind::kRmsNorm, {x, builder.weight("norm")}, NormAttributes{1e-5});
      auto graph = builder.finish({builder.linear(norm, "product", false, WeightLayout::kOutIn)});
      ASSERT_TRUE(graph) << graph.error().message;
      SCOPED_TRACE(width);
      run<ProductKernel>(test::fused_graph(*std::move(graph), TileLayout::kRows), dtype,
                         {{1, 9, 9}, {2, 8, 8}});
    }
  }
}

class CudaAttention : public CudaManyRows,
                      public testing::WithParamInterface<std::tuple<int64_t, DType>> {};

Graph attention_graph(int64_t heads, int64_t kv_heads, int64_t head_dim, DType dtype,
                      CacheRows rows = CacheRows::kInOrder) {
  GraphBuilder builder({{"table", Shape{50, heads * head_dim}}}, dtype, dtype, false,
                       rows == CacheRows::kNamed);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto out = builder.attention(builder.split_heads(x, heads, head_dim),
                                     builder.cache(0, CachePart::kKeys, kv_heads, head_dim),
                                     builder.cache(0, CachePart::kValues, kv_heads, head_dim));
  auto graph = builder.finish({out});
  EXPECT_TRUE(graph) << graph.error().message;
  return *std::move(graph);
}

TEST_P(CudaAttention, EqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  const Graph graph = attention_graph(6, 2, head_dim, dtype);
  const int64_t longest = only_few_cases() ? 137 : 300;
  run<AttentionKernel>(graph, dtype,
                       {{1, 9, 9},
                        {2, 17, 17},
                        {2, 130, 130},
                        {3, 70, 101},
                        {1, longest, longest},
                        {46, 9, 20},
                        {2, 5, 30}});
  run<AttentionKernel>(graph, DType::kF32,  // as exact, whatever the cache's type
                       {{1, 1, 1}, {2, 1, 40}, {3, 1, 301}, {1, 1, 1000}, {2, 8, 101}});
}

// One head has keys of its own; others share keys: seven, or more than a block takes, of which the
// last block of nine and of seventeen has fewer.
TEST_P(CudaAttention, OfGroupsEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  for (const int64_t heads : {1, 7, 9, 12, 17}) {
    SCOPED_TRACE(heads);
    run<AttentionKernel>(attention_graph(heads, 1, head_dim, dtype), DType::kF32,
                         {{2, 1, 40}, {1, 1, 1700}, {1, 3, 50}});
  }
}

TEST_P(CudaAttention, OfNamedRowsEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  const Graph graph = attention_graph(6, 2, head_dim, dtype, CacheRows::kNamed);
  run<AttentionKernel>(graph, dtype, {{3, 17, 30}});
  run<AttentionKernel>(graph, DType::kF32, {{3, 1, 301}, {2, 5, 30}});
}

// Shapes that go by the capacity: of a cache of one range, of several, and of long ones.
TEST_P(CudaAttention, OverCachesOfKnownCapacityEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  known_capacity_ = true;
  run<AttentionKernel>(attention_graph(6, 2, head_dim, dtype), DType::kF32,
                       {{1, 1, 40}, {2, 1, 301}, {1, 1, 700}, {3, 1, 1001}, {1, 1, 2100}});
  run<AttentionKernel>(attention_graph(7, 1, head_dim, dtype), DType::kF32, {{1, 1, 2300}});
}

// So many blocks that they are smaller.
TEST_P(CudaAttention, OfManyRowsEqualsTheInterpreters) {
  const auto [head_dim, dtype] = GetParam();
  run<AttentionKernel>(attention_graph(6, 2, head_dim, dtype), DType::kF32, {{140, 1, 90}});
}

// Few: heads of odd sizes, and those that warpgroups multiply on Hopper in both types of 16 bits.
std::vector<std::tuple<int64_t, DType>> head_cases() {
  if (only_few_cases()) {
    return {{6, DType::kF32},
            {64, DType::kBF16},
            {80, DType::kBF16},
            {128, DType::kF16},
            {130, DType::kF16}};
  }
  std::vector<std::tuple<int64_t, DType>> all;
  for (const int64_t head_dim : {6, 16, 64, 80, 128, 130}) {
    for (const DType dtype : kTypes) all.emplace_back(head_dim, dtype);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Heads, CudaAttention, testing::ValuesIn(head_cases()));

}  // namespace
}  // namespace assay::engine
