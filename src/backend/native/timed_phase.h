// The timed regions of the three phases, as shared by every arm of the native engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/message.h"
#include "base/clock.h"
#include "base/result.h"
#include "engine/session/session.h"

namespace assay {

#ifdef ASSAY_PLANTED_SLOWDOWN
// In programs of the tests alone (tests/CMakeLists.txt): makes the time since its constructor
// longer by this share, for comparisons that have to find it.
class PlantedSlowdown {
 public:
  PlantedSlowdown() = default;
  PlantedSlowdown(const PlantedSlowdown&) = delete;
  ~PlantedSlowdown() {
    const auto took = static_cast<double>(monotonic_now_ns() - start_ns_);
    const int64_t end_ns = start_ns_ + static_cast<int64_t>(took * (1 + kShare));
    while (monotonic_now_ns() < end_ns) {
    }
  }

 private:
  // Read at run time, so that programs of two shares differ by this number and by no instruction:
  // one more or less moves all code behind it, which alone makes 2 %.
  static inline const volatile double kShare = ASSAY_PLANTED_SLOWDOWN;
  int64_t start_ns_ = monotonic_now_ns();
};
#endif

// One repetition of one phase: feed(), then run(). Everything that isn't the phase happens before
// the first clock read of run() or after its last: allocation of the output, the prefill that feeds
// kv_decode.
// An object serves one repetition; after an error of feed() or run(), the session's, its figures
// mean nothing. `Session` is engine::Session, or a benchmark's stand-in for it.
template <typename Session>
class TimedPhase {
 public:
  // The session is prepared for the shape; session, shape and prompts outlive this.
  TimedPhase(Session& session, const WireShape& shape, const engine::PromptBatch& prompts)
      : session_(session), shape_(shape), prompts_(prompts) {
    // Touched here, so that no page fault falls into the region.
    steps_.assign(static_cast<size_t>(shape.batch * shape.new_tokens), -1);
  }

  // Produces the state that the region starts from and doesn't include: kv_decode's prefill.
  Status feed() { return shape_.phase == Phase::kKvDecode ? session_.prefill(prompts_) : Status(); }

  // prefill: one forward pass over the prompt. kv_decode: new_tokens decode steps. e2e_kv: both in
  // one region.
  Status run() {
    switch (shape_.phase) {
      case Phase::kPrefill:
        return run_prefill();
      case Phase::kKvDecode:
        return run_decode();
      case Phase::kE2eKv:
        return run_both();
      case Phase::kLoad:
        return bad_input("a native arm serves no load");
    }
    return {};
  }

  int64_t latency_ns() const { return end_ns_ - start_ns_; }
  // e2e_kv: until the first token is known.
  std::optional<int64_t> ttft_ns() const {
    if (shape_.phase != Phase::kE2eKv) return std::nullopt;
    return first_token_ns_ - start_ns_;
  }
  // [batch, n]: prefill: the one token that each row's prompt leads to; else the new_tokens that
  // the decode steps produced.
  const std::vector<int32_t>& output() const { return output_; }

 private:
  Status run_prefill() {
    start_ns_ = monotonic_now_ns();
    const Status status = session_.prefill(prompts_);
    end_ns_ = monotonic_now_ns();
    ASSAY_CHECK(status);
    const auto tokens = session_.next_tokens();
    output_.assign(tokens.begin(), tokens.end());
    return {};
  }

  Status run_decode() {
    start_ns_ = monotonic_now_ns();
    const Status status = decode_steps();
    end_ns_ = monotonic_now_ns();
    ASSAY_CHECK(status);
    keep_decoded_tokens();
    return {};
  }

  Status run_both() {
    start_ns_ = monotonic_now_ns();
    Status status = session_.prefill(prompts_);
    first_token_ns_ = monotonic_now_ns();
    if (status) status = decode_steps();
    end_ns_ = monotonic_now_ns();
    ASSAY_CHECK(status);
    keep_decoded_tokens();
    return {};
  }

  // Each step's tokens are kept for the hash.
  Status decode_steps() {
#ifdef ASSAY_PLANTED_SLOWDOWN
    const PlantedSlowdown slowdown;
#endif
    int32_t* out = steps_.data();
    return session_.decode_greedy(shape_.new_tokens, [&](std::span<const int32_t> tokens) {
      out = std::ranges::copy(tokens, out).out;
      return true;
    });
  }

  // Reorders the tokens from step after step to row after row of the batch.
  void keep_decoded_tokens() {
    output_.reserve(steps_.size());
    for (int64_t row = 0; row < shape_.batch; ++row) {
      for (int64_t step = 0; step < shape_.new_tokens; ++step) {
        output_.push_back(steps_[static_cast<size_t>(step * shape_.batch + row)]);
      }
    }
  }

  Session& session_;
  const WireShape& shape_;
  const engine::PromptBatch& prompts_;
  int64_t start_ns_ = 0;
  int64_t first_token_ns_ = 0;
  int64_t end_ns_ = 0;
  std::vector<int32_t> steps_;  // [new_tokens, batch]
  std::vector<int32_t> output_;
};

}  // namespace assay
