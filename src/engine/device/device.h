// The device that runs a session's steps: the only thing that owns the memory that kernels read and
// write, and that runs code. Executors, frames and the session don't know which kind it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/compile_stats.h"
#include "engine/codegen/toolchain.h"
#include "engine/device/device_fault.h"
#include "engine/device/executor.h"
#include "engine/device/slot_sampling.h"
#include "engine/memory/buffer_pool.h"
#include "engine/model/weights.h"
#include "engine/plan/step_plan.h"

namespace assay::engine {

// A plan on a device: compiled, its weights bound, its values at fixed addresses. Which code runs
// is decided by the plan and a run's own sizes, never by the runs before it.
class LoadedStep : public Executor {
 public:
  // Allocates, and compiles, for runs of these sizes beyond earlier ones; memory is touched. Runs
  // with the same batch and q_len and up to this kv_len then allocate nothing but a growing cache's
  // tensors. The sizes must be those that the plan is specialised on, where it is: assert, in run()
  // too.
  virtual Status reserve(const DimValues& dims) = 0;

  // Identifies the code of the latest run for evidence: equal for equal runs, in any process and
  // after any others.
  struct Code {
    std::string sha256;  // of the kernels' texts, in order, and of how they were launched
    std::vector<std::string> forms;  // on a GPU: launch forms of its kernels, equal ones once
  };
  virtual Code code() const = 0;

  // True if run_greedy() can go on from here: earlier runs have made the preparations for it that
  // may fail.
  virtual bool feeds_itself() const { return false; }
  // `steps` runs of a decode step over a static cache with room for them: the first with `inputs`,
  // each other with the tokens that the one before chose, without the host in between. `sink` gets
  // every step's tokens as they arrive, in order, and may end them; the device is at most `ahead`
  // steps ahead of it. Tokens are the last step's, and other outputs unless `sink` ended them;
  // there are none if it stopped. After that and after an error the steps whose tokens have arrived
  // are in the cache, and no others.
  virtual Status run_greedy(const RunInputs& inputs, int64_t steps, int64_t ahead, KvCache& cache,
                            const TokenSink& sink);
};

// The identity of a device. A member that doesn't apply is empty.
struct DeviceInfo {
  std::string kind;                     // cpu | cuda
  std::string name = {};                // of a GPU: "NVIDIA H200"
  std::string uuid = {};                // of a GPU: "GPU-..."
  std::string compute_capability = {};  // "9.0"
  std::string target = {};              // that code is compiled for: "sm_90a"
  std::string driver = {};              // the newest CUDA that it speaks: "CUDA 13.0"
};

// A product that a library computes for a device's steps: x [rows, inputs] times a weight.
struct LibraryShape {
  int64_t rows = 0, outputs = 0, inputs = 0;
  std::string type = {}, out_type = {};  // of x and the weight: "bf16", "e4m3"; of what it writes
  friend auto operator<=>(const LibraryShape&, const LibraryShape&) = default;
};

// A product that a device could multiply in e4m3 or in the weights' type, and what it would take,
// in microseconds: measured of a library, and of the device's own product in the weights' type,
// where that runs, the part of the library's that a model of times expects.
struct TypeContest {
  int64_t rows = 0, outputs = 0, inputs = 0;
  double fp8_us = 0, wide_us = 0;
  double rounding_us = 0;  // of x by a kernel of its own, modelled; 0: another kernel rounds it
  bool fp8_wins() const { return fp8_us + rounding_us < wide_us; }
  friend auto operator<=>(const TypeContest&, const TypeContest&) = default;
};

// Launches on a device whose kernels the host launches, since its start.
struct LaunchCounts {
  int64_t captures = 0;  // recorded sequences of launches
  int64_t replays = 0;   // of steps that were recorded, by themselves or several at a time
  int64_t kernels = 0;   // launched one by one
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceInfo info() const = 0;
  virtual BufferPool& memory() = 0;       // where caches and eager outputs are
  virtual TileLayout layout() const = 0;  // of products' weights, as its kernels read them
  // Type of the caches of a model whose weights are of this type, in its graphs and in memory.
  virtual DType cache_type(DType weights) const = 0;
  // True if the first runs of each size cost it time, so that few sizes serve best.
  virtual bool prefers_few_sizes() const { return false; }
  virtual size_t threads() const = 0;  // of the host that compute

  // Runs the graph as built, operator by operator, nothing fused: each operator's outputs come from
  // memory() when it runs, and go back when nothing reads them any more. `weights` must outlive the
  // executor.
  virtual Result<std::unique_ptr<Executor>> make_eager(Graph graph, const Weights& weights) = 0;

  // While loading, once a compiled session: finds the compiler, and lays the graph's product
  // weights out as the kernels read them. `weights` must outlive all steps. It has to be called
  // before load(), in which its failure comes again, with the reason.
  virtual Status prepare(const Graph& graph, const Weights& weights) = 0;
  // Compiles a plan and binds its weights. An environment_error has the compiler's whole text. The
  // device must outlive the step.
  virtual Result<std::unique_ptr<LoadedStep>> load(std::shared_ptr<const StepPlan> plan) = 0;

  // Tables for a batch of so many slots, and runs of so many rows of logits [vocab]: compiled steps
  // can draw tokens by them. Null: this device doesn't draw.
  virtual Result<std::unique_ptr<SlotSampling>> make_sampling(int64_t, int64_t, int64_t) {
    return nullptr;
  }

  virtual std::optional<Toolchain> toolchain() const = 0;  // absent: none was needed or found
  virtual CompileStats stats() const = 0;                  // since the start
  // Absent if the host launches nothing.
  virtual std::optional<LaunchCounts> launches() const { return std::nullopt; }
  // The shapes multiplied since the start, each once; not those of runs while noting was off.
  virtual std::vector<LibraryShape> library_products() const { return {}; }
  virtual void note_products(bool) {}
  // Measurements that chose types of products for compiled steps, each once.
  virtual std::vector<TypeContest> type_contests() const { return {}; }
  virtual uint64_t packed_bytes() const = 0;  // of weights laid out anew
  // Part of these bytes that a file had already.
  virtual uint64_t found_packed_bytes() const { return 0; }
  // Problems that stopped nothing: a cache folder that can't be used.
  virtual const std::vector<std::string>& notes() const = 0;

  // Milliseconds, by the device's own clock, of the work between the two calls; the second waits
  // for its end. Absent if the device has no clock of its own.
  virtual Status start_timer() { return {}; }
  virtual Result<std::optional<double>> stop_timer_ms() { return std::optional<double>(); }

  // GB/s (1e9 bytes) at which it reads its memory at best, measured: the limit of a memory-bound
  // step. About a second. environment_error: no memory for it, or no compiler.
  virtual Result<double> measure_read_bandwidth() = 0;
  // Size of the last cache before that memory: a step may read so many bytes from there instead.
  // Absent: not known.
  virtual std::optional<uint64_t> cache_bytes() const = 0;

  // Has to come before a thread's first use of the device, and before each once another has used
  // it; costs nothing where none has.
  virtual void enter_thread() {}

  // The fault of the last call to the device that failed, since the last forget_fault(); a lost
  // device stays lost.
  virtual DeviceFault fault() const { return {}; }
  virtual void forget_fault() {}
};

}  // namespace assay::engine
