// Attention of prompts on a GPU by itself: cuda_attention [--print]
// [BATCH,HEADS,KV_HEADS,POSITIONS,HEAD_DIM...]. bf16, causal, an empty cache before; each form that
// this GPU has, checked against a softmax in double on some rows, and timed beside cuDNN's time
// where that is known. Without a GPU: exit status 3.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/tables/table.h"
#include "base/text/text.h"
#include "engine/codegen/cuda/nvrtc.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/codegen/lower/lower.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/gpu_memory.h"
#include "engine/graph/graph_builder.h"
#include "engine/model/convert.h"

namespace assay::bench {
namespace {

using namespace engine;

struct Shape {
  int64_t batch, heads, kv_heads, positions, head_dim;
  double cudnn_ms = 0;  // measured once; 0: not
  double flops() const {
    return 2.0 * static_cast<double>(batch * heads * head_dim) * static_cast<double>(positions) *
           static_cast<double>(positions + 1);
  }
};

Result<Kernel> kernel_of(const Shape& s, const std::string& target) {
  GraphBuilder builder({{"table", engine::Shape{50, s.heads * s.head_dim}}}, DType::kBF16,
                       DType::kBF16);
  const auto x = builder.add(OpKind::kEmbedding, {builder.ids(), builder.weight("table")});
  const auto out = builder.attention(builder.split_heads(x, s.heads, s.head_dim),
                                     builder.cache(0, CachePart::kKeys, s.kv_heads, s.head_dim),
                                     builder.cache(0, CachePart::kValues, s.kv_heads, s.head_dim));
  ASSAY_TRY(const Graph graph, builder.finish({out}));
  for (const Node& node : graph.nodes) {
    if (node.op == OpKind::kView) continue;
    ASSAY_TRY(Kernel kernel, lower(graph, node, {}, TileLayout::kRows));
    const auto* attention = std::get_if<AttentionKernel>(&kernel.body);
    if (attention == nullptr) continue;
    kernel.run_sizes = {s.batch, s.positions, {}, {}};
    kernel.target = target;
    kernel.buffers[attention->q].dtype = DType::kBF16;  // as compiled prompts have both
    kernel.buffers[attention->out].dtype = DType::kBF16;
    return kernel;
  }
  return bad_input("no attention");
}

// Values like those of a normal distribution, from a hash: the sum of four uniform ones.
float value_at(uint64_t seed, size_t i) {
  float sum = 0;
  for (uint64_t part = 0; part < 4; ++part) {
    uint64_t x = (i * 4 + part + 1) * 0x9e3779b97f4a7c15ULL + seed * 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 31, x *= 0x94d049bb133111ebULL, x ^= x >> 29;
    sum += static_cast<float>(x >> 40) / static_cast<float>(1 << 24) - 0.5f;
  }
  return sum * 1.7f;
}

struct Operand {
  std::vector<float> values;  // as rounded to the type
  cuda::GpuBlock block;
};
Result<Operand> make_operand(cuda::Driver& driver, uint64_t seed, int64_t count, DType dtype) {
  Operand operand;
  operand.values.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < operand.values.size(); ++i) operand.values[i] = value_at(seed, i);
  std::vector<std::byte> bytes(operand.values.size() * dtype_size_bytes(dtype));
  const auto* from = reinterpret_cast<const std::byte*>(operand.values.data());
  convert({from, DType::kF32, engine::Shape{count}}, dtype, bytes.data());
  convert({bytes.data(), dtype, engine::Shape{count}}, DType::kF32,
          reinterpret_cast<std::byte*>(operand.values.data()));
  ASSAY_TRY(operand.block, cuda::GpuBlock::allocate(driver, bytes.size()));
  ASSAY_CHECK(driver.upload(operand.block.address(), bytes));
  return operand;
}

// The largest difference of some rows from sums in double.
double error_of(const Shape& s, const Operand& q, const Operand& k, const Operand& v,
                const std::vector<float>& out) {
  double worst = 0;
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t b = i % s.batch, head = i * 5 % s.heads,
                  t = i < 12 ? i * (s.positions - 1) / 11 : (i * 7919) % s.positions;
    const size_t row = static_cast<size_t>(((b * s.positions + t) * s.heads + head) * s.head_dim);
    const size_t cache = static_cast<size_t>((b * s.kv_heads + head / (s.heads / s.kv_heads)) *
                                             s.positions * s.head_dim);
    const auto width = static_cast<size_t>(s.head_dim);
    std::vector<double> sums(width), scores(static_cast<size_t>(t) + 1);
    double largest = -1e300, total = 0;
    for (size_t p = 0; p < scores.size(); ++p) {
      double score = 0;
      for (size_t d = 0; d < width; ++d)
        score += double{q.values[row + d]} * double{k.values[cache + p * width + d]};
      scores[p] = score / std::sqrt(static_cast<double>(s.head_dim));
      largest = std::max(largest, scores[p]);
    }
    for (size_t p = 0; p < scores.size(); ++p) {
      const double w = std::exp(scores[p] - largest);
      total += w;
      for (size_t d = 0; d < width; ++d) sums[d] += w * double{v.values[cache + p * width + d]};
    }
    for (size_t d = 0; d < width; ++d) {
      const double difference = std::abs(sums[d] / total - double{out[row + d]});
      worst = difference <= worst ? worst : difference;
    }
  }
  return worst;
}

struct Timed {
  double ms = 0, error = 0;
  std::string form;
};
Result<Timed> run(cuda::Driver& driver, const Nvrtc& nvrtc, const Shape& s,
                  const std::string& target) {
  ASSAY_TRY(const Kernel kernel, kernel_of(s, target));
  const auto& attention = std::get<AttentionKernel>(kernel.body);
  ASSAY_TRY(const std::string source, print_cuda(kernel));
  ASSAY_TRY(const Cubin cubin, nvrtc.compile(source, driver.info().target));
  ASSAY_TRY(const cuda::Module module, driver.load(cubin.bytes));
  const int64_t rows = s.batch * s.positions * s.heads * s.head_dim;
  const int64_t cached = s.batch * s.positions * s.kv_heads * s.head_dim;
  ASSAY_TRY(Operand q, make_operand(driver, 1, rows, kernel.buffers[attention.q].dtype));
  ASSAY_TRY(Operand k, make_operand(driver, 2, cached, DType::kBF16));
  ASSAY_TRY(Operand v, make_operand(driver, 3, cached, DType::kBF16));
  ASSAY_TRY(cuda::GpuBlock out, cuda::GpuBlock::allocate(driver, static_cast<size_t>(rows) * 2));
  ASSAY_CHECK(driver.fill(out.address(), 0xff, static_cast<size_t>(rows) * 2));
  ASSAY_TRY(cuda::GpuBlock zeros,
            cuda::GpuBlock::allocate(driver, static_cast<size_t>(s.batch) * 4));
  ASSAY_CHECK(driver.fill(zeros.address(), 0, static_cast<size_t>(s.batch) * 4));
  const int64_t sizes[] = {s.batch, s.positions, s.positions, s.positions};
  ASSAY_TRY(cuda::GpuBlock dims, cuda::GpuBlock::allocate(driver, sizeof sizes));
  ASSAY_CHECK(driver.upload(dims.address(), std::as_bytes(std::span(sizes))));
  std::vector<cuda::Address> arguments(kernel.bound_buffers + 2);
  arguments[attention.q] = q.block.address();
  arguments[attention.keys] = k.block.address();
  arguments[attention.values] = v.block.address();
  arguments[attention.out] = out.address();
  arguments[attention.lengths] = arguments[attention.pad] = zeros.address();
  arguments[kernel.bound_buffers] = dims.address();
  const CudaLaunch launch =
      cuda_launches(kernel, {s.batch, s.positions, s.positions}, s.positions).run.front();
  ASSAY_TRY(const cuda::Function function, driver.function(module, launch.entry));
  if (launch.shared_bytes > 0)
    ASSAY_CHECK(driver.share_memory(function, static_cast<size_t>(launch.shared_bytes)));
  const auto start = [&] {
    return driver.launch(
        function,
        {static_cast<unsigned>(launch.blocks_x), static_cast<unsigned>(launch.blocks_y), 1},
        static_cast<unsigned>(launch.threads), arguments.data(), true,
        static_cast<size_t>(launch.shared_bytes));
  };
  ASSAY_CHECK(start());
  ASSAY_CHECK(driver.synchronize());
  std::vector<std::byte> narrow(static_cast<size_t>(rows) * 2);
  ASSAY_CHECK(driver.download(narrow, out.address()));
  std::vector<float> wide(static_cast<size_t>(rows));
  convert({narrow.data(), DType::kBF16, engine::Shape{rows}}, DType::kF32,
          reinterpret_cast<std::byte*>(wide.data()));
  Timed timed{.ms = 0, .error = error_of(s, q, k, v, wide), .form = {}};
  std::vector<double> ms;
  const int launches = s.flops() > 1e12 ? 1 : 10;
  for (int turn = 0; turn < 9; ++turn) {
    ASSAY_TRY(const double all, driver.time_ms([&]() -> ::assay::Status {
      for (int i = 0; i < launches; ++i) ASSAY_CHECK(start());
      return {};
    }));
    ms.push_back(all / launches);
  }
  std::ranges::sort(ms);
  timed.ms = ms[ms.size() / 2];
  timed.form =
      fmt::format("{} blocks of {} threads", launch.blocks_x * launch.blocks_y, launch.threads);
  driver.unload(module);
  return timed;
}

int run_all(const std::vector<Shape>& shapes) {
  auto driver = cuda::Driver::open();
  auto nvrtc = Nvrtc::open();
  if (!driver || !nvrtc) {
    fmt::print("skipped: {}\n", (!driver ? driver.error() : nvrtc.error()).message);
    return 3;
  }
  for (const Shape& s : shapes) {
    for (const std::string& target : {std::string(), (*driver)->info().target}) {
      const auto timed = run(**driver, *nvrtc, s, target);
      const std::string name =
          fmt::format("[{}, {}/{}, {}, {}]", s.batch, s.heads, s.kv_heads, s.positions, s.head_dim);
      if (!timed) {
        fmt::print("{}: {}\n", name, timed.error().message);
        return 1;
      }
      fmt::print("{:26} {:8} {:9.4f} ms {:5.0f} TFLOP/s, error {:.1e}, {}{}\n", name,
                 target.empty() ? "any" : target, timed->ms, s.flops() / timed->ms * 1e-9,
                 timed->error, timed->form,
                 s.cudnn_ms > 0 ? fmt::format(", cuDNN {:.3f} ms", s.cudnn_ms) : "");
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace assay::bench

int main(int count, char** arguments) {
  using assay::bench::Shape;
  std::vector<Shape> shapes;
  bool print = false;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) == "--print") {
      print = true;
      continue;
    }
    Shape s{};
    if (std::sscanf(arguments[i], "%ld,%ld,%ld,%ld,%ld", &s.batch, &s.heads, &s.kv_heads,
                    &s.positions, &s.head_dim) != 5)
      return 2;
    shapes.push_back(s);
  }
  if (shapes.empty()) {
    shapes = {{2, 16, 16, 2048, 128, 0.084}, {1, 32, 32, 2048, 64, 0.057}, {1, 32, 8, 2048, 64}};
  }
  if (!print) return assay::bench::run_all(shapes);
  const auto kernel = assay::bench::kernel_of(shapes.front(), "sm_90a");
  fmt::print("{}", assay::engine::print_cuda(*kernel).value());
  return 0;
}
