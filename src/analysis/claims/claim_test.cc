// A claim's words, and the errors about words that make none.
#include "analysis/claims/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

SpeedClaim claim_of(const std::string& text) {
  const auto claim = parse_claim(text);
  EXPECT_TRUE(claim) << text << ": " << (claim ? "" : claim.error().message);
  return claim.value_or(SpeedClaim{});
}

std::string refusal(const std::string& text) {
  const auto claim = parse_claim(text);
  EXPECT_FALSE(claim) << text;
  return claim ? "" : claim.error().message;
}

TEST(Claim, NamesArmsRelationAndPhase) {
  const SpeedClaim claim = claim_of("compiled-static faster than eager-dynamic in kv_decode");
  EXPECT_EQ(claim.arm, "compiled-static");
  EXPECT_EQ(claim.relation, ClaimRelation::kFaster);
  EXPECT_EQ(claim.other, "eager-dynamic");
  EXPECT_EQ(claim.phase, Phase::kKvDecode);
  EXPECT_TRUE(claim.model.empty() && claim.scenario.empty() && !claim.batch && !claim.new_tokens);
}

TEST(Claim, MayBeNarrowed) {
  const SpeedClaim claim =
      claim_of("a is  equivalent to b of gpt2 at single_long new_tokens 64\tbatch 2 in e2e_kv");
  EXPECT_EQ(claim.relation, ClaimRelation::kEquivalent);
  EXPECT_EQ(claim.phase, Phase::kE2eKv);
  EXPECT_EQ(claim.model, "gpt2");
  EXPECT_EQ(claim.scenario, "single_long");
  EXPECT_EQ(claim.batch, 2);
  EXPECT_EQ(claim.new_tokens, 64);
  const Stratum stratum{Phase::kE2eKv, "gpt2", "single_long", 64, 2};
  EXPECT_TRUE(claim_covers(claim, stratum));
  Stratum other = stratum;
  other.phase = Phase::kPrefill;
  EXPECT_FALSE(claim_covers(claim, other));
  other = stratum;
  other.batch = 1;
  EXPECT_FALSE(claim_covers(claim, other));
  other = stratum;
  other.scenario = "single_short";
  EXPECT_FALSE(claim_covers(claim, other));
}

TEST(Claim, IsReadBackAsItIsWritten) {
  for (const char* text :
       {"a faster than b", "a slower than b in prefill", "a fastest in kv_decode of m at s",
        "a equivalent to b in e2e_kv of m at s batch 4 new_tokens 8"}) {
    EXPECT_EQ(claim_text(claim_of(text)), text);
  }
}

TEST(Claim, MayLackAPhase) {
  EXPECT_FALSE(claim_of("a faster than b").phase);
  EXPECT_TRUE(claim_of("a fastest").other.empty());
}

TEST(Claim, ErrorsNameTheWordAndTheNearestOne) {
  EXPECT_THAT(refusal("a fastr than b in prefill"), HasSubstr("did you mean \"faster\"?"));
  EXPECT_THAT(refusal("a faster b in prefill"), HasSubstr("expected \"than\" behind \"faster\""));
  EXPECT_THAT(refusal("a equivalent than b"), HasSubstr("expected \"to\""));
  EXPECT_THAT(refusal("a faster than b in kv_decod"), HasSubstr("did you mean \"kv_decode\"?"));
  EXPECT_THAT(refusal("a fastest inn prefill"), HasSubstr("did you mean \"in\"?"));
  EXPECT_THAT(refusal("faster than b in prefill"), HasSubstr("expected an arm before"));
  EXPECT_THAT(refusal("a faster than"), HasSubstr("expected an arm behind"));
  EXPECT_THAT(refusal("a faster than b in"), HasSubstr("expected a value behind \"in\""));
  EXPECT_THAT(refusal("a faster than b in prefill in prefill"), HasSubstr("twice"));
  EXPECT_THAT(refusal("a faster than b batch -1"), HasSubstr("expected a count"));
  EXPECT_THAT(refusal(""), HasSubstr("found \"\""));
  EXPECT_THAT(refusal(std::string(5000, 'a')), HasSubstr("at most 2000 bytes"));
}

TEST(Claim, NamesThatNoBundleHasAreRefused) {
  const ClaimNames names{{"eager", "compiled"}, {"gpt2"}, {"single_long"}};
  EXPECT_TRUE(check_claim_names(claim_of("compiled faster than eager of gpt2"), names));
  const auto said = [&](const char* text) {
    const Status status = check_claim_names(claim_of(text), names);
    return status ? "" : status.error().message;
  };
  EXPECT_THAT(said("compield faster than eager"), HasSubstr("did you mean \"compiled\"?"));
  EXPECT_THAT(said("compiled faster than eagre"), HasSubstr("did you mean \"eager\"?"));
  EXPECT_THAT(said("compiled faster than eager of gpt3"), HasSubstr("a model that was measured"));
  EXPECT_THAT(said("compiled faster than eager at single"), HasSubstr("single_long"));
  EXPECT_THAT(said("eager faster than eager"), HasSubstr("two arms"));
}

}  // namespace
}  // namespace assay
