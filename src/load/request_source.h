// The requests of one run, one after the other: when each is to be sent, and its lengths. It makes
// the first request of each session by itself, and the following ones when asked.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "load/offered_load.h"

namespace assay {

struct PlannedRequest {
  // 0, 1, ... in the order of the run; of sessions, a session's place in that order times its
  // turns, and the turn.
  int64_t number = 0;
  int64_t scheduled_ns = 0;  // from the run's beginning; of a closed loop: not told
  int64_t prompt_tokens = 1;
  int64_t new_tokens = 1;
};

// The same load gives the same requests on every machine. `load` outlives it.
class RequestSource {
 public:
  explicit RequestSource(const OfferedLoad& load)
      : load_(load), lengths_(load.seed, 0), times_(load.seed, 1) {}

  // Absent: the run has no further request. `now_ns` from the run's beginning: a closed loop ends
  // with its duration.
  std::optional<PlannedRequest> next(int64_t now_ns);
  // The next turn of the request's session, due at this time. Absent: that was its last, or the run
  // is over by then.
  std::optional<PlannedRequest> following(const PlannedRequest& request, int64_t due_ns) const;

 private:
  const OfferedLoad& load_;
  Random lengths_;
  Random times_;
  int64_t made_ = 0;  // requests, all turns of a session at once
  double at_s_ = 0;   // of the latest request of an open loop
};

}  // namespace assay
