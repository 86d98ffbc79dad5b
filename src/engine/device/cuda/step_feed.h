// Kernels of a step that deal with the host. The last one chooses tokens, and does more: it leaves
// them where the host finds them. In a step of decoding it also feeds the next one: it puts the
// tokens where ids are read, and counts lengths on. In a prompt's step a kernel ahead of all others
// fetches the inputs from the host's memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/codegen/kernel.h"
#include "engine/device/cuda/driver.h"
#include "engine/device/cuda/kernel_store.h"

namespace assay::engine::cuda {

class StepFeed {
 public:
  // Steps that the host may be behind.
  static constexpr int64_t kAhead = 16;
  // A step's state on the GPU, which its kernels have as dims: batch, q_len, kv_len, capacity,
  // steps since it was handed over, and a counter of rows.
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
    std::span<const int32_t> tokens;  // [batch], valid until the next wait()
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
  // Called before step `step` is launched, counted from the one that its state comes with. Step 0
  // waits until earlier steps have ended that nobody has waited for: they write to the same places.
  ::assay::Status expect(int64_t step);
  // The tokens of an expected step that was launched, as soon as the GPU has written them: its
  // kernels may not have ended then. Called before expect(step + kAhead).
  Result<Arrival> wait(int64_t step, int64_t batch);

  // The kernel that copies to `to` what lies in the host's memory at `from` when it runs; both
  // begin at multiples of 8 bytes.
  struct Fetch {
    Address from = 0, to = 0;
    int64_t words = 0;  // of 8 bytes
  };
  Result<Function> fetching();
  // All runs have these, so that a step's code doesn't depend on how many words it has.
  static constexpr unsigned kFetchingBlocks = 16, kFetchingThreads = 256;
  static const std::string& fetching_sha256();

 private:
  StepFeed(Driver& driver, KernelStore& kernels) : driver_(driver), kernels_(kernels) {}
  Result<Function> load(const std::string& text, int shared_percent);

  Driver& driver_;
  KernelStore& kernels_;
  std::string text_, text_sha256_;
  std::map<int, Function> functions_, sampling_;  // by `shared_percent`
  Function fetching_ = nullptr;
  int64_t* arrivals_ = nullptr;  // [kAhead, room_]: a token, and behind it a word of kinds: none
                                 // yet, one by a finite logit, or one by another
  std::vector<int32_t> tokens_;  // of the latest Arrival
  int64_t room_ = 0;
  int64_t under_way_ = 0;  // steps that were expected, and not yet waited for
};

}  // namespace assay::engine::cuda
