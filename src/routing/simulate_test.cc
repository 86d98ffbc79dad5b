// Replays of traces: the cost of strategies, their compilations, and their triggers.
#include "routing/simulate.h"

#include <gmock/gmock.h>

#include <cmath>

#include "routing/routed_bundle.h"

namespace assay {
namespace {

using testing::HasSubstr;

// Far apart, so that no request waits for another.
std::vector<TraceRequest> calm_trace(const std::vector<int64_t>& lengths, int64_t times,
                                     int64_t new_tokens = 0, int64_t batch = 1) {
  std::vector<TraceRequest> trace;
  for (int64_t i = 0; i < times; ++i) {
    for (const int64_t length : lengths) {
      trace.push_back({static_cast<double>(trace.size()) * 10, length, new_tokens, batch});
    }
  }
  return trace;
}

Route replayed(RoutedBundle& bundle, std::vector<TraceRequest> trace,
               std::optional<Policy> policy = {}) {
  RouteRequest request;
  request.policy = std::move(policy);
  request.trace = TraceToReplay{"t.csv", std::move(trace), "", 40};
  return bundle.route(request);
}

const SimulatedStrategy& strategy_of(const Route& route, const std::string& name) {
  const auto& all = route.simulation->strategies;
  const auto at = std::ranges::find(all, name, &SimulatedStrategy::name);
  EXPECT_NE(at, all.end()) << name;
  return *at;
}

// A RoutedBundle of an arm that compiles in the first call of each cell, at `cold` ms.
RoutedBundle compiling_bundle(RoutedStudy study, double cold) {
  RoutedBundle bundle(study);
  for (const Phase phase : study.phases) {
    for (const int64_t length : study.lengths) {
      for (const int64_t batch : study.batches) {
        for (const RoutedArm& arm : study.arms) {
          if (arm.compiled)
            bundle.made.compile(bundle.cell(arm.name, length, phase, batch), -1, cold);
        }
      }
    }
  }
  return bundle;
}

TEST(Simulation, LatenciesAreThoseOfTheMeasuredRows) {
  RoutedBundle bundle(two_routed_arms(0.7));
  const Route route = replayed(bundle, calm_trace({10, 30, 80}, 50));
  const SimulatedStrategy& eager = strategy_of(route, "eager");
  EXPECT_NEAR(eager.p50_ms->mean, 10, 0.1);
  EXPECT_LT(eager.p50_ms->interval->low, eager.p50_ms->mean);
  EXPECT_NEAR(strategy_of(route, "compiled").p50_ms->mean, 7, 0.1);
  EXPECT_NEAR(strategy_of(route, "policy").p50_ms->mean, 7, 0.1);
  EXPECT_NEAR(eager.regret->mean, 10.0 / 7 - 1, 0.02);
  EXPECT_NEAR(strategy_of(route, "policy").regret->mean, 0, 0.005);
  EXPECT_EQ(eager.lost, 0);
  EXPECT_NEAR(eager.per_s->mean, 0.1, 0.002);
  EXPECT_EQ(route.simulation->units, 8u);
}

// A file may name any number; only numbers that have rows are there to be drawn.
TEST(Simulation, UnitsAreCountedAndTheirNumbersArent) {
  const auto renumbered = [](int64_t step) {
    RoutedBundle bundle(two_routed_arms(0.7));
    for (Row& row : bundle.made.raw().rows) {
      if (row.process) row.process = *row.process * step;
    }
    return route_to_json(replayed(bundle, calm_trace({10, 30, 80}, 10)))["simulation"].dump();
  };
  EXPECT_EQ(renumbered(1), renumbered(1'000'000'000'000'000'000));
}

TEST(Simulation, BetweenMeasuredLengthsQuantilesAreInterpolated) {
  RoutedStudy study = two_routed_arms(0.7);
  study.arms[0].ms = [](int64_t tokens) { return static_cast<double>(tokens); };
  study.arms[1].ms = [](int64_t tokens) { return 0.5 * static_cast<double>(tokens); };
  study.noise = 0.001;
  RoutedBundle bundle(study);
  const Route route = replayed(bundle, calm_trace({20, 55}, 30));
  EXPECT_NEAR(strategy_of(route, "eager").p50_ms->mean, 37.5, 0.5);
  EXPECT_NEAR(strategy_of(route, "compiled").p50_ms->mean, 18.75, 0.3);
  EXPECT_NEAR(strategy_of(route, "padded").p50_ms->mean, 27.5, 0.4);  // as 30 and 80 tokens
}

TEST(Simulation, RequestsOutsideAreCountedAndNeverExtrapolated) {
  RoutedStudy study = two_routed_arms(0.7);
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  RoutedBundle bundle(study);
  std::vector<TraceRequest> trace = calm_trace({10}, 3, 64);
  const double last = trace.back().arrival_s;
  trace.insert(trace.end(), {{last, 9, 64, 1},
                             {last, 81, 64, 1},
                             {last, 10, 64, 2},
                             {last, 10, 63, 1},
                             {last, 10, 65, 1},
                             {last, 10, 0, 1}});
  const Route route = replayed(bundle, trace);
  EXPECT_EQ(route.simulation->requests, 9);
  EXPECT_EQ(route.simulation->replayed, 4);
  int64_t outside = 0;
  for (const auto& [why, count] : route.simulation->outside) outside += count;
  EXPECT_EQ(outside, 5);
  RouteRequest none;
  none.trace = TraceToReplay{"t.csv", {{0, 9, 64, 1}}, "", 40};
  EXPECT_THAT(judge_route(bundle.made.build(), none, nullptr).error().message,
              HasSubstr("expected a request within what was measured"));
  none.trace->model = "gpt2-25x";
  EXPECT_THAT(judge_route(bundle.made.build(), none, nullptr).error().message,
              HasSubstr("did you mean \"gpt2-25m\"?"));
}

TEST(Simulation, ShapesCompileOnceEachInTheTracesOrder) {
  RoutedBundle bundle = compiling_bundle(two_routed_arms(0.7), 500);
  const Route route = replayed(bundle, calm_trace({10, 30, 80}, 50));
  EXPECT_NEAR(strategy_of(route, "compiled").compilations, 3, 1e-9);
  EXPECT_EQ(strategy_of(route, "eager").compilations, 0);
  EXPECT_NEAR(strategy_of(route, "compiled").p50_ms->mean, 7, 0.1);
  EXPECT_GT(strategy_of(route, "compiled").p99_ms->mean, 100);
  EXPECT_GT(strategy_of(route, "compiled").regret->mean, 1)
      << "150 requests pay for 3 compilations";
  // Lengths in between are shapes of their own, unless they are padded.
  const Route many = replayed(bundle, calm_trace({10, 15, 20, 25, 30}, 20));
  EXPECT_NEAR(strategy_of(many, "compiled").compilations, 5, 1e-9);
  EXPECT_NEAR(strategy_of(many, "padded").compilations, 2, 1e-9);
}

TEST(Simulation, BetweenLengthsARequestCompilesAsTheNearerOnesRowsDo) {
  RoutedBundle bundle = compiling_bundle(two_routed_arms(0.7), 20);
  for (int64_t repetition = 1; repetition < 40; ++repetition) {
    bundle.made.compile(bundle.cell("fast", 80), repetition, 8);
  }
  const auto compilations = [&](int64_t length) {
    return strategy_of(replayed(bundle, calm_trace({length}, 50)), "compiled").compilations;
  };
  EXPECT_GT(compilations(70), 40);
  EXPECT_NEAR(compilations(40), 1, 1e-9) << "the first of its shape";
}

TEST(Simulation, IntervalsAreStretchedForFewProcesses) {
  EXPECT_EQ(stretch_of_units(1), 1) << "it has no interval";
  // sqrt(n / (n - 1)) t / z: t of 1, 4 and 7 degrees of freedom is 12.706, 2.7764 and 2.3646.
  EXPECT_NEAR(stretch_of_units(2), std::sqrt(2.0) * 12.706 / 1.95996, 1e-3);
  EXPECT_NEAR(stretch_of_units(5), std::sqrt(1.25) * 2.7764 / 1.95996, 1e-4);
  EXPECT_NEAR(stretch_of_units(8), std::sqrt(8.0 / 7) * 2.3646 / 1.95996, 1e-4);
  EXPECT_NEAR(stretch_of_units(100'000), 1, 1e-4);
}

TEST(Simulation, SymbolicShapesCompileOnce) {
  RoutedStudy study = two_routed_arms(0.7);
  study.dynamic = "true";
  RoutedBundle symbolic = compiling_bundle(study, 500);
  EXPECT_NEAR(
      strategy_of(replayed(symbolic, calm_trace({10, 15, 20}, 20)), "compiled").compilations, 1,
      1e-9);
  study.dynamic = "auto";
  RoutedBundle twice = compiling_bundle(study, 500);
  EXPECT_NEAR(strategy_of(replayed(twice, calm_trace({10, 15, 20}, 20)), "compiled").compilations,
              2, 1e-9);
}

TEST(Simulation, OneServerMakesRequestsWait) {
  RoutedBundle bundle(two_routed_arms(0.7));
  const std::vector<TraceRequest> burst(100, TraceRequest{0, 30, 0, 1});
  const Route route = replayed(bundle, burst);
  EXPECT_NEAR(strategy_of(route, "eager").p50_ms->mean, 505, 10);
  EXPECT_NEAR(strategy_of(route, "eager").per_s->mean, 100, 2);
  EXPECT_NEAR(strategy_of(route, "compiled").per_s->mean, 100 / 0.7, 3);
}

TEST(Simulation, RequestsThatNoArmMayServeAreLost) {
  RoutedBundle bundle(two_routed_arms(0.7));
  bundle.made.raw().parity[bundle.cell("fast", 30)]["passed"] = false;
  const Route route = replayed(bundle, calm_trace({10, 30, 80}, 20));
  EXPECT_EQ(strategy_of(route, "compiled").lost, 20);
  EXPECT_FALSE(strategy_of(route, "compiled").regret);
  EXPECT_EQ(strategy_of(route, "policy").lost, 0);
  EXPECT_EQ(strategy_of(route, "eager").lost, 0);
}

// The compiled arm loses every eighth row of 30 tokens.
RoutedBundle losing_bundle() {
  RoutedBundle bundle(two_routed_arms(0.7));
  for (int64_t repetition = 0; repetition < 40; repetition += 8) {
    bundle.made.lose(bundle.cell("fast", 30), repetition, RowStatus::kCrash, "SIGSEGV");
  }
  return bundle;
}

TEST(Simulation, AnArmThatLostRowsLosesAsManyRequestsAndThePolicyLeavesItAlone) {
  RoutedBundle bundle = losing_bundle();
  const Route route = replayed(bundle, calm_trace({10, 30, 80}, 200));
  EXPECT_NEAR(strategy_of(route, "compiled").lost, 200 / 8.0, 3);
  EXPECT_FALSE(strategy_of(route, "compiled").regret);
  EXPECT_NEAR(strategy_of(route, "compiled").p50_ms->mean, 7, 0.2);
  for (const char* name : {"policy", "eager"}) EXPECT_EQ(strategy_of(route, name).lost, 0) << name;
}

TEST(Simulation, AnArmThatIsBarredForMoreThanLostRowsServesNoRequest) {
  RoutedBundle bundle = losing_bundle();
  const std::vector<TraceRequest> trace = calm_trace({30}, 40);
  EXPECT_NEAR(strategy_of(replayed(bundle, trace), "compiled").lost, 40 / 8.0, 1);
  bundle.made.raw().parity[bundle.cell("fast", 30)]["passed"] = false;
  EXPECT_EQ(strategy_of(replayed(bundle, trace), "compiled").lost, 40);
}

TEST(Simulation, ALostRequestSendsTheRestToTheFallback) {
  RoutedBundle bundle = losing_bundle();
  const Route route = replayed(bundle, calm_trace({10, 30, 80}, 200));
  const SimulatedStrategy& guarded = strategy_of(route, "guarded");
  EXPECT_EQ(guarded.lost, 1) << "the one that fires the trigger";
  EXPECT_NEAR(guarded.p50_ms->mean, 10, 0.3);
  ASSERT_EQ(route.simulation->triggers.size(), 1u);
  const SimulatedTrigger& fired = route.simulation->triggers[0];
  EXPECT_EQ(fired.kind, TriggerKind::kLostRow);
  EXPECT_EQ(fired.strategy, "guarded");
  EXPECT_FALSE(fired.rule);
  EXPECT_EQ(fired.fallback, "eager");
  EXPECT_EQ(fired.fired, 40);
  EXPECT_GT(fired.diverted, 500);
}

TEST(Simulation, WhereNoRequestIsLostTheTriggerStaysQuiet) {
  RoutedBundle bundle = losing_bundle();
  const Route elsewhere = replayed(bundle, calm_trace({80}, 200));
  EXPECT_EQ(strategy_of(elsewhere, "guarded").lost, 0);
  EXPECT_NEAR(strategy_of(elsewhere, "guarded").p50_ms->mean, 7, 0.2);
  EXPECT_TRUE(elsewhere.simulation->triggers.empty());
  RoutedBundle sound(two_routed_arms(0.7));
  const Route route = replayed(sound, calm_trace({10, 30, 80}, 20));
  EXPECT_TRUE(std::ranges::none_of(route.simulation->strategies, [](const auto& strategy) {
    return strategy.name == "guarded";
  })) << "it would be the compiled arm throughout";
}

TEST(Simulation, TheSplitTakesTheCompiledArmForThePromptAlone) {
  RoutedStudy study = two_routed_arms(0.7);
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  RoutedBundle bundle(study);
  const Route route = replayed(bundle, calm_trace({10, 30}, 20, 64));
  EXPECT_NEAR(strategy_of(route, "split").p50_ms->mean, 17, 0.2);
  EXPECT_NEAR(strategy_of(route, "compiled").p50_ms->mean, 14, 0.2);
  RoutedBundle prompts(two_routed_arms(0.7));
  EXPECT_THAT(strategy_of(replayed(prompts, calm_trace({10}, 5)), "split").unavailable,
              HasSubstr("weren't both measured"));
}

TEST(Simulation, TheBatchStrategyCompilesFromTheBatchOnThatPays) {
  RoutedStudy study = two_routed_arms(0.7);
  study.batches = {1, 4};
  RoutedBundle bundle(study);
  const Route small = replayed(bundle, calm_trace({10}, 20, 0, 1));
  EXPECT_NEAR(strategy_of(small, "batch").p50_ms->mean, 10, 0.2);
  const Route large = replayed(bundle, calm_trace({10}, 20, 0, 4));
  EXPECT_NEAR(strategy_of(large, "batch").p50_ms->mean, 28, 0.5);
  RoutedBundle one(two_routed_arms(0.7));
  EXPECT_EQ(strategy_of(replayed(one, calm_trace({10}, 5)), "batch").unavailable,
            "one batch was measured");
  EXPECT_THAT(strategy_of(replayed(one, calm_trace({10}, 5)), "batch").takes,
              Not(HasSubstr("batch 0")));
  RoutedStudy slower = study;
  slower.arms[1].ms = [](int64_t) { return 12.0; };
  RoutedBundle never(slower);
  EXPECT_THAT(strategy_of(replayed(never, calm_trace({10}, 5)), "batch").unavailable,
              HasSubstr("isn't faster on every stratum"));
}

TEST(Simulation, WithoutAProvenCompilerTheCompiledStrategiesCantBeHad) {
  RoutedBundle bundle(two_routed_arms(0.7));
  for (const int64_t length : {10, 30, 80}) {
    bundle.made.evidence(bundle.cell("fast", length))["compiler_real"] = "label_only";
  }
  const Route route = replayed(bundle, calm_trace({10}, 5));
  for (const char* name : {"compiled", "batch", "padded", "split"}) {
    EXPECT_NE(strategy_of(route, name).unavailable, "") << name;
  }
  EXPECT_EQ(strategy_of(route, "policy").unavailable, "");
  EXPECT_NEAR(strategy_of(route, "policy").p50_ms->mean, 10, 0.1);
}

TEST(Simulation, WithoutASafeArmEagerAndTheSplitCantBeHad) {
  RoutedStudy study = two_routed_arms(0.7);
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  RoutedBundle bundle(study);
  const auto trace = calm_trace({10, 30}, 5, 64);
  for (const char* name : {"eager", "split"}) {
    EXPECT_EQ(strategy_of(replayed(bundle, trace), name).unavailable, "") << name;
  }
  for (const Phase phase : study.phases) {
    for (const int64_t length : study.lengths) {
      bundle.made.lose(bundle.cell("eager", length, phase), 7, RowStatus::kOom, "");
    }
  }
  const Route route = replayed(bundle, trace);
  for (const char* name : {"eager", "split"}) {
    EXPECT_EQ(strategy_of(route, name).unavailable, "no arm is safe") << name;
  }
  EXPECT_EQ(strategy_of(route, "compiled").lost, 0);
  EXPECT_EQ(strategy_of(route, "policy").lost, 10) << "a policy that can't fall back isn't safe";
}

TEST(Simulation, TheSplitNeedsAProvenCompilerForThePrompt) {
  RoutedStudy study = two_routed_arms(0.7);
  study.phases = {Phase::kPrefill, Phase::kKvDecode};
  RoutedBundle bundle(study);
  for (const int64_t length : study.lengths) {
    bundle.made.evidence(bundle.cell("fast", length))["compiler_real"] = "label_only";
  }
  const Route route = replayed(bundle, calm_trace({10, 30}, 5, 64));
  EXPECT_EQ(strategy_of(route, "split").unavailable, "no arm is proven compiled in prefill");
}

// The one trigger that fires in the replays of this policy; none: kLostRow.
TriggerKind fired_trigger(const Route& route) {
  if (route.simulation->triggers.empty()) return TriggerKind::kLostRow;
  EXPECT_EQ(route.simulation->triggers.size(), 1u);
  return route.simulation->triggers[0].kind;
}

TEST(Simulation, MoreGraphsThanWereMeasuredSendTheRestToTheFallback) {
  RoutedBundle bundle = compiling_bundle(two_routed_arms(0.7), 20);
  const Route calm = replayed(bundle, calm_trace({10, 30, 80}, 50));
  EXPECT_TRUE(calm.simulation->triggers.empty());
  const Route churn = replayed(bundle, calm_trace({10, 20, 30, 40, 50, 60, 70, 80}, 50));
  EXPECT_EQ(fired_trigger(churn), TriggerKind::kUniqueGraphs);
  EXPECT_EQ(churn.simulation->triggers[0].fired, 40);
  EXPECT_NEAR(churn.simulation->triggers[0].diverted, 396, 1e-9);
  EXPECT_NEAR(strategy_of(churn, "policy").p50_ms->mean, 10, 0.2);
  EXPECT_NEAR(strategy_of(churn, "compiled").p50_ms->mean, 7, 0.2);
}

TEST(Simulation, SlowRequestsSendTheRestToTheFallback) {
  RoutedStudy study = two_routed_arms(0.7);
  study.repetitions = 104;
  RoutedBundle bundle(study);
  Policy policy = bundle.route().policy;
  const auto trace = calm_trace({10, 30, 80}, 100);
  EXPECT_TRUE(replayed(bundle, trace, policy).simulation->triggers.empty());
  policy.rules[0].triggers.back().limit_ms = 6.9;
  const Route route = replayed(bundle, trace, policy);
  EXPECT_EQ(fired_trigger(route), TriggerKind::kSlowRequest);
  EXPECT_NEAR(strategy_of(route, "policy").p50_ms->mean, 10, 0.3);
}

TEST(Simulation, RecompilationsSendTheRestToTheFallback) {
  RoutedBundle bundle = compiling_bundle(two_routed_arms(0.7), 20);
  for (const int64_t length : {10, 30, 80}) {
    for (const int64_t repetition : {3, 17}) {
      bundle.made.compile(bundle.cell("fast", length), repetition, 8);
    }
  }
  Policy policy = bundle.route().policy;
  // Only the rate is looked at.
  std::erase_if(policy.rules[0].triggers, [](const PolicyTrigger& trigger) {
    return trigger.kind != TriggerKind::kRecompileAfterWarmup;
  });
  const auto trace = calm_trace({10, 30, 80}, 100);
  EXPECT_TRUE(replayed(bundle, trace, policy).simulation->triggers.empty())
      << "the rate that was measured is no alarm";
  policy.rules[0].triggers[0].allowed = 0;
  EXPECT_EQ(fired_trigger(replayed(bundle, trace, policy)), TriggerKind::kRecompileAfterWarmup);
}

TEST(Simulation, TheRecompileLimitFallsBackToEagerRowsAndFires) {
  RoutedStudy study = two_routed_arms(0.7);
  study.lengths = {10, 30, 80, 200};
  RoutedBundle bundle = compiling_bundle(study, 20);
  // On 200 tokens a process ran eager after its second graph: that length is barred, and the limit
  // is known for the arm.
  const std::string cell = bundle.cell("fast", 200);
  bundle.made.compile(cell, 2, 20);
  bundle.made.row(cell, 4).counts[Counter::kFallbacks] = 1;
  Policy policy = bundle.route().policy;
  ASSERT_EQ(policy.rules[0].arm, "fast");
  const auto with = [&](TriggerKind kind) {
    Policy part = policy;
    std::erase_if(part.rules[0].triggers,
                  [&](const PolicyTrigger& trigger) { return trigger.kind != kind; });
    return fired_trigger(replayed(bundle, calm_trace({10, 30, 80}, 20), part));
  };
  EXPECT_EQ(with(TriggerKind::kRecompileLimit), TriggerKind::kRecompileLimit);
  EXPECT_EQ(with(TriggerKind::kFallback), TriggerKind::kFallback);
  EXPECT_TRUE(replayed(bundle, calm_trace({10, 30}, 20), policy).simulation->triggers.empty());
}

TEST(Simulation, OfASeedIsAlwaysTheSame) {
  RoutedBundle bundle = compiling_bundle(two_routed_arms(0.7), 50);
  const auto json = [&](uint64_t seed) {
    RouteRequest request;
    request.analysis.seed = seed;
    request.trace = TraceToReplay{"t.csv", calm_trace({10, 30, 80}, 30), "", 40};
    return route_to_json(bundle.route(request))["simulation"].dump();
  };
  EXPECT_EQ(json(1), json(1));
  EXPECT_NE(json(1), json(2));
}

}  // namespace
}  // namespace assay
