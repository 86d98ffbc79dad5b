// A model's weights in a GPU's memory, in the layout that its kernels read.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/process/thread_pool.h"
#include "base/result.h"
#include "engine/device/cuda/gpu_memory.h"
#include "engine/device/cuda/kernel_store.h"
#include "engine/graph/graph.h"
#include "engine/model/weights.h"
#include "engine/plan/step_plan.h"

namespace assay::engine::cuda {

// A product's weight in e4m3, as cuBLASLt's shapes in fp8 have it: [columns, inputs] codes, and a
// scale for each column.
struct Fp8Weight {
  Address codes = 0, scales = 0;
};

// Memory of the host that a GPU reads by itself, in two halves: one is filled while the other is
// read.
class Staging {
 public:
  explicit Staging(Driver& driver) : driver_(driver) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  static constexpr size_t kMost = size_t{32} << 20;  // bytes of a half that are worth it
  // So many bytes of the half whose turn it is, once nothing is read from it any more.
  Result<std::span<std::byte>> half(size_t bytes);
  // Uploads the first bytes of that half; the other one's turn comes.
  ::assay::Status send(Address to, size_t bytes);

 private:
  Driver& driver_;
  std::array<HostBlock, 2> halves_;
  std::array<Event, 2> read_{};
  size_t turn_ = 0;
};

// Uploads a weight when it is first asked for; all who ask for the same share one copy.
class GpuWeights {
 public:
  // All must outlive the object.
  GpuWeights(const Weights& weights, Driver& driver, ThreadPool& pool)
      : weights_(weights), driver_(driver), pool_(pool), staging_(driver) {}

  // Address of the weight, laid out as the binding asks; good as long as this object. A table in
  // blocks is laid out as a product's weight in rows with a column for each row (block_slots.h).
  // An environment_error if memory ends, here or there.
  Result<Address> address(const WeightSource& source, const WeightBinding& binding);

  // The product's weight, of 16 bits, rounded to e4m3, or its blocks' codes in rows: a kernel's
  // work, beside the copy that address() gives.
  Result<Fp8Weight> fp8(const WeightSource& source, const WeightBinding& binding,
                        KernelStore& kernels);

  uint64_t bytes() const { return bytes_; }  // on the GPU

 private:
  Result<GpuBlock> product(const WeightSource& source, const WeightBinding& binding);
  Result<GpuBlock> plain(const WeightSource& source);

  using Key = std::pair<std::vector<std::string>, std::string>;  // tensors and layout
  const Weights& weights_;
  Driver& driver_;
  ThreadPool& pool_;
  Staging staging_;
  uint64_t bytes_ = 0;
  std::map<Key, GpuBlock> copies_;
  std::map<Key, GpuBlock> rounded_;
};

}  // namespace assay::engine::cuda
