// policy.yaml: written, read back, refused.
#include "routing/policy.h"

#include <gmock/gmock.h>

#include "routing/triggers.h"

namespace assay {
namespace {

using testing::HasSubstr;

Policy whole_policy() {
  Policy policy;
  policy.study = "a \"study\": {with} #signs\nand \x1b[31m lines";
  policy.measured_at = "2026-11-26T00:29:42Z";
  policy.plan_sha256 = std::string(64, 'a');
  policy.identity = {{"device", "CPU x 2"}, {"arms.eager.cache", "null"}, {"arms.e: x", ""}};
  policy.fallback = "eager";
  PolicyRule rule;
  rule.model = "gpt2-25m";
  rule.phase = Phase::kKvDecode;
  rule.batch = 4;
  rule.new_tokens = 64;
  rule.shortest = 10;
  rule.longest = 80;
  rule.arm = "fast";
  rule.fallback = "eager";
  rule.triggers = {{TriggerKind::kLostRow, 0, 0, {}, "none in 30 rows"},
                   {TriggerKind::kSlowRequest, 3, 100, 12.5, "the slowest"}};
  rule.evidence = {{.scenario = "prompt_10",
                    .new_tokens = 64,
                    .shortest = 10,
                    .longest = 10,
                    .verdict = "best",
                    .ratio = 0.7,
                    .interval = stats::Interval{0.6, 0.8},
                    .rows = 30,
                    .mean_ms = 7.125,
                    .p99_ms = 9.5,
                    .fallback_mean_ms = 10,
                    .fallback_p99_ms = 11.0 / 3,
                    .compile_ms = 812},
                   {"prompt_80", 128, 80, 80, "ahead", 0.9, {}, stats::Interval{0.8, 0.95}, 30}};
  policy.rules.push_back(rule);
  rule.new_tokens = 65;
  rule.new_tokens_span = 62;
  policy.rules.push_back(rule);
  rule.shortest = 81;
  rule.longest = 90;
  rule.because = "80 take fast and 91 take static";
  policy.rules.push_back(rule);
  rule.shortest = 91;
  rule.longest = 100;
  rule.arm = rule.fallback = "";
  rule.abstains = true;
  rule.because = "no arm is safe: \"eager\" crashed";
  rule.triggers.clear();
  rule.evidence.clear();
  policy.rules.push_back(rule);
  policy.not_measured = {"all of e2e_kv", "[odd]"};
  return policy;
}

TEST(PolicyFile, ReadsBackWhatItWrote) {
  const Policy policy = whole_policy();
  const auto read = parse_policy(policy_to_yaml(policy), "policy.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->identity, policy.identity);
  EXPECT_EQ(read->rules, policy.rules);
  EXPECT_TRUE(*read == policy) << policy_to_yaml(*read);
}

std::string refusal_of(std::string_view from, std::string_view to) {
  std::string text = policy_to_yaml(whole_policy());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto read = parse_policy(text, "policy.yaml");
  EXPECT_FALSE(read) << text;
  if (read) return "";
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  return read.error().message;
}

TEST(PolicyFile, HostileTextsGiveOneLine) {
  EXPECT_THAT(refusal_of("policy: 2", "policy: 3"), HasSubstr("expected an integer from 1 to 2"));
  EXPECT_THAT(refusal_of("policy: 2\n", ""), HasSubstr("expected the key \"policy\""));
  EXPECT_THAT(refusal_of("policy: 2\n", "policy: 2\nrule: 3\n"), HasSubstr("unknown key \"rule\""));
  EXPECT_THAT(refusal_of("kv_decode", "decode"), HasSubstr("expected one of prefill"));
  EXPECT_THAT(refusal_of("[10, 80]", "[80, 10]"), HasSubstr("expected an integer from 80"));
  EXPECT_THAT(refusal_of("[10, 80]", "[10]"), HasSubstr("two numbers of tokens"));
  EXPECT_THAT(refusal_of("[91, 100]", "[90, 100]"), HasSubstr("cover each request once"));
  EXPECT_THAT(refusal_of("    because:", "    abstains: \"too\"\n    because:"),
              HasSubstr("a reason or an abstention"));
  EXPECT_THAT(refusal_of("new_tokens: [65, 127]", "new_tokens: [127, 65]"),
              HasSubstr("expected an integer from 127"));
  EXPECT_THAT(refusal_of("new_tokens: [65, 127]", "new_tokens: [64, 127]"),
              HasSubstr("cover each request once"));
  EXPECT_THAT(refusal_of("batch: 4", "batch: 0"), HasSubstr("expected an integer from 1"));
  EXPECT_THAT(refusal_of("on: lost_row", "on: lost_rows"), HasSubstr("did you mean \"lost_row\"?"));
  EXPECT_THAT(refusal_of(", limit_ms: 12.5", ""), HasSubstr("limit_ms"));
  EXPECT_THAT(refusal_of("limit_ms: 12.5", "limit_ms: .nan"), HasSubstr("limit_ms"));
  EXPECT_THAT(refusal_of("allowed: 3", "allowed: -3"), HasSubstr("allowed"));
  EXPECT_THAT(refusal_of("    fallback: \"eager\"", "    fallback: null"),
              HasSubstr("a fallback beside triggers"));
  EXPECT_THAT(refusal_of(", p99_ms: 9.5", ", p99_ms: -1"), HasSubstr("p99_ms"));
  EXPECT_THAT(refusal_of("verdict: best", "verdict: better"),
              HasSubstr("expected one of best, no_difference"));
  EXPECT_THAT(refusal_of("interval: [0.6, 0.8]", "interval: [0.9, 0.8]"),
              HasSubstr("its lower end first"));
  EXPECT_THAT(refusal_of("study: ", "study: &a "), HasSubstr("anchor"));
  EXPECT_THAT(refusal_of("rules:\n", "rules: 3\nmore:\n"), HasSubstr("policy.yaml line"));
  for (const char* text : {"", "[", "policy", "{policy: 1, identity: [], rules: []}", "\xff\xfe"}) {
    EXPECT_FALSE(parse_policy(text, "policy.yaml")) << text;
  }
}

TEST(PolicyFile, TheVersionBeforeIsReadToo) {
  EXPECT_TRUE(
      parse_policy("policy: 1\nidentity: []\nrules:\n- {model: m, phase: prefill, "
                   "prompt_tokens: [1, 2], arm: eager, evidence: [{scenario: s, "
                   "prompt_tokens: [1, 2], verdict: best, rows: 30}]}\n",
                   "policy.yaml"));
}

TEST(PolicyFile, OnlyWhatCanBeReadBackIsWritten) {
  const auto text = checked_policy_text(whole_policy());
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(text->starts_with(kPolicyHeading));
  EXPECT_EQ(parse_policy(*text, "policy")->study, whole_policy().study);
  EXPECT_THAT(checked_policy_text(Policy{}).error().message, HasSubstr("can't be read back"));
}

TEST(Thresholds, AreThoseOfExceedancesOfExchangeableRows) {
  // Worked by hand: one row and one request; the request is the larger one in half of the cases.
  EXPECT_EQ(allowed_events(0, 1, 1), 1);
  // 999 rows and one request: one chance in 1000 that the request is the largest.
  EXPECT_EQ(allowed_events(0, 999, 1), 0);
  EXPECT_EQ(allowed_events(0, 998, 1), 1);
  // 30 rows, 100 requests: P(K > k) is the product of (100 - i) / (130 - i), i from 0 to k.
  double above = 1;
  int64_t k = -1;
  while (above > kFalseAlarm) {
    ++k;
    above *= static_cast<double>(100 - k) / static_cast<double>(130 - k);
  }
  EXPECT_EQ(allowed_events(0, 30, 100), k);
  EXPECT_GT(allowed_events(3, 30, 100), k);
  EXPECT_LT(allowed_events(0, 600, 100), 5);
  EXPECT_EQ(allowed_events(30, 30, 100), 100);
  EXPECT_EQ(allowed_events(0, 0, 100), 100);
}

}  // namespace
}  // namespace assay
