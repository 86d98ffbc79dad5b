// Matrix-vector products with weights in blocks that no cache holds: how much of the read bandwidth
// they reach.
#include <cstring>
#include <span>

#include "base/clock.h"
#include "engine/device/cpu/bandwidth.h"
#include "engine/memory/huge_memory.h"
#include "engine/ops/cpu/block_linear.h"
#include "engine/ops/cpu/quantized_layout.h"
#include "kernels.h"
#include "samples.h"

namespace assay::bench {
namespace {

constexpr size_t kRotationBytes = size_t{192} << 20;  // of weights that take turns
constexpr int kRepetitions = 9;
constexpr double kBar = 0.85;

struct BlockShape {
  const char* model;
  const char* name;
  int64_t inputs;
  int64_t outputs;
};
constexpr BlockShape kShapes[] = {
    {"smollm2-135m", "o_proj", 576, 576},
    {"smollm2-135m", "gate_proj, up_proj", 576, 3072},
    {"smollm2-135m", "down_proj", 1536, 576},
    {"smollm2-135m", "lm_head", 576, 49152},
    {"llama3.2-1b", "gate_proj, up_proj", 2048, 16384},
    {"llama3.1-8b", "o_proj", 4096, 4096},
};

Result<std::vector<TableCell>> measure(ThreadPool& pool, engine::BandwidthProbe& probe,
                                       const BlockShape& shape,
                                       const engine::FormatTraits& format) {
  constexpr int64_t kTile = engine::Packing::kPanel;
  const int64_t tiles = (shape.outputs + kTile - 1) / kTile;
  const size_t copy_bytes =
      static_cast<size_t>(tiles) * engine::cpu::block_tile_bytes(format.format, shape.inputs);
  const size_t copies = std::max<size_t>(1, kRotationBytes / copy_bytes);
  ASSAY_TRY(engine::HugeMemory weights, engine::HugeMemory::allocate(copies * copy_bytes));
  std::memset(weights.data(), 0, copies * copy_bytes);  // the time doesn't depend on values
  const std::vector<float> x(static_cast<size_t>(shape.inputs), 1.0f);
  std::vector<float> out(static_cast<size_t>(shape.outputs));
  engine::cpu::BlockLinear linear(pool);
  const auto pass = [&]() -> Result<double> {
    const int64_t start_ns = monotonic_now_ns();
    for (size_t i = 0; i < copies; ++i) {
      ASSAY_CHECK(linear.run(x.data(),
                             {.format = format.format,
                              .inputs = shape.inputs,
                              .outputs = shape.outputs,
                              .tiles = weights.data() + i * copy_bytes},
                             nullptr, out.data(), 1));
    }
    const auto elapsed_ns = static_cast<double>(monotonic_now_ns() - start_ns);
    return static_cast<double>(copies * copy_bytes) / elapsed_ns;
  };
  ASSAY_CHECK(pass());
  probe.measure_once();
  Samples product, read;
  for (int i = 0; i < kRepetitions; ++i) {
    ASSAY_TRY(const double rate, pass());
    product.add(rate);
    read.add(probe.measure_once());
  }
  return rate_row(shape, format.name, product, read, kBar);
}

}  // namespace

Result<Table> blocks_table(ThreadPool& pool, std::string_view model) {
  Table table;
  table.title = fmt::format(
      "Matrix-vector products with weights in blocks on {} threads: best, median and spread of {} "
      "passes over {} MB of weights, one warm-up; limit: read bandwidth, measured after each pass; "
      "expected: {:.0f} % of it",
      pool.size(), kRepetitions, kRotationBytes >> 20, 100 * kBar);
  table.columns = columns_of(
      "<model|<product|<format|inputs|outputs|measured_gbps|median_gbps|spread|"
      "read_gbps|expected_gbps|fraction|<verdict");
  ASSAY_TRY(engine::BandwidthProbe probe, engine::BandwidthProbe::create(pool, kRotationBytes));
  for (const BlockShape& shape : kShapes) {
    if (!std::string_view(shape.model).starts_with(model)) continue;
    for (const engine::FormatTraits& format : engine::kFormats) {
      if (!format.in_blocks() || shape.inputs % format.block_values != 0) continue;
      ASSAY_TRY(std::vector<TableCell> row, measure(pool, probe, shape, format));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace assay::bench
