// The kernel behind a step: it leaves the chosen tokens where the host finds them. Behind a step of
// decoding it also feeds the next one: it puts the tokens where ids are read, and counts lengths
// on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/kernel_store.h"

namespace assay::engine::cuda {

class StepFeed {
 public:
  // Steps that the host may be behind.
  static constexpr int64_t kAhead = 8;
  // A step's state on the GPU: batch, q_len, kv_len, capacity, steps since it was uploaded.
  static constexpr int64_t kStateValues = 5;
  struct Places {
    Address logits = 0;   // fp32 [batch, positions, vocab]
    Address tokens = 0;   // int32 [batch]: the argmax of each row's last position
    Address ids = 0;      // int32 [batch]; 0: the step has none, or feeds no other
    Address lengths = 0;  // int32 [batch]; 0: likewise
    Address state = 0;    // int64 [kStateValues]
    int64_t batch = 0;
    int64_t positions = 0;
    int64_t vocab = 0;
  };
  struct Arrival {
    std::span<const int32_t> tokens;  // [batch], valid until kAhead further steps
    bool finite = true;               // each was chosen by a finite logit
  };

  // References must outlive the object.
  static Result<std::unique_ptr<StepFeed>> create(Driver& driver, KernelStore& kernels);
  ~StepFeed();

  // Makes room for batches up to this one; earlier recordings are void if there was less.
  ::assay::Status reserve(int64_t batch);
  // Launches it behind a step's kernels; `early` as Driver::launch() has it. `streams`: they share
  // memory as Driver::share_memory() has it, and so does this one.
  ::assay::Status launch(const Places& places, bool early, bool streams);
  // Called after step `step`, counted from the upload of its state, was launched.
  ::assay::Status mark(int64_t step);
  // The tokens of a marked step; called before mark(step + kAhead).
  Result<Arrival> wait(int64_t step, int64_t batch);

 private:
  StepFeed(Driver& driver, KernelStore& kernels) : driver_(driver), kernels_(kernels) {}
  Result<Function> function(bool streams);

  Driver& driver_;
  KernelStore& kernels_;
  std::array<Function, 2> functions_{};  // by `streams`; null: not loaded yet
  std::array<Event, kAhead> events_{};
  int32_t* arrivals_ =
      nullptr;  // [kAhead, 2, room_]: tokens, then 1 where their logit isn't finite
  int64_t room_ = 0;
};

}  // namespace assay::engine::cuda
