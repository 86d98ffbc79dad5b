// fp32 matrix products against oneDNN called directly, with OpenMP threads of its own.
#include <chrono>
#include <oneapi/dnnl/dnnl.hpp>
#include <thread>

#include "base/clock.h"
#include "engine/ops/ops.h"
#include "kernels.h"
#include "model_shapes.h"
#include "samples.h"

// Function of the OpenMP runtime that oneDNN brings; its header comes with one compiler only.
extern "C" void omp_set_num_threads(int);

namespace assay::bench {
namespace {

constexpr int kRepetitions = 10;  // at least 3 if they take longer than the budget
constexpr int64_t kBudgetNs = 1'000'000'000;
constexpr double kBar = 0.8;
// Idle OpenMP threads spin for some 20 ms, the pool's for one: each side starts after that.
constexpr std::chrono::milliseconds kPause(25);

// oneDNN's own product of one shape: weights as they lie, and weights packed as oneDNN likes them
// best.
class Direct {
 public:
  Direct(const ProductShape& shape, int64_t rows, float* x, float* weight, float* out) {
    using Tag = dnnl::memory::format_tag;
    const auto f32 = dnnl::memory::data_type::f32;
    const bool out_in = shape.layout == engine::WeightLayout::kOutIn;
    const dnnl::memory::desc source({rows, shape.inputs}, f32, Tag::ab);
    const dnnl::memory::desc plain({shape.inputs, shape.outputs}, f32, out_in ? Tag::ba : Tag::ab);
    const dnnl::memory::desc any({shape.inputs, shape.outputs}, f32, Tag::any);
    const dnnl::memory::desc target({rows, shape.outputs}, f32, Tag::ab);
    const dnnl::matmul::primitive_desc as_is(dnnl::matmul::desc(source, plain, target), engine_);
    const dnnl::matmul::primitive_desc best(dnnl::matmul::desc(source, any, target), engine_);
    plain_ = dnnl::matmul(as_is);
    packed_ = dnnl::matmul(best);
    x_ = dnnl::memory(source, engine_, x);
    weight_ = dnnl::memory(plain, engine_, weight);
    out_ = dnnl::memory(target, engine_, out);
    packed_weight_ = dnnl::memory(best.weights_desc(), engine_);
    dnnl::reorder(weight_, packed_weight_).execute(stream_, weight_, packed_weight_);
    stream_.wait();
  }

  void run_plain() { run(plain_, weight_); }
  void run_packed() { run(packed_, packed_weight_); }

 private:
  void run(dnnl::matmul& product, dnnl::memory& weight) {
    product.execute(stream_,
                    {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, out_}});
    stream_.wait();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul plain_, packed_;
  dnnl::memory x_, weight_, out_, packed_weight_;
};

template <typename Body>
double gflops(double flops, const Body& body) {
  std::this_thread::sleep_for(kPause);
  const int64_t start_ns = monotonic_now_ns();
  body();
  return flops / static_cast<double>(monotonic_now_ns() - start_ns);
}

std::vector<TableCell> measure(engine::OpLibrary& ops, const ProductShape& shape, int64_t rows) {
  const bool out_in = shape.layout == engine::WeightLayout::kOutIn;
  std::vector<float> x(static_cast<size_t>(rows * shape.inputs), 0.5f);
  std::vector<float> weight(static_cast<size_t>(shape.inputs * shape.outputs), 0.25f);
  std::vector<float> out(static_cast<size_t>(rows * shape.outputs));
  const engine::TensorView view{reinterpret_cast<const std::byte*>(weight.data()),
                                engine::DType::kF32,
                                out_in ? engine::Shape{shape.outputs, shape.inputs}
                                       : engine::Shape{shape.inputs, shape.outputs}};
  Direct direct(shape, rows, x.data(), weight.data(), out.data());
  const auto ours = [&] { ops.linear(x.data(), view, shape.layout, nullptr, out.data(), rows); };
  direct.run_plain();
  direct.run_packed();
  ours();
  const double flops = 2.0 * static_cast<double>(rows * shape.inputs * shape.outputs);
  Samples measured, plain, packed;
  const int64_t end_ns = monotonic_now_ns() + kBudgetNs;
  for (int i = 0; i < kRepetitions && (i < 3 || monotonic_now_ns() < end_ns); ++i) {
    measured.add(gflops(flops, ours));
    plain.add(gflops(flops, [&] { direct.run_plain(); }));
    packed.add(gflops(flops, [&] { direct.run_packed(); }));
  }
  const double limit = std::max(plain.best(), packed.best());
  const double fraction = measured.best() / limit;
  return {std::string(shape.model),
          std::string(shape.name),
          rows,
          shape.inputs,
          shape.outputs,
          measured.best(),
          measured.median(),
          TableCell(measured.spread(), 2),
          plain.best(),
          packed.best(),
          kBar * limit,
          TableCell(fraction, 3),
          std::string(verdict(fraction, kBar))};
}

}  // namespace

Result<Table> product_table(ThreadPool& pool, std::string_view model) {
  Table table;
  table.title = fmt::format(
      "fp32 matrix products on {0} threads: best, median and spread of up to {1} repetitions, one "
      "warm-up; "
      "limit: oneDNN called directly on {0} OpenMP threads between them, the better of plain and "
      "packed "
      "weights; expected: {2:.0f} % of it",
      pool.size(), kRepetitions, 100 * kBar);
  table.columns = columns_of(
      "<model|<product|rows|inputs|outputs|measured_gflops|median_gflops|"
      "spread|onednn_plain_gflops|onednn_packed_gflops|expected_gflops|"
      "fraction|<verdict");
  omp_set_num_threads(static_cast<int>(pool.size()));
  const auto ops = engine::make_cpu_ops(pool);
  for (const int64_t rows : {128, 512}) {
    for (const ProductShape& shape : model_shapes()) {
      if (!std::string_view(shape.model).starts_with(model)) continue;
      try {
        table.rows.push_back(measure(*ops, shape, rows));
      } catch (const dnnl::error& error) {
        return environment_error("onednn: expected a product of {} x {} x {}, found: {}", rows,
                                 shape.inputs, shape.outputs, error.what());
      }
    }
  }
  return table;
}

}  // namespace assay::bench
