// Events of requests in a replay, and the trigger of their rule that they fire.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "routing/policy.h"

namespace assay {

// Counts of a rule's events.
struct RuleState {
  int64_t requests = 0;
  std::array<int64_t, kTriggerKinds.size()> events{};
  std::optional<TriggerKind> fired;
  int64_t diverted = 0;
};

struct CallEvents {
  double ms = 0;
  bool met_shape = false;  // compiled for a shape that is new
  bool recompiled = false;
  bool limit = false;
  bool ran_eager = false;
  double chance_of_loss = 0;
  bool lost = false;
};

// Counts one more request; the first trigger that it makes exceed its `allowed` has fired.
void watch_triggers(const std::vector<PolicyTrigger>& triggers, const CallEvents& events,
                    RuleState& state);

}  // namespace assay
