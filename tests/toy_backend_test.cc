// A backend that no module names, from its study to its findings: an entry in the table of backends
// and a Backend are all that a new one needs.
#include <gmock/gmock.h>

#include "analysis/analyze.h"
#include "artifact/read_bundle.h"
#include "crosscheck/crosscheck.h"
#include "gates/judge.h"
#include "harness/run_fixture.h"
#include "study/default_processes.h"

namespace assay {
namespace {

constexpr const char* kStudy = R"(name: toys
models: [{path: models/toy, name: toy, dtype: fp32}]
arms:
  - {name: one, backend: fake, mode: eager, cache: static}
  - {name: two, backend: fake, mode: eager, cache: dynamic}
phases: [prefill, kv_decode]
scenarios:
  - {name: short, prompt_tokens: [3, 5]}
token_lengths: [4]
batch: [1]
repetitions: 8
warmup: 1
)";

class ToyBackend : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    auto study = parse_study(kStudy, "toys.yaml");
    ASSERT_TRUE(study) << study.error().message;
    settle_processes(*study);
    study_ = std::move(*study);
    study_yaml_ = kStudy;
  }
};

TEST_F(ToyBackend, IsPlannedRunAnalysedAndJudged) {
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->rows.front().backend.str(), "fake");
  EXPECT_FALSE(bundle->parity.empty()) << "its workers show tokens";
  const auto findings = analyze(*bundle, {}, nullptr);
  ASSERT_TRUE(findings) << findings.error().message;
  EXPECT_EQ(findings->strata.size(), 2U);
  EXPECT_EQ(findings->study.arms, (std::vector<std::string>{"one", "two"}));
  const auto judged = judge_bundles({.bundles = {folder().string()}, .claim = {}, .axis = ""});
  ASSERT_TRUE(judged) << judged.error().message;
}

TEST_F(ToyBackend, IsRefusedWhatItsEntryDoesNotOffer) {
  std::string text = kStudy;
  text.replace(text.find("mode: eager"), 11, "mode: turbo");
  const auto refused = parse_study(text, "toys.yaml");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("expected eager"));
}

TEST_F(ToyBackend, IsListedAmongTheBackends) {
  std::string text = kStudy;
  text.replace(text.find("backend: fake"), 13, "backend: fade");
  const auto refused = parse_study(text, "toys.yaml");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("native, torch, command, http, fake"));
}

}  // namespace
}  // namespace assay
