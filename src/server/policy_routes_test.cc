#include "server/policy_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/policy_text.h"

namespace assay::server {
namespace {

using ::testing::HasSubstr;

using test::kPolicyText;

class PolicyRoutesTest : public ::testing::Test {
 protected:
  Result<PolicyRoutes> make(std::string_view text, const std::string& model = "m",
                            std::string_view dtype = "fp32") {
    ASSAY_TRY(Policy policy, parse_policy(text, "policy.yaml"));
    return PolicyRoutes::make(std::move(policy), model, dtype,
                              [&](const RouteSwitch& one) { switches_.push_back(one); });
  }
  static std::string replaced(std::string_view before, std::string_view after) {
    std::string text(kPolicyText);
    const size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << before;
    return text.replace(at, before.size(), after);
  }
  std::vector<RouteSwitch> switches_;
};

TEST_F(PolicyRoutesTest, ARuleServesWhatItCoversAndTheFallbackTheRest) {
  const auto routes = make(kPolicyText);
  ASSERT_TRUE(routes) << routes.error().message;
  EXPECT_TRUE(routes->choose(Phase::kPrefill, 1, 100, 0)->compiled);
  EXPECT_TRUE(routes->choose(Phase::kPrefill, 1, 400, 0)->compiled);
  for (const auto& [batch, prompt] : {std::pair{1, 99}, {1, 401}, {2, 200}}) {
    const auto other = routes->choose(Phase::kPrefill, batch, prompt, 0);
    ASSERT_TRUE(other);
    EXPECT_FALSE(other->compiled);
    EXPECT_FALSE(other->rule);
  }
  EXPECT_FALSE(routes->choose(Phase::kKvDecode, 1, 10, 13)) << "no arm is safe";
  EXPECT_TRUE(routes->choose(Phase::kKvDecode, 1, 10, 14));
}

TEST_F(PolicyRoutesTest, ATriggerThatFiresSendsLaterRequestsToTheFallbackOnce) {
  auto routes = make(kPolicyText);
  ASSERT_TRUE(routes);
  const auto choice = *routes->choose(Phase::kPrefill, 1, 200, 0);
  routes->ended(choice, {.ms = 5001});
  for (int i = 0; i < 3; ++i) routes->ended(choice, {.ms = 5000});
  routes->ended(choice, {.ms = 5001});  // the next window's first
  EXPECT_TRUE(switches_.empty());
  EXPECT_TRUE(routes->choose(Phase::kPrefill, 1, 200, 0)->compiled);
  routes->ended(choice, {.ms = 5001});
  routes->ended(choice, {.lost = true});
  ASSERT_EQ(switches_.size(), 1u);
  EXPECT_EQ(switches_[0].trigger, TriggerKind::kSlowRequest);
  EXPECT_EQ(switches_[0].requests, 6);
  EXPECT_EQ(switches_[0].rule, 1u);
  EXPECT_EQ(switches_[0].from, "fast");
  EXPECT_EQ(switches_[0].to, "slow");
  EXPECT_EQ(switches_[0].shape, "prefill, batch 1, prompts of 100-400");
  EXPECT_FALSE(routes->choose(Phase::kPrefill, 1, 200, 0)->compiled);
  const std::string metrics = routes->metrics();
  for (const char* line :
       {"assay_route_requests_total{rule=\"1\",phase=\"prefill\",served=\"rule\"} 6\n",
        "assay_route_requests_total{rule=\"1\",phase=\"prefill\",served=\"fallback\"} 1\n",
        "assay_route_switched{rule=\"1\",trigger=\"p99_ms\"} 1\n",
        "assay_route_switched{rule=\"1\",trigger=\"lost_row\"} 0\n"}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST_F(PolicyRoutesTest, ArmsThatAServerCannotBeAreRefusedByName) {
  const auto error_of = [](const Result<PolicyRoutes>& result) {
    return result ? std::string("none") : result.error().message;
  };
  EXPECT_EQ(
      error_of(make(replaced("fast.backend\", value: \"native", "fast.backend\", value: \"torch"))),
      R"(policy: arm "fast": backend: expected native, found "torch")");
  EXPECT_EQ(
      error_of(make(replaced("slow.cache\", value: \"static", "slow.cache\", value: \"dynamic"))),
      R"(policy: arm "slow": cache: expected static, found "dynamic")");
  EXPECT_EQ(error_of(make(kPolicyText, "m", "bf16")),
            R"(policy: arm "fast": dtype: expected bf16, found "fp32")");
  EXPECT_EQ(error_of(make(replaced("{axis: \"arms.fast.compile_mode\", value: \"compiled\"}",
                                   "{axis: \"device\", value: \"x\"}"))),
            R"(policy: arm "fast": compile_mode: expected eager or compiled, found nothing)");
  EXPECT_EQ(error_of(make(kPolicyText, "other")),
            R"(policy: expected rules about prefill or kv_decode of "other", found none)");
}

}  // namespace
}  // namespace assay::server
