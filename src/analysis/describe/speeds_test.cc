// Tokens over time: of prompts in prefill, of produced tokens in decoding, over the batch.
#include "analysis/describe/speeds.h"

#include <gtest/gtest.h>

#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

std::vector<Speed> speeds_of(SyntheticBundle& bundle) {
  const Bundle built = bundle.build();
  const auto samples = group_rows(built, {"eager", "static"});
  EXPECT_TRUE(samples);
  return speeds(*samples);
}

TEST(Speeds, CountPromptTokensInPrefillAndNewOnesInDecoding) {
  SyntheticBundle bundle(3);
  bundle.add({.arm = "eager", .prompt_tokens = 16, .mean_ms = 10, .noise = 0, .warmup = 1});
  const std::string decoded = bundle.add({.arm = "eager",
                                          .phase = Phase::kKvDecode,
                                          .prompt_tokens = 16,
                                          .mean_ms = 10,
                                          .noise = 0,
                                          .new_tokens = 64});
  bundle.evidence(decoded) = {{"read_bytes", {{"16", 40'000'000}}},
                              {"requested", {{"options", {{"device", "cuda:1"}}}}},
                              {"worker", {{"threads", 3}}}};
  for (Row& row : bundle.raw().rows) row.batch = 2;
  bundle.lose(decoded, 3, RowStatus::kCrash, "SIGSEGV");
  const auto all = speeds_of(bundle);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].tokens, 32);
  EXPECT_EQ(all[0].latencies_ms.size(), 30u) << "warm rows alone";
  EXPECT_NEAR(all[0].tokens_per_s.at(0), 3200, 1e-6);
  EXPECT_NEAR(all[0].sd_tokens_per_s.value(), 0, 1e-6);
  EXPECT_FALSE(all[0].bytes_per_s) << "a prefill isn't limited by what it reads";
  EXPECT_EQ(all[0].device, "");
  EXPECT_EQ(all[1].tokens, 128);
  EXPECT_EQ(all[1].prompt_tokens, 16);
  EXPECT_EQ(all[1].lost, 1);
  EXPECT_EQ(all[1].latencies_ms.size(), 29u);
  EXPECT_NEAR(all[1].bytes_per_s.value(), 4e9, 1);
  EXPECT_EQ(all[1].device, "cuda:1");
  EXPECT_EQ(all[1].threads, 3);
}

TEST(Speeds, PromptsOfSeveralLengthsHaveNoTokensInCommon) {
  SyntheticBundle bundle(3);
  const std::string id = bundle.add({.arm = "eager", .prompt_tokens = 16});
  bundle.set_length(id, 4, 24);
  const auto all = speeds_of(bundle);
  EXPECT_EQ(all[0].tokens, 0);
  EXPECT_TRUE(all[0].tokens_per_s.empty());
}

}  // namespace
}  // namespace assay
