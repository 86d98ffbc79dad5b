// A request on its way through the scheduler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/generation.h"

namespace assay::server {

inline double ms_between(int64_t from_ns, int64_t to_ns) {
  return from_ns == 0 || to_ns < from_ns ? 0 : static_cast<double>(to_ns - from_ns) / 1e6;
}

struct WaitingRequest {
  int64_t number = 0;
  TokenAsk wanted;
  std::shared_ptr<TokenListener> listener;
  int64_t asked_ns = 0;

  GenerationTimes times() const { return {.queue_ms = ms_between(asked_ns, monotonic_now_ns())}; }
};

struct RunningRequest {
  WaitingRequest of;
  int64_t slot = 0;
  size_t fed = 0;      // tokens of the prompt
  int64_t cached = 0;  // of them, those that its slot had already
  int64_t made = 0;    // new tokens
  int64_t deaths = 0;  // calls in a row by which its slot was lost
  int64_t begun_ns = 0, first_ns = 0, last_ns = 0;
  bool decodes() const { return fed == of.wanted.prompt.size(); }
  // `capacity`: positions of its slot.
  int64_t tokens_left(int64_t capacity) const {
    return std::min(of.wanted.most_tokens, capacity - std::ssize(of.wanted.prompt)) - made;
  }
  bool has_ended() const { return of.listener == nullptr; }
  GenerationTimes times() const {
    return {ms_between(of.asked_ns, begun_ns), ms_between(begun_ns, first_ns),
            ms_between(first_ns, last_ns), cached};
  }
};

// A listener hears of a token, or of its end.
struct ToldEvent {
  std::shared_ptr<TokenListener> listener;
  int64_t number = 0;
  int32_t id = 0;
  std::vector<TokenLogprobs> logprobs = {};
  std::optional<Finish> finish = {};
  GenerationTimes times = {};
  std::string error = {};
};

}  // namespace assay::server
