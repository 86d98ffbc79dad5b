// Bytes over time over the limit, whoever measured the limit; and when there is no share.
#include "analysis/describe/read_share.h"

#include <gtest/gtest.h>

#include "analysis/rows/samples.h"
#include "analysis/rows/synthetic_bundle.h"

namespace assay {
namespace {

// A cell of 10 ms a repetition over prompts of 16 tokens.
std::string add(SyntheticBundle& bundle, const std::string& arm, Phase phase = Phase::kKvDecode) {
  const std::string id = bundle.add(
      {.arm = arm, .phase = phase, .prompt_tokens = 16, .mean_ms = 10, .noise = 0, .warmup = 1});
  bundle.evidence(id) = {{"read_bytes", {{"16", 40'000'000}}}, {"read_limit", nullptr}};
  return id;
}

std::vector<ReadShare> shares_of(SyntheticBundle& bundle) {
  const Bundle built = bundle.build();
  const auto samples = group_rows(built, {"eager", "static"});
  EXPECT_TRUE(samples);
  return read_shares(*samples);
}

TEST(ReadShare, IsOfTheLimitThatSomebodyMeasured) {
  SyntheticBundle bundle(3);
  const std::string native = add(bundle, "eager");
  bundle.evidence(native)["read_limit"] = {{"bytes_per_s", 16e9}};
  const std::string torch = add(bundle, "static");
  bundle.evidence(torch)["reported"]["read_bandwidth"] = {{"bytes_per_s", 8e9}};
  const auto shares = shares_of(bundle);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[0].bytes_per_s, 4e9, 1);
  EXPECT_NEAR(shares[0].share(), 0.25, 1e-9) << "cold rows don't count";
  EXPECT_NEAR(shares[1].share(), 0.5, 1e-9);
  EXPECT_EQ(shares[1].limit_bytes_per_s, 8e9);
}

TEST(ReadShare, IsAbsentWithoutBytesWithoutALimitAndOfAPrefill) {
  SyntheticBundle bundle(3);
  const std::string no_limit = add(bundle, "eager");
  bundle.evidence(no_limit)["reported"]["read_bandwidth"] = {{"error", "OutOfMemoryError: "}};
  const std::string no_bytes = add(bundle, "static");
  bundle.evidence(no_bytes) = {{"read_limit", {{"bytes_per_s", 16e9}}}, {"read_bytes", {{"8", 1}}}};
  const std::string prefill = add(bundle, "eager", Phase::kPrefill);
  bundle.evidence(prefill)["read_limit"] = {{"bytes_per_s", 16e9}};
  EXPECT_TRUE(shares_of(bundle).empty());
}

// On a GPU prompts have both shares; operations and the matrix limit are the stratum's.
TEST(ReadShare, OfAPromptOnAGpuIsOfBothLimits) {
  SyntheticBundle bundle(3);
  const std::string native = add(bundle, "eager", Phase::kPrefill);
  const std::string other = add(bundle, "static", Phase::kPrefill);
  for (const std::string& cell : {native, other}) {
    bundle.evidence(cell)["requested"] = {{"options", {{"device", "cuda:0"}}}};
    bundle.evidence(cell)["read_limit"] = {{"bytes_per_s", 16e9}};
  }
  bundle.evidence(native)["operations"] = {{"16", 5'000'000'000'000}};
  bundle.evidence(native)["matrix_limit"] = 8e14;
  const auto shares = shares_of(bundle);
  ASSERT_EQ(shares.size(), 2u);
  for (const ReadShare& share : shares) {
    EXPECT_NEAR(share.share(), 0.25, 1e-9);
    EXPECT_NEAR(share.operations_per_s.value_or(0), 5e14, 1e3) << share.arm;
    EXPECT_NEAR(share.operations_share().value_or(0), 0.625, 1e-9) << share.arm;
  }
  bundle.row(other, 0).dtype = "bf16";  // another type's limit says nothing of it
  const auto of_types = shares_of(bundle);
  EXPECT_TRUE(of_types[1].operations_per_s);
  EXPECT_FALSE(of_types[1].limit_operations_per_s);
}

}  // namespace
}  // namespace assay
