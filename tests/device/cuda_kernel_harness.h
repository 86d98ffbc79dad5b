// Kernels on a GPU against the interpreter, for the tests of products and of attention.
#pragma once

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
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/cuda/unit_epilogue.h"
#include "engine/device/cuda/kernel_store.h"
#include "engine/device/cuda/many_rows.h"
#include "engine/device/cuda/tensor_maps.h"
#include "engine/graph/architectures.h"
#include "engine/graph/graph_builder.h"
#include "engine/passes/test_models.h"
#include "engine/session/tiny_checkpoint.h"

namespace assay::engine {

// Driver and kernels, which all cases share: opened once. Compiled kernels are kept in the folder
// that all GPU tests share, because under compute-sanitizer compiling takes most of a case's time.
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

  Result<cuda::Module> module(const std::string& source) {
    constexpr int kAnyShare = 0;  // of a multiprocessor's memory
    return kernels_.load(source, kAnyShare);
  }

  cuda::Driver& driver() { return *driver_; }
  cuda::LazyCublasLt& library() { return library_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Gpu(std::unique_ptr<cuda::Driver> driver, Nvrtc nvrtc)
      : driver_(std::move(driver)),
        kernels_(*driver_, std::move(nvrtc), kept_kernels()),
        library_(*driver_, notes_) {}

  static std::optional<KernelCache> kept_kernels() {
    auto kept = KernelCache::open(assay::test::kernels_of_all_cases());
    return kept ? std::optional(*std::move(kept)) : std::nullopt;
  }

  std::unique_ptr<cuda::Driver> driver_;
  cuda::KernelStore kernels_;
  std::vector<std::string> notes_;
  cuda::LazyCublasLt library_;
};

class GpuHarness : public test::Harness {
 public:
  // `narrow`: what products read, and attention stores, is in this type. `known_sizes`: the
  // kernel's form is that of a prompt's rows, and the cache's capacity is a constant of it.
  GpuHarness(test::Case test, Gpu& gpu, std::optional<DType> narrow, double tolerance,
             bool known_sizes = false)
      : Harness(std::move(test)), gpu_(gpu), narrow_(narrow), known_sizes_(known_sizes) {
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
      if (known_sizes_) kernel_.dims.capacity = capacity();
    } else if (case_.dims.q_len == 1) {  // a step, of the forms of a batch
      kernel_.run_sizes = {case_.dims.batch, 1, {}, {}};
      kernel_.dims.q_len = 1;
    } else if (known_sizes_) {
      kernel_.run_sizes = {case_.dims.batch, case_.dims.q_len, {}, {}};
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
    ASSAY_TRY(const cuda::Module module, gpu_.module(source));
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
      ASSAY_CHECK(cuda::add_tensor_maps(driver, launches.matrices, arguments));
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
      ASSAY_TRY(const cuda::Module rounding, gpu_.module(print_fp8_weight(dtype, shape->inputs)));
      ASSAY_TRY(const cuda::Function function, driver.function(rounding, "assay_round"));
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
  bool known_sizes_;
};

inline double tolerance_of(DType dtype) {
  return dtype == DType::kF32 ? 1e-5 : dtype == DType::kF16 ? 3e-3 : 2e-2;
}

inline Graph graph_of(const std::string& config_text, DType dtype, bool fused,
                      Fp8 fp8 = Fp8::kNone) {
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

  // The products of the first layer and of the head, or its attention; or one node alone.
  template <typename Body>
  void run(const Graph& graph, DType dtype, const std::vector<DimValues>& all_dims,
           std::optional<double> tolerance = std::nullopt,
           std::optional<size_t> one_node = std::nullopt) {
    const size_t last = graph.nodes.size() - 1;
    int found = 0;
    for (size_t node = 0; node <= last; ++node) {
      if (one_node ? node != *one_node : node > 20 && node + 3 < last) continue;
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
                     tolerance.value_or(tolerance_of(dtype)), known_sizes_)
              .run();
          if (HasFatalFailure()) return;
          ++found;
        }
      }
      if (std::is_same_v<Body, AttentionKernel>) break;
    }
    EXPECT_GT(found, 0);
  }

  bool known_sizes_ = false;
};

constexpr std::array kTypes = {DType::kF32, DType::kBF16, DType::kF16};

// True where a case takes the processor seconds, and the soak has all of them.
inline bool only_few_cases() {
  return assay::test::on_the_processor() && !assay::test::in_the_soak();
}

}  // namespace assay::engine
