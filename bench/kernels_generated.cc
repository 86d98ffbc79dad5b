// Generated matrix-vector kernels beside the eager operator, over weights that no cache holds: how
// much of the read bandwidth each reaches.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/codegen/cpu/kernel_library.h"
#include "engine/codegen/lower/lower.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/graph/graph_builder.h"
#include "engine/memory/huge_memory.h"
#include "engine/ops/ops.h"
#include "kernels.h"
#include "samples.h"

namespace assay::bench {
namespace {

constexpr size_t kRotationBytes = size_t{192} << 20;  // five times 36 MB of L3
constexpr int kRepetitions = 15;
constexpr double kBar = 0.9;

// Products as the passes merge them.
struct FusedShape {
  const char* model;
  const char* name;
  int64_t inputs;
  int64_t outputs;
};

constexpr FusedShape kShapes[] = {
    {"gpt2-100m", "c_fc", 768, 3072},         {"gpt2-100m", "lm_head", 768, 50257},
    {"qwen2.5-0.5b", "o_proj", 896, 896},     {"qwen2.5-0.5b", "q, k, v", 896, 1152},
    {"qwen2.5-0.5b", "down_proj", 4864, 896}, {"qwen2.5-0.5b", "gate, up", 896, 9728},
    {"llama3.2-1b", "up_proj", 2048, 8192},
};

// x . w^T of one row.
Result<engine::Kernel> product_kernel(const FusedShape& shape, engine::DType dtype) {
  engine::GraphBuilder graph({{"table", engine::Shape{1, shape.inputs}},
                              {"w.weight", engine::Shape{shape.outputs, shape.inputs}}},
                             dtype);
  const auto x = graph.add(engine::OpKind::kEmbedding, {graph.ids(), graph.weight("table")});
  const auto y = graph.linear(x, "w", false, engine::WeightLayout::kOutIn);
  ASSAY_TRY(const engine::Graph built, graph.finish({y}));
  return engine::lower(built, built.nodes.back(),
                       {.batch = 1, .q_len = 1, .kv_len = {}, .capacity = {}});
}

class Bench {
 public:
  Bench(ThreadPool& pool, engine::BandwidthProbe probe, engine::HugeMemory weights,
        engine::KernelLibrary& library)
      : pool_(pool),
        probe_(std::move(probe)),
        weights_(std::move(weights)),
        library_(library),
        ops_(engine::make_cpu_ops(pool)) {
    std::memset(weights_.data(), 0, weights_.size_bytes());
  }

  Result<std::vector<TableCell>> measure(const FusedShape& shape, engine::DType dtype) {
    ASSAY_TRY(const engine::Kernel kernel, product_kernel(shape, dtype));
    const double before = library_.stats().compile_seconds;
    ASSAY_TRY(const auto functions, library_.load({&kernel, 1}));
    const double compile_ms = (library_.stats().compile_seconds - before) * 1e3;
    Samples generated, eager, read;
    for (int i = 0; i <= kRepetitions; ++i) {
      const double values[] = {run_generated(kernel, functions[0], shape, dtype),
                               run_eager(shape, dtype), probe_.measure_once()};
      if (i == 0) continue;  // warm-up
      generated.add(values[0]);
      eager.add(values[1]);
      read.add(values[2]);
    }
    const double fraction = generated.best() / read.best();
    return std::vector<TableCell>{std::string(shape.model),
                                  std::string(shape.name),
                                  dtype_name(dtype),
                                  shape.inputs,
                                  shape.outputs,
                                  compile_ms,
                                  generated.best(),
                                  generated.median(),
                                  eager.best(),
                                  read.best(),
                                  kBar * read.best(),
                                  TableCell(fraction, 3),
                                  std::string(verdict(fraction, kBar))};
  }

 private:
  // Calls call(first byte of a copy) for as many copies as fit; GB/s of the weight's own bytes.
  template <typename Call>
  double pass(int64_t elements, const FusedShape& shape, engine::DType dtype, const Call& call) {
    const auto pitch = static_cast<size_t>(elements) * dtype_size_bytes(dtype);
    const auto bytes = static_cast<size_t>(shape.inputs * shape.outputs) * dtype_size_bytes(dtype);
    const size_t copies = std::max<size_t>(1, kRotationBytes / pitch);
    const int64_t start_ns = monotonic_now_ns();
    for (size_t i = 0; i < copies; ++i) call(weights_.data() + i * pitch);
    return static_cast<double>(copies * bytes) / static_cast<double>(monotonic_now_ns() - start_ns);
  }

  double run_generated(const engine::Kernel& kernel, const engine::KernelFunctions& functions,
                       const FusedShape& shape, engine::DType dtype) {
    const auto& product = std::get<engine::ProductKernel>(kernel.body);
    const engine::DimValues dims{.batch = 1, .q_len = 1, .kv_len = 1};
    std::vector<float> x(static_cast<size_t>(shape.inputs), 1.0f);
    std::vector<float> out(static_cast<size_t>(shape.outputs));
    const auto threads = static_cast<int64_t>(pool_.size());
    std::vector<std::vector<float>> scratch(
        pool_.size(), std::vector<float>(static_cast<size_t>(kernel_scratch_floats(kernel, dims))));
    return pass(
        packed_elements(product.packing, product.inputs), shape, dtype, [&](std::byte* weight) {
          void* buffers[] = {x.data(), weight, out.data()};
          pool_.run([&](size_t thread) {
            const engine::KernelArgs args{buffers, {1, 1, 1, 1}, scratch[thread].data(), nullptr};
            functions.run(&args, static_cast<int64_t>(thread), threads);
          });
        });
  }

  double run_eager(const FusedShape& shape, engine::DType dtype) {
    const std::vector<float> x(static_cast<size_t>(shape.inputs), 1.0f);
    std::vector<float> out(static_cast<size_t>(shape.outputs));
    return pass(shape.inputs * shape.outputs, shape, dtype, [&](std::byte* weight) {
      const engine::TensorView view{weight, dtype, engine::Shape{shape.outputs, shape.inputs}};
      ops_->linear(x.data(), view, engine::WeightLayout::kOutIn, nullptr, out.data(), 1);
    });
  }

  ThreadPool& pool_;
  engine::BandwidthProbe probe_;
  engine::HugeMemory weights_;
  engine::KernelLibrary& library_;
  std::unique_ptr<engine::OpLibrary> ops_;
};

}  // namespace

Result<Table> generated_table(ThreadPool& pool, std::string_view model) {
  Table table;
  table.title = fmt::format(
      "Generated matrix-vector kernels on {} threads, huge pages: best and median of {} passes "
      "over "
      "{} MB of weights, one warm-up; eager: the operator on the same memory; limit: read "
      "bandwidth, measured after each pass; expected: {:.0f} % of it",
      pool.size(), kRepetitions, kRotationBytes >> 20, 100 * kBar);
  table.columns = columns_of(
      "<model|<product|<dtype|inputs|outputs|compile_ms|measured_gbps|"
      "median_gbps|eager_gbps|read_gbps|expected_gbps|fraction|<verdict");
  ASSAY_TRY(engine::BandwidthProbe probe, engine::BandwidthProbe::create(pool, kRotationBytes));
  // The largest weight, gpt2's head in fp32, fits too.
  ASSAY_TRY(engine::HugeMemory weights, engine::HugeMemory::allocate(kRotationBytes));
  ASSAY_TRY(engine::CpuCompiler compiler, engine::CpuCompiler::find());
  engine::KernelLibrary library(std::move(compiler), std::nullopt, 1);
  Bench bench(pool, std::move(probe), std::move(weights), library);
  for (const engine::DType dtype : {engine::DType::kF32, engine::DType::kBF16}) {
    for (const FusedShape& shape : kShapes) {
      if (!std::string_view(shape.model).starts_with(model)) continue;
      ASSAY_TRY(auto row, bench.measure(shape, dtype));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace assay::bench
