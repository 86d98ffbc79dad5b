// A checkpoint on one device, loaded once: weights, graph and compiled steps, for any number of
// sessions and batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/cache/kv_cache.h"
#include "engine/compiled/compile_options.h"
#include "engine/compiled/graph_compiler.h"
#include "engine/device/device.h"
#include "engine/device/executor.h"
#include "engine/graph/architectures.h"
#include "engine/model/checkpoint.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"

namespace assay::engine {

struct ModelOptions {
  std::optional<DType> dtype = {};  // absent: as stored; else weights are converted at load
  // Products of prompts in e4m3: on a GPU of compute capability 9.0 alone, with weights of 16 bits.
  // Weights stored in fp32 become bf16, unless `dtype` says otherwise.
  Fp8 fp8 = Fp8::kNone;
  bool fp8_fast_sums = false;  // the sums of these: not in fp32 throughout, and faster
  // All of these, even where the weights' type was measured to be faster; eager ones always are.
  bool fp8_always = false;
  LogitsOf logits = LogitsOf::kLastPosition;  // that a prompt's run computes
  CacheRows rows = CacheRows::kInOrder;       // kNamed: what a Batch needs
  size_t threads = 0;                         // 0: as many as the process may run on
  std::optional<int> gpu = {};  // the number of the GPU to compute on; absent: the processor
  bool reference_ops = false;   // the slow operators, for tests
  CompilerOptions compiler = {};
};

// The device that the options ask for. environment_error: no driver, no such GPU.
Result<std::shared_ptr<Device>> open_device(const ModelOptions& options);

// One thread at a time uses a model, through all of its sessions and batches, whose runs may come
// from another thread than the one that made them. It outlives them.
class Model {
 public:
  // `device`: of open_device() with the same options, of no other model. Its caller can ask it for
  // the meaning of an error, even if no model came to be.
  static Result<std::shared_ptr<Model>> load(Checkpoint checkpoint, const ModelOptions& options,
                                             std::shared_ptr<Device> device);

  const ModelOptions& options() const { return options_; }  // `dtype` as fp8 may have chosen it
  const ModelConfig& config() const { return weights_->config(); }
  DType dtype() const { return weights_->dtype(); }  // of the weights in use that are in no blocks
  std::string block_formats() const { return weights_->block_formats(); }  // of the others
  std::string quantization() const { return weights_->quantization(); }
  DType cache_type() const;
  uint64_t weight_bytes() const { return weights_->bytes(); }  // in memory, all tensors
  Device& device() { return *device_; }
  const Device& device() const { return *device_; }
  // Positions of a row of a prompt that get logits.
  int64_t logits_of_prompt(int64_t padded_len) const {
    return options_.logits == LogitsOf::kAllPositions ? padded_len : 1;
  }
  // Bytes that one decode step at this batch must at least read: every weight once, of the
  // embedding table only the rows looked up (unless it is also the head), and the cache at kv_len.
  uint64_t step_bytes(int64_t batch, int64_t kv_len) const;

  // The graph as built, or one with other logits or products, made when it is first asked for.
  Executor& eager() { return *eager_; }
  Result<Executor*> eager(LogitsOf logits, Fp8 fp8);
  // Makes the steps. The first call does the work that doesn't depend on sizes: the passes, and the
  // weights laid out as the kernels read them. A failure of that comes again in compile(), and is
  // an error here only if the device is lost or out of memory; bad_input: a disabled pass that
  // doesn't exist.
  Result<GraphCompiler*> compiler();

  // A cache of so many rows of `capacity` positions, in the device's memory.
  Result<std::unique_ptr<KvCache>> make_cache(CacheKind kind, int64_t rows, int64_t capacity);
  CacheShape cache_shape(int64_t rows, int64_t capacity) const;
  // Tables of at least so many positions, at the same address always.
  const RopeTables& rope(int64_t positions);

  // Outputs of an executor are those of the latest run: a session or batch takes a number before
  // each of its runs, and has outputs as long as no other has taken one since.
  uint64_t begin_run() {
    device_->enter_thread();
    return ++runs_;
  }
  uint64_t latest_run() const { return runs_; }

 private:
  Model(const ModelOptions& options, std::shared_ptr<Device> device)
      : options_(options), device_(std::move(device)) {}
  Status check_fp8() const;
  Status check_fp8_weights() const;
  Status check_tables() const;
  Status build(Checkpoint checkpoint);
  Result<Graph> make_graph(LogitsOf logits, Fp8 fp8) const;

  struct Variant {
    LogitsOf logits;
    Fp8 fp8;
    std::unique_ptr<Executor> executor;
  };

  // In the order of their dependence: a later member refers to earlier ones.
  ModelOptions options_;
  std::shared_ptr<Device> device_;
  BufferPool weight_memory_;
  std::unique_ptr<Weights> weights_;
  Graph graph_;  // as built
  std::unique_ptr<GraphCompiler> compiler_;
  std::unique_ptr<Executor> eager_;
  std::vector<Variant> variants_;
  RopeTables rope_;
  int64_t rope_positions_ = 0;
  uint64_t runs_ = 0;
};

}  // namespace assay::engine
