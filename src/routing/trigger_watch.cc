// Events against thresholds.
#include "routing/trigger_watch.h"

namespace assay {
namespace {

bool happened(const PolicyTrigger& trigger, const CallEvents& events) {
  switch (trigger.kind) {
    case TriggerKind::kRecompileAfterWarmup:
      return events.recompiled;
    case TriggerKind::kUniqueGraphs:
      return events.met_shape || events.recompiled;
    case TriggerKind::kRecompileLimit:
      return events.limit;
    case TriggerKind::kFallback:
      return events.ran_eager;
    case TriggerKind::kSlowRequest:
      return trigger.limit_ms && events.ms > *trigger.limit_ms;
    case TriggerKind::kLostRow:
      return events.lost;
  }
  return false;
}

}  // namespace

void watch_triggers(const std::vector<PolicyTrigger>& triggers, const CallEvents& events,
                    RuleState& state) {
  ++state.requests;
  for (const PolicyTrigger& trigger : triggers) {
    int64_t& count = state.events[static_cast<size_t>(trigger.kind)];
    count += happened(trigger, events) ? 1 : 0;
    if (count > trigger.allowed && !state.fired) state.fired = trigger.kind;
    if (trigger.window > 0 && state.requests % trigger.window == 0) count = 0;
  }
}

}  // namespace assay
