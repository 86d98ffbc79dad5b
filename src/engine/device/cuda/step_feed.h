// The last kernel of a step chooses tokens, and does more: it leaves them where the host finds
// them. In a step of decoding it also feeds the next one: it puts the tokens where ids are read,
// and counts lengths on.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/kernel_store.h"

namespace assay::engine::cuda {

class StepFeed {
 public:
  // Steps that the host may be behind.
  static constexpr int64_t kAhead = 8;
  // A step's state on the GPU, which its kernels have as dims: batch, q_len, kv_len, capacity,
  // steps since it was uploaded, and a counter of rows.
  static constexpr int64_t kStateValues = 6;
  struct Places {
    Address logits = 0;   // fp32 [batch, positions, vocab]
    Address ids = 0;      // int32 [batch]; 0: the step has none, or feeds no other
    Address lengths = 0;  // int32 [batch]; 0: likewise
    int64_t positions = 0;
    int64_t vocab = 0;
  };
  // Behind the arguments of the kernel that chooses, in the order of its parameter.
  using Arguments = std::array<Address, 7>;
  struct Arrival {
    std::span<const int32_t> tokens;  // [batch], valid until kAhead further steps
    bool finite = true;               // each was chosen by a finite logit
  };

  // `choosing`: the step's last kernel, of rows, whose buffer `tokens` gets the argmax of each
  // row's last position, int32 [batch]. References must outlive the object.
  static Result<std::unique_ptr<StepFeed>> create(Driver& driver, KernelStore& kernels,
                                                  const Kernel& choosing, size_t tokens);
  ~StepFeed();

  // Makes room for batches up to this one; earlier recordings are void if there was less.
  ::assay::Status reserve(int64_t batch);
  // The kernel that chooses and feeds, launched as the one that chooses. `shared_percent`: as the
  // step's (StepForms).
  Result<Function> function(int shared_percent);
  // The kernel that draws tokens behind the one that chooses, and feeds in its place.
  Result<Function> sampling(int shared_percent);
  const std::string& text_sha256() const { return text_sha256_; }
  static const std::string& sampling_sha256();
  Arguments arguments(const Places& places) const;
  // Called after step `step`, counted from the upload of its state, was launched.
  ::assay::Status mark(int64_t step);
  // The tokens of a marked step; called before mark(step + kAhead).
  Result<Arrival> wait(int64_t step, int64_t batch);

 private:
  StepFeed(Driver& driver, KernelStore& kernels) : driver_(driver), kernels_(kernels) {}
  Result<Function> load(const std::string& text, int shared_percent);

  Driver& driver_;
  KernelStore& kernels_;
  std::string text_, text_sha256_;
  std::map<int, Function> functions_, sampling_;  // by `shared_percent`
  std::array<Event, kAhead> events_{};
  int32_t* arrivals_ =
      nullptr;  // [kAhead, 2, room_]: tokens, then 1 where their logit isn't finite
  int64_t room_ = 0;
};

}  // namespace assay::engine::cuda
