// Events against thresholds: each trigger on the event that it names, and on no other.
#include "routing/trigger_watch.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

PolicyTrigger watched(TriggerKind kind, int64_t allowed = 0, int64_t window = 0) {
  PolicyTrigger trigger;
  trigger.kind = kind;
  trigger.allowed = allowed;
  trigger.window = window;
  if (kind == TriggerKind::kSlowRequest) trigger.limit_ms = 5;
  return trigger;
}

CallEvents event_of(TriggerKind kind) {
  CallEvents events{.ms = 5};
  switch (kind) {
    case TriggerKind::kRecompileAfterWarmup:
      events.recompiled = true;
      break;
    case TriggerKind::kUniqueGraphs:
      events.met_shape = true;
      break;
    case TriggerKind::kRecompileLimit:
      events.limit = true;
      break;
    case TriggerKind::kFallback:
      events.ran_eager = true;
      break;
    case TriggerKind::kLostRow:
      events.lost = true;
      break;
    case TriggerKind::kSlowRequest:
      events.ms = 5.1;
      break;
  }
  return events;
}

TEST(TriggerWatch, EachFiresOnItsOwnEventAlone) {
  for (const TriggerKind kind : kTriggerKinds) {
    for (const TriggerKind event : kTriggerKinds) {
      RuleState state;
      watch_triggers({watched(kind)}, event_of(event), state);
      // A recompilation makes a graph, too.
      const bool fires = kind == event || (kind == TriggerKind::kUniqueGraphs &&
                                           event == TriggerKind::kRecompileAfterWarmup);
      EXPECT_EQ(state.fired.has_value(), fires)
          << trigger_name(kind) << " on " << trigger_name(event);
      EXPECT_EQ(state.fired.value_or(kind), kind);
    }
    RuleState calm;
    for (int i = 0; i < 200; ++i) watch_triggers({watched(kind)}, {.ms = 5}, calm);
    EXPECT_FALSE(calm.fired) << trigger_name(kind);
  }
}

// Requests until it fires, of 1000 of which every second did it; 0: it doesn't.
int64_t fires_at(int64_t allowed, int64_t window) {
  RuleState state;
  for (int64_t i = 1; i <= 1000; ++i) {
    watch_triggers({watched(TriggerKind::kLostRow, allowed, window)},
                   i % 2 == 0 ? event_of(TriggerKind::kLostRow) : CallEvents{}, state);
    if (state.fired) return i;
  }
  return 0;
}

TEST(TriggerWatch, CountsAnewAfterEachWindow) {
  EXPECT_EQ(fires_at(0, 0), 2);
  EXPECT_EQ(fires_at(4, 10), 10) << "five in ten are more than four";
  EXPECT_EQ(fires_at(5, 10), 0);
  EXPECT_EQ(fires_at(5, 0), 12) << "without a window the sixth fires whenever it comes";
}

TEST(TriggerWatch, TheFirstThatFiresStays) {
  RuleState state;
  const std::vector<PolicyTrigger> triggers = {watched(TriggerKind::kLostRow),
                                               watched(TriggerKind::kFallback)};
  watch_triggers(triggers, event_of(TriggerKind::kFallback), state);
  watch_triggers(triggers, event_of(TriggerKind::kLostRow), state);
  EXPECT_EQ(*state.fired, TriggerKind::kFallback);
}

}  // namespace
}  // namespace assay
