// Matrix-vector products over weights that no cache holds: how much of the read bandwidth they
// reach.
#include <cstring>
#include <memory>
#include <span>

#include "base/clock.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/ops/ops.h"
#include "kernels.h"
#include "model_shapes.h"
#include "samples.h"

namespace assay::bench {
namespace {

constexpr size_t kRotationBytes = size_t{192}
                                  << 20;  // of weights that take turns: five times 36 MB of L3
constexpr int kRepetitions = 15;
constexpr double kBar = 0.8;

// One shape's weights, as many copies as it takes.
struct Rotation {
  size_t copy_bytes;
  size_t copies;
  std::unique_ptr<std::byte[]>
      bytes;  // both types as zeros: what is timed doesn't depend on values

  Rotation(const ProductShape& shape, engine::DType dtype)
      : copy_bytes(static_cast<size_t>(shape.inputs * shape.outputs) * dtype_size_bytes(dtype)),
        copies(std::max<size_t>(1, kRotationBytes / copy_bytes)),
        bytes(std::make_unique_for_overwrite<std::byte[]>(copy_bytes * copies)) {
    std::memset(bytes.get(), 0, copy_bytes * copies);
  }
};

std::vector<TableCell> measure(engine::OpLibrary& ops, engine::BandwidthProbe& probe,
                               const ProductShape& shape, engine::DType dtype) {
  const bool out_in = shape.layout == engine::WeightLayout::kOutIn;
  const engine::Shape dims = out_in ? engine::Shape{shape.outputs, shape.inputs}
                                    : engine::Shape{shape.inputs, shape.outputs};
  const Rotation weights(shape, dtype);
  const std::vector<float> x(static_cast<size_t>(shape.inputs), 1.0f);
  std::vector<float> out(static_cast<size_t>(shape.outputs));
  const auto pass = [&] {
    const int64_t start_ns = monotonic_now_ns();
    for (size_t i = 0; i < weights.copies; ++i) {
      const engine::TensorView view{weights.bytes.get() + i * weights.copy_bytes, dtype, dims};
      ops.linear(x.data(), view, shape.layout, nullptr, out.data(), 1);
    }
    const auto elapsed_ns = static_cast<double>(monotonic_now_ns() - start_ns);
    return static_cast<double>(weights.copies * weights.copy_bytes) / elapsed_ns;
  };
  pass();
  probe.measure_once();
  Samples product, read;
  for (int i = 0; i < kRepetitions; ++i) {
    product.add(pass());
    read.add(probe.measure_once());
  }
  return rate_row(shape, dtype_name(dtype), product, read, kBar);
}

}  // namespace

Result<Table> matvec_table(ThreadPool& pool, std::string_view model) {
  Table table;
  table.title = fmt::format(
      "Matrix-vector products on {} threads: best, median and spread of {} passes over {} MB of "
      "weights, "
      "one warm-up; limit: read bandwidth, measured after each pass; expected: {:.0f} % of it",
      pool.size(), kRepetitions, kRotationBytes >> 20, 100 * kBar);
  table.columns = columns_of(
      "<model|<product|<dtype|inputs|outputs|measured_gbps|median_gbps|spread|"
      "read_gbps|expected_gbps|fraction|<verdict");
  const auto ops = engine::make_cpu_ops(pool);
  ASSAY_TRY(engine::BandwidthProbe probe, engine::BandwidthProbe::create(pool, kRotationBytes));
  for (const engine::DType dtype : {engine::DType::kF32, engine::DType::kBF16}) {
    for (const ProductShape& shape : model_shapes()) {
      if (!std::string_view(shape.model).starts_with(model)) continue;
      table.rows.push_back(measure(*ops, probe, shape, dtype));
    }
  }
  return table;
}

}  // namespace assay::bench
