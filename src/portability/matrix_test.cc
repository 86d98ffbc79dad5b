// The headline matrix, and the whole judgement as JSON.
#include "portability/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "portability/regimes_fixture.h"

namespace assay {
namespace {

TEST(HeadlineMatrix, AModelsClassIsItsNameWithoutItsSize) {
  EXPECT_EQ(model_class("gpt2-25m"), "gpt2");
  EXPECT_EQ(model_class("models/gpt2-100m"), "gpt2");
  EXPECT_EQ(model_class("qwen2.5-0.5b"), "qwen2.5");
  EXPECT_EQ(model_class("Qwen2.5-0.5B-Instruct"), "Qwen2.5-Instruct");
  EXPECT_EQ(model_class("tiny-llama"), "tiny-llama");
  EXPECT_EQ(model_class("7b"), "7b");
  EXPECT_EQ(model_class(""), "");
}

TEST(HeadlineMatrix, GainIsOfPrefillAndCrashesAreOfDecode) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  const Portability prefill = judged({a, two_arm_regime("b", 10, 9)});
  ASSERT_EQ(prefill.matrix.size(), 2u);
  EXPECT_NEAR(*prefill.matrix[0].prefill_gain, 0.2, 0.02);
  EXPECT_NEAR(*prefill.matrix[1].prefill_gain, 0.1, 0.02);
  EXPECT_TRUE(prefill.matrix[0].gain_interval->contains(0.2));
  EXPECT_EQ(prefill.matrix[0].prefill_strata, 2);
  EXPECT_FALSE(prefill.matrix[0].decode_crashes);
  a.phase = Phase::kKvDecode;
  MadeRegime b = a;
  b.folder = "b";
  b.arms[1].lose = 4;
  const Portability decode = judged({a, b});
  ASSERT_EQ(decode.matrix.size(), 2u);
  EXPECT_FALSE(decode.matrix[0].prefill_gain);
  EXPECT_EQ(decode.matrix[0].decode_crashes->lost, 0);
  EXPECT_EQ(decode.matrix[1].decode_crashes->lost, 8);
  EXPECT_EQ(decode.matrix[1].decode_crashes->attempted, 80);
}

TEST(HeadlineMatrix, ThePhasesTogetherAreNeither) {
  MadeRegime a = two_arm_regime("a", 10, 8);
  a.phase = Phase::kE2eKv;
  MadeRegime b = a;
  b.folder = "b";
  b.arms[1].lose = 4;
  EXPECT_TRUE(judged({a, b}).matrix.empty());
}

// Processes that served both prompt lengths count together, in a gain as in a claim.
TEST(HeadlineMatrix, AGainIsAsSureAsTheClaimOverItsStrata) {
  const Portability of = judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 8)});
  const SpreadRatio& claimed = *of.claims.at(0).regimes[0].shown;
  EXPECT_EQ(of.matrix[0].prefill_strata, 2);
  EXPECT_DOUBLE_EQ(*of.matrix[0].prefill_gain, 1 - claimed.ratio);
  EXPECT_DOUBLE_EQ(of.matrix[0].gain_interval->low, 1 - claimed.interval->high);
  EXPECT_DOUBLE_EQ(of.matrix[0].gain_interval->high, 1 - claimed.interval->low);
}

TEST(PortabilityJson, HasEverythingUnderOneVersion) {
  const Portability of = judged({two_arm_regime("a", 10, 8), two_arm_regime("b", 10, 12)});
  const Json json = portability_to_json(of);
  EXPECT_EQ(json["schema_version"], kPortabilitySchemaVersion);
  EXPECT_EQ(json["regimes"][1]["counts"]["direction_flip"], 2);
  EXPECT_EQ(json["verdicts"].size(), of.verdicts.size());
  EXPECT_EQ(json["claims"][0]["verdict"], "not_portable");
  EXPECT_EQ(json["claims"][0]["robustness"].size(), 6u);
  EXPECT_FALSE(json["failures"].empty());
}

}  // namespace
}  // namespace assay
