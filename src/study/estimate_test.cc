// The time estimate: what it counts, and when it has no answer.
#include "study/estimate.h"

#include <gtest/gtest.h>

#include <fstream>

namespace assay {
namespace {

Study one_cell(std::string phase, int64_t prompt, int64_t new_tokens) {
  Study study;
  study.models = {{.name = "m", .path = "m", .dtype = ""}};
  study.arms = {
      {.name = "a", .backend = "native", .mode = "eager", .cache = "dynamic", .dynamic = ""}};
  study.phases = {std::move(phase)};
  study.scenarios = {{.name = "s", .prompt_tokens = {prompt}, .text = ""}};
  study.token_lengths = {new_tokens};
  study.batch = {1};
  study.repetitions = 4;
  study.warmup = 1;
  return study;
}

double seconds(const Study& study) {
  return plan_seconds(study, make_plan(study), {1e9}, 1e10).value_or(-1);
}

TEST(Estimate, CountsReadsOfTheWeights) {
  EXPECT_DOUBLE_EQ(seconds(one_cell("prefill", 10, 8)), 5 * 0.1);
  EXPECT_DOUBLE_EQ(seconds(one_cell("prefill", 160, 8)), 5 * 1.0);
  EXPECT_DOUBLE_EQ(seconds(one_cell("kv_decode", 10, 8)), 5 * 0.8) << "the untimed prefill too";
  EXPECT_DOUBLE_EQ(seconds(one_cell("e2e_kv", 160, 1)), 5 * 1.0) << "prefill gives the first token";
}

TEST(Estimate, AbsentWhereAModelIsntKnown) {
  const Study study = one_cell("prefill", 10, 8);
  EXPECT_FALSE(plan_seconds(study, make_plan(study), {std::nullopt}, 1e10));
}

TEST(Estimate, WeightBytesAreThoseOfTheSafetensors) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "assay_estimate_test";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(weight_bytes(folder));
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(weight_bytes(folder)) << "no weights";
  std::ofstream(folder / "a.safetensors") << std::string(100, 'x');
  std::ofstream(folder / "b.safetensors") << std::string(23, 'x');
  std::ofstream(folder / "tokenizer.json") << "{}";
  EXPECT_EQ(weight_bytes(folder).value_or(0), 123);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay
