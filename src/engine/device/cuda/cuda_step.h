// A plan on a GPU: weights uploaded, and modules loaded for the forms that its kernels have in runs
// of some sizes: a size that is a symbol chooses them when it is first met. Values are at fixed
// addresses, and its kernels launched one behind the other, or replayed as CUDA graphs in runs that
// differ from an earlier one in nothing but lengths; of an eager plan they are from a pool, and
// always launched.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/codegen/cuda/print_cuda.h"
#include "engine/device/cuda/cuda_slot_sampling.h"
#include "engine/device/cuda/eager_outputs.h"
#include "engine/device/cuda/gpu_memory.h"
#include "engine/device/cuda/gpu_weights.h"
#include "engine/device/cuda/kernel_store.h"
#include "engine/device/cuda/many_rows.h"
#include "engine/device/cuda/step_feed.h"
#include "engine/device/cuda/step_forms.h"
#include "engine/device/device.h"

namespace assay::engine::cuda {

class CudaStep final : public LoadedStep {
 public:
  // `outputs`: for an eager step, the pool of its outputs; every kernel is launched by itself in
  // every run. Null: outputs have places in an arena, and steps are captured. All references must
  // outlive the result.
  static Result<std::unique_ptr<CudaStep>> load(StepPlan plan, KernelStore& kernels,
                                                GpuWeights& weights, LazyCublasLt& library,
                                                Driver& driver, LaunchCounts& counts,
                                                BufferPool* outputs);
  ~CudaStep() override;

  ::assay::Status reserve(const DimValues& dims) override;
  ::assay::Status run(const RunInputs& inputs, KvCache& cache) override;
  Code code() const override;
  bool feeds_itself() const override {
    return feed_ != nullptr && latest_ != nullptr && !latest_->graphs.empty() &&
           plan_.dims.q_len == 1;
  }
  ::assay::Status run_greedy(const RunInputs& inputs, int64_t steps, int64_t ahead, KvCache& cache,
                             const TokenSink& sink) override;
  // Copied from the GPU when first asked for; empty if that fails, with the driver's reason in the
  // next run. Tokens are there when run() returns.
  std::span<const float> output_f32(size_t index) const override;
  std::span<const int32_t> output_i32(size_t index) const override;
  float element_f32(size_t index, size_t element) const override;
  std::optional<bool> chose_finite() const override { return finite_; }

 private:
  static constexpr int64_t kChained = 8;  // steps of run_greedy() that are one graph
  struct Launch {
    Function function = nullptr;
    Blocks blocks;
    unsigned threads = 0;
    size_t shared_bytes = 0;
    size_t kernel = 0;
    Address workspace = 0;           // 0: the step's; of the library: the decoded weight
    std::optional<LtShape> product;  // by the library, in place of a kernel
    std::string text_sha256 = {};
    std::optional<size_t> codes = {};       // the buffer that is bound to the next product's x
    bool feeds = false;                     // as StepFeed has it
    bool draws = false;                     // StepFeed::sampling()
    bool fetches = false;                   // StepFeed::fetching(), ahead of all others
    std::vector<CudaMatrix> matrices = {};  // CudaLaunches::matrices
  };
  // Sizes and addresses that captured graphs have taken as constants.
  struct Bound {
    int64_t batch = 0, q_len = 0, capacity = 0;
    bool grows = false;                                   // the cache
    std::vector<const std::byte*> caches;                 // its places()
    std::optional<CudaSlotSampling::Arguments> sampling;  // its tables, of runs that draw tokens
    friend bool operator==(const Bound&, const Bound&) = default;
  };

  // Launches of runs that agree in what is bound, and their recording.
  struct Recording {
    Bound bound;
    std::vector<std::optional<LtShape>> products;  // by kernel, of those by the library
    std::vector<Launch> launches;
    std::vector<GraphExec> graphs;   // to be replayed behind one another; none: launched so far
    std::optional<GraphExec> chain;  // kChained steps in a row; null: it can't be recorded
  };

  CudaStep(StepPlan plan, KernelStore& kernels, LazyCublasLt& library, Driver& driver,
           LaunchCounts& counts, BufferPool* outputs);
  ::assay::Status make_room(const RunInputs& inputs, KvCache& cache, bool chains = false);
  Recording* find(const Bound& bound);
  size_t most_recordings() const;
  ::assay::Status bind_weights(GpuWeights& weights, KernelStore& kernels);
  bool writes_codes(const Recording& of, size_t kernel) const;
  bool may_be_fp8(size_t kernel) const { return rounded_[kernel].codes != 0; }
  ::assay::Status choose_types(const DimValues& dims);
  ::assay::Status place_values(const DimValues& dims);
  ::assay::Status reserve_workspace(const DimValues& dims);
  void bind(const Bound& bound);
  bool fetches_state(const Bound& bound) const;
  ::assay::Status hand_over_state(const RunInputs& inputs);
  ::assay::Status upload_tables(const RopeTables& rope);
  ::assay::Status find_launches(Recording& of);
  ::assay::Status add_launch(Recording& to, size_t kernel, const CudaLaunch& launch,
                             Address workspace);
  ::assay::Status launch_all(bool early);
  ::assay::Status launch_some(size_t begin, size_t end, bool early);
  ::assay::Status launch_one(const Launch& launch, bool early);
  ::assay::Status launch_sampling(const Launch& launch, bool early);
  ::assay::Status launch_fetching(const Launch& launch);
  Address input_address(InputKind kind) const;  // 0: the plan has no such input
  std::optional<size_t> chosen_tokens() const;
  ::assay::Status make_outputs(size_t kernel);
  StepFeed::Places feed_places() const;
  ::assay::Status take_tokens();
  ::assay::Status download_tokens();
  ::assay::Status execute();
  ::assay::Status record();
  Result<GraphExec> record_some(size_t begin, size_t end, int64_t times = 1);
  ::assay::Status replay();
  static bool chains(int64_t most_ahead, int64_t left);
  bool has_chain();
  ::assay::Status replay_chain();
  void drop_graphs();
  void drop_oldest();
  Address address(ValueId id) const;
  size_t state_begin() const;
  Address state_address() const { return arena_.address() + places_.bytes; }
  ::assay::Status download(size_t index) const;

  StepPlan plan_;
  Driver& driver_;
  StepForms forms_;
  ManyRows many_rows_;
  LaunchCounts& counts_;
  std::optional<EagerOutputs> made_;  // of an eager step

  ArenaPlan places_;  // of an eager step: of its inputs alone
  GpuBlock arena_;    // of places_, and behind them the step's sizes, as StepFeed has them
  GpuBlock workspace_;
  CudaWorkspace workspace_sizes_;
  HostBlock state_;                 // inputs and sizes of the latest run, for the GPU
  std::unique_ptr<StepFeed> feed_;  // of a compiled step whose last kernel chooses tokens
  std::optional<bool> finite_;      // as chose_finite()
  GpuBlock cos_, sin_;
  size_t table_floats_ = 0;                      // of each
  DimValues placed_;                             // the largest sizes that values have places for
  std::optional<DimValues> roomed_;              // the sizes of the last run that there is room for
  std::vector<std::vector<Address>> arguments_;  // by kernel: struct Args of the printed source
  std::vector<Fp8Weight> rounded_;               // by kernel, of products that may be in fp8
  Bound wanted_;                                 // by the run at hand
  std::optional<Bound> bound_;                   // that arguments_ are for
  std::list<Recording> recordings_;              // the one in use last comes first
  Recording* latest_ = nullptr;                  // of the run at hand, or the latest one
  bool has_launched_ = false;
  DimValues last_dims_;
  mutable std::map<size_t, std::vector<std::byte>> outputs_;  // of the last run, those asked for
};

}  // namespace assay::engine::cuda
