#include "server/routed_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "server/policy_text.h"

namespace assay::server {
namespace {

using engine::Onward;
using engine::SlotPrompt;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Says how each of its calls was computed; each next token is the one before it and one.
class WatchedEngine final : public SlotEngine {
 public:
  struct Seen {
    std::vector<std::string> calls;
    int fails = 0;        // so many compiled calls from now on
    int eager_fails = 0;  // likewise
    bool broken = false;  // all logits
    bool loses = false;   // a call that fails loses its slots
    std::set<int64_t> lost = {}, without_compiler = {};
  };
  explicit WatchedEngine(Seen& seen) : seen_(seen) {}

  int64_t slots() const override { return 4; }
  int64_t capacity() const override { return 1000; }
  std::optional<int64_t> join(std::span<const int32_t>) override { return joined_++; }
  void leave(int64_t) override {}
  Result<int64_t> begin(int64_t, const TokenAsk&) override { return 0; }
  Status extend(std::span<const SlotPrompt> parts) override {
    std::string call = "extend";
    for (const auto& [slot, ids] : parts) call += fmt::format(" {}:{}", slot, ids.size());
    std::vector<int64_t> slots;
    for (const SlotPrompt& part : parts) slots.push_back(part.slot);
    ASSAY_CHECK(compute(std::move(call), slots));
    for (const auto& [slot, ids] : parts) {
      latest_[slot] = ids.back();
      fed_[slot] += std::ssize(ids);
    }
    return {};
  }
  int64_t fed(int64_t slot) const override {
    const auto found = fed_.find(slot);
    return found == fed_.end() ? 0 : found->second;
  }
  std::optional<int32_t> chosen(int64_t slot) const override { return latest_.at(slot) + 1; }
  Status run(std::span<const int64_t> slots, int64_t steps, bool,
             const engine::Batch::Sink& sink) override {
    std::string call = fmt::format("{} of", steps);
    for (const int64_t slot : slots) call += fmt::format(" {}", slot);
    ASSAY_CHECK(compute(std::move(call), slots));
    for (const int64_t slot : slots) (void)sink(slot, ++latest_[slot]);
    return {};
  }
  std::span<const float> logits(int64_t) const override { return {}; }
  bool ends_text(int32_t) const override { return false; }
  bool is_broken(int64_t) const override { return seen_.broken; }
  void use_compiled(bool compiled) override { compiled_ = compiled; }
  bool compiles(int64_t slot) const override { return !seen_.without_compiler.contains(slot); }
  bool is_lost(int64_t slot) const override { return seen_.lost.contains(slot); }
  Status restore(int64_t slot, int64_t) override {
    seen_.calls.push_back(fmt::format("restore {}", slot));
    seen_.lost.erase(slot);
    return {};
  }

 private:
  Status compute(std::string call, std::span<const int64_t> slots) {
    for (const int64_t slot : slots) EXPECT_FALSE(is_lost(slot));
    seen_.calls.push_back(std::move(call) + (compiled_ ? ", compiled" : ", eager"));
    int& fails = compiled_ ? seen_.fails : seen_.eager_fails;
    if (fails == 0) return {};
    --fails;
    if (seen_.loses) seen_.lost.insert(slots.begin(), slots.end());
    return environment_error("expected no failure, found one");
  }

  Seen& seen_;
  int64_t joined_ = 0;
  bool compiled_ = true;
  std::map<int64_t, int32_t> latest_ = {};
  std::map<int64_t, int64_t> fed_ = {};
};

class RoutedEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto policy = parse_policy(test::kPolicyText, "policy.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    routes_ = PolicyRoutes::make(*std::move(policy), "m", "fp32", [&](const RouteSwitch& one) {
      switches_.push_back(fmt::format("{} {}", one.rule, trigger_name(one.trigger)));
    });
    ASSERT_TRUE(routes_);
    engine_ = make_routed_engine(std::make_unique<WatchedEngine>(seen_), *routes_);
  }

  // A slot with a prompt of this length, which is in.
  int64_t prompted(int64_t length, int64_t new_tokens) {
    const int64_t slot = begun(length, new_tokens);
    const std::vector<int32_t> ids(static_cast<size_t>(length), 7);
    const SlotPrompt part{slot, ids};
    EXPECT_TRUE(engine_->extend({&part, 1}));
    return slot;
  }
  int64_t begun(int64_t length, int64_t new_tokens) {
    const int64_t slot = *engine_->join({});
    const TokenAsk wanted{.prompt = std::vector<int32_t>(static_cast<size_t>(length), 7),
                          .most_tokens = new_tokens};
    EXPECT_TRUE(engine_->begin(slot, wanted));
    return slot;
  }
  Status run(std::vector<int64_t> slots, int64_t steps) {
    return engine_->run(slots, steps, false, [](int64_t, int32_t) { return Onward::kGo; });
  }

  WatchedEngine::Seen seen_;
  Result<PolicyRoutes> routes_ = bad_input("none yet");
  std::vector<std::string> switches_;
  std::unique_ptr<SlotEngine> engine_;
};

TEST_F(RoutedEngineTest, EachPhaseIsComputedAsItsRuleSays) {
  const int64_t longer = prompted(200, 8);
  const int64_t shorter = prompted(50, 9);
  EXPECT_TRUE(run({longer}, 3));
  EXPECT_TRUE(run({shorter}, 3));
  EXPECT_THAT(seen_.calls, ElementsAre("extend 0:200, compiled", "extend 1:50, eager",
                                       "3 of 0, compiled", "3 of 1, eager"));
}

TEST_F(RoutedEngineTest, WhatIsComputedTogetherIsSplitByItsWay) {
  const int64_t one = begun(200, 8), other = begun(50, 9);
  const std::vector<int32_t> ids(50, 7);
  // A batch of two prompts has no rule.
  EXPECT_TRUE(engine_->extend(std::vector<SlotPrompt>{{one, ids}, {other, ids}}));
  // Two that decode have one for 8 new tokens alone.
  EXPECT_TRUE(run({one, other}, 5));
  EXPECT_THAT(seen_.calls,
              ElementsAre("extend 0:50 1:50, eager", "1 of 0, compiled", "1 of 1, eager"));
}

TEST_F(RoutedEngineTest, ACompiledCallThatFailsIsMadeEagerAndFiresTheTrigger) {
  const int64_t slot = prompted(200, 8);
  seen_ = {.calls = {}, .fails = 1};
  EXPECT_TRUE(run({slot}, 3));
  EXPECT_TRUE(run({slot}, 3));
  EXPECT_THAT(seen_.calls, ElementsAre("3 of 0, compiled", "1 of 0, eager", "3 of 0, eager"));
  EXPECT_TRUE(switches_.empty()) << "the phase hasn't ended";
  engine_->ended(slot);
  EXPECT_THAT(switches_, ElementsAre("2 fallback"));
  EXPECT_TRUE(run({prompted(200, 8)}, 3));
  EXPECT_EQ(seen_.calls.back(), "3 of 1, eager");
}

TEST_F(RoutedEngineTest, ARequestThatEndsWithAStepIsCountedWithinIt) {
  const int64_t slot = prompted(200, 8);
  seen_ = {.calls = {}, .fails = 1};
  std::vector<std::string> within;
  const Status done = engine_->run({&slot, 1}, 3, false, [&](int64_t of, int32_t) {
    engine_->ended(of);
    within = switches_;
    return Onward::kStop;
  });
  EXPECT_TRUE(done);
  EXPECT_THAT(within, ElementsAre("2 fallback"));
  engine_->leave(slot);
  EXPECT_THAT(switches_, ElementsAre("2 fallback")) << "once";
}

TEST_F(RoutedEngineTest, APromptWithoutFiniteLogitsIsLost) {
  seen_.broken = true;
  engine_->ended(prompted(200, 8));
  EXPECT_THAT(switches_, ElementsAre("1 lost_row"));
}

TEST_F(RoutedEngineTest, AStepThatSucceedsAtLastIsntLost) {
  const int64_t slot = prompted(200, 8);
  seen_ = {.calls = {}, .fails = 1, .eager_fails = 1};
  EXPECT_FALSE(run({slot}, 3));
  EXPECT_TRUE(run({slot}, 1)) << "as the scheduler asks for each slot alone";
  engine_->ended(slot);
  EXPECT_THAT(switches_, ElementsAre("2 fallback"));
}

TEST_F(RoutedEngineTest, APromptThatFailsIsComputedAnewBeforeAnythingIsLost) {
  const int64_t slot = begun(200, 8);
  seen_.fails = 1;
  const std::vector<int32_t> ids(200, 7);
  const SlotPrompt part{slot, ids};
  EXPECT_TRUE(engine_->extend({&part, 1}));
  EXPECT_THAT(seen_.calls, ElementsAre("extend 0:200, compiled", "extend 0:200, eager"));
  EXPECT_THAT(switches_, ElementsAre("1 fallback"));
}

TEST_F(RoutedEngineTest, APartThatIsInIsNotPutInAgainWhereTheOtherWayFailed) {
  const std::vector<int32_t> ids(200, 7);
  const auto part = [&](int64_t slot, size_t first, size_t count) {
    return SlotPrompt{slot, std::span(ids).subspan(first, count)};
  };
  const int64_t longer = begun(200, 8), shorter = begun(50, 9);
  const SlotPrompt starts[] = {part(longer, 0, 100), part(shorter, 0, 20)};
  for (const SlotPrompt& start : starts) ASSERT_TRUE(engine_->extend({&start, 1}));
  seen_ = {.calls = {}, .fails = 0, .eager_fails = 1};
  const std::vector<SlotPrompt> rest = {part(longer, 100, 100), part(shorter, 20, 30)};
  EXPECT_FALSE(engine_->extend(rest));
  EXPECT_EQ(engine_->fed(longer), 200);
  EXPECT_EQ(engine_->fed(shorter), 20);
  EXPECT_TRUE(engine_->extend({&rest[1], 1}));
  EXPECT_THAT(seen_.calls,
              ElementsAre("extend 0:100, compiled", "extend 1:30, eager", "extend 1:30, eager"));
}

TEST_F(RoutedEngineTest, ACallThatLostItsSlotsIsTheCallersToMakeAnewOperatorByOperator) {
  const int64_t slot = prompted(200, 8);
  seen_ = {.calls = {}, .fails = 1, .loses = true};
  EXPECT_FALSE(run({slot}, 3));
  EXPECT_TRUE(engine_->is_lost(slot));
  EXPECT_TRUE(engine_->restore(slot, 100));
  EXPECT_TRUE(run({slot}, 3));
  EXPECT_THAT(seen_.calls, ElementsAre("3 of 0, compiled", "restore 0", "3 of 0, eager"));
  engine_->ended(slot);
  EXPECT_THAT(switches_, ElementsAre("2 fallback")) << "and isn't lost";
}

TEST_F(RoutedEngineTest, WhatStandsInIsNoEventOfTheRule) {
  seen_.without_compiler = {0};
  const int64_t slot = prompted(200, 8);
  EXPECT_TRUE(run({slot}, 3));
  engine_->ended(slot);
  EXPECT_THAT(seen_.calls, ElementsAre("extend 0:200, eager", "3 of 0, eager"));
  EXPECT_TRUE(switches_.empty());
  const std::string metrics = routes_->metrics();
  EXPECT_THAT(metrics, HasSubstr("{rule=\"2\",phase=\"kv_decode\",served=\"restart\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("{rule=\"2\",phase=\"kv_decode\",served=\"rule\"} 0\n"));
  EXPECT_TRUE(run({prompted(200, 8)}, 3));
  EXPECT_EQ(seen_.calls.back(), "3 of 1, compiled");
}

TEST_F(RoutedEngineTest, WhatStandsInAndIsLostIsTold) {
  seen_.without_compiler = {0};
  seen_.broken = true;
  engine_->ended(prompted(200, 8));
  EXPECT_THAT(switches_, ElementsAre("1 lost_row"));
}

TEST_F(RoutedEngineTest, ARequestThatNoArmIsSafeForIsRefused) {
  const int64_t slot = *engine_->join({});
  const auto refused = engine_->begin(slot, {.prompt = {1, 2}, .most_tokens = 13});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "policy: no arm is safe for kv_decode of 2 prompt tokens and 13 new tokens");
}

}  // namespace
}  // namespace assay::server
