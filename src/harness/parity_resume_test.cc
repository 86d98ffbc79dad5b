// Parity across interruptions: a recorded verdict stays, and only the rest is asked.
#include "artifact/commit_log.h"
#include "harness/run_fixture.h"

namespace assay {
namespace {

// Questions to each arm: two prompts of one scenario and one of the other.
constexpr int64_t kAsks = 3;

class ParityResumeTest : public RunTest, public ::testing::WithParamInterface<ParityTime> {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    study_.arms.push_back(arm("third"));
    study_.scenarios.erase(study_.scenarios.begin());  // one prompt: one question an arm
    study_.parity = GetParam();
    study_.order = RunOrder::kSequential;  // arm after arm, also where parity is asked after each
    observer_.interrupt_fd = interrupt_[1];
  }

  void expect_interrupted(const Result<RunSummary>& summary) {
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_TRUE(summary->interrupted);
  }

  Json recorded(const std::string& arm_name) const {
    Json verdicts = Json::array();
    for (const auto& entry : fs::directory_iterator(folder() / "cells")) {
      if (!entry.path().filename().string().contains("-" + arm_name + "-")) continue;
      const auto parity = read_json_file(entry.path() / "parity.json");
      if (parity) verdicts.push_back((*parity)["passed"]);
    }
    return verdicts;
  }
};

TEST_P(ParityResumeTest, AnInterruptionBetweenTwoArmsKeepsTheFirst) {
  faults_["other"] = {"differ:parity"};
  observer_.interrupt_on_note = true;  // that "other" fails: "third" gets no answer through
  expect_interrupted(run());
  EXPECT_EQ(recorded("base"), Json({true, true}));
  EXPECT_EQ(recorded("other"), Json({false, false}));
  EXPECT_EQ(recorded("third"), Json::array());
  EXPECT_EQ(asked("base", "parity"), 1);
  EXPECT_EQ(asked("other", "parity"), 1);
  const int64_t third = asked("third", "parity");

  expect_whole(resume());
  EXPECT_EQ(recorded("third"), Json({true, true}));
  EXPECT_EQ(asked("base", "parity"), 2) << "its answers aren't kept";
  EXPECT_EQ(asked("other", "parity"), 1) << "only what is missing";
  EXPECT_EQ(asked("third", "parity"), third + 1);
  const auto bundle = read_bundle(folder());
  ASSERT_EQ(bundle->sittings.size(), 2u) << "also where only parity was left";
  const auto of_an_arm = static_cast<int64_t>(rows_of("third").size());
  EXPECT_EQ(bundle->sittings[1].rows_before, GetParam() == ParityTime::kBefore ? 0 : 2 * of_an_arm);
}

// Without an answer of it nothing can be said of the others; its own failure stays on record.
TEST_P(ParityResumeTest, ABaselineThatFailedIsAskedAgainForTheOthers) {
  faults_["base"] = {"throw:parity"};
  observer_.interrupt_on_note = true;
  expect_interrupted(run());
  EXPECT_EQ(recorded("base"), Json::array({nullptr, nullptr}));
  EXPECT_EQ(recorded("other"), Json::array());
  faults_.erase("base");
  expect_whole(resume());
  EXPECT_EQ(asked("base", "parity"), 2);
  EXPECT_EQ(recorded("other"), Json({true, true}));
  EXPECT_EQ(recorded("third"), Json({true, true}));
  EXPECT_EQ(recorded("base"), Json::array({nullptr, nullptr}));
}

// The baseline answered in the first sitting and is lost in the second, where its tokens are needed
// again: the bundle says why nothing was compared, and has no cell without a word.
TEST_P(ParityResumeTest, ABaselineThatIsLostOnceItIsAskedAgainLeavesTheReason) {
  faults_["other"] = {"differ:parity"};
  observer_.interrupt_on_note = true;
  expect_interrupted(run());
  EXPECT_EQ(recorded("base"), Json({true, true}));
  faults_["base"] = {"throw:parity"};
  expect_whole(resume());
  EXPECT_EQ(recorded("base"), Json({true, true}));
  EXPECT_EQ(recorded("third"), Json::array({nullptr, nullptr}));
  EXPECT_EQ(parity_of("third")["error"]["arm"], "base");
  EXPECT_EQ(parity_of("third")["error"]["class"], "FakeError");
}

INSTANTIATE_TEST_SUITE_P(Times, ParityResumeTest,
                         ::testing::Values(ParityTime::kBefore, ParityTime::kAfter),
                         [](const auto& param_info) {
                           return param_info.param == ParityTime::kBefore ? "before" : "after";
                         });

TEST_F(RunTest, ParityBeforeTimingIsAskedOnce) {
  observer_.interrupt_after = 9;
  observer_.interrupt_fd = interrupt_[1];
  ASSERT_TRUE(run()->interrupted);
  expect_whole(resume());
  EXPECT_EQ(asked("base", "parity"), kAsks);
  EXPECT_EQ(asked("other", "parity"), kAsks);
}

// Two models, interrupted in the second one's timing.
class FinishedModelTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    study_.parity = ParityTime::kAfter;
    study_.models.push_back({"n", "models/n", "fp32"});
    observer_.interrupt_fd = interrupt_[1];
    observer_.interrupt_after = make_plan(study_).rows / 2 + 5;
  }

  // Takes parity.json of such cells out of the bundle and its commits; how many there were.
  int64_t uncommit_parity(const std::string& cells) {
    const fs::path path = folder() / "commits.jsonl";
    const auto plan_hash =
        json_string(*read_json_file(folder() / "manifest.json"), "plan_sha256", "manifest");
    CommitLog log = *parse_commit_log(*read_file(path), *plan_hash, path.string());
    int64_t removed = 0;
    std::string text, chain = *plan_hash;
    for (CommitRecord& record : log.records) {
      removed += static_cast<int64_t>(std::erase_if(record.replaced, [&](const auto& file) {
        return file.first.contains(cells) && file.first.ends_with("/parity.json") &&
               fs::remove(folder() / file.first);
      }));
      text += commit_line(record, chain);
    }
    EXPECT_TRUE(write_file(path, text));
    return removed;
  }

  void expect_first_model_left_alone() {
    ASSERT_TRUE(run()->interrupted);
    EXPECT_EQ(asked("base", "load models/m"), 1);
    const int64_t others = asked("other", "load models/m");
    expect_whole(resume());
    EXPECT_EQ(asked("base", "load models/m"), 1);
    EXPECT_EQ(asked("other", "load models/m"), others);
    EXPECT_GT(asked("base", "load models/n"), 1) << "it was resumed there";
  }
};

TEST_F(FinishedModelTest, IsNotSetUpAgain) {
  expect_first_model_left_alone();
  EXPECT_EQ(asked("base", "parity"), 2 * kAsks);
}

TEST_F(FinishedModelTest, IsNotSetUpAgainForAnArmThatWasLost) {
  faults_["other"] = {"throw:measure"};
  expect_first_model_left_alone();
  EXPECT_EQ(asked("base", "parity"), 2 * kAsks);
  EXPECT_EQ(parity_of("other")["error"]["class"], "not_asked");
}

// A run that is killed between the last unit and the record of the lost leaves such a bundle.
TEST_F(FinishedModelTest, GetsTheRecordOfALostArmWithoutAWorker) {
  faults_["other"] = {"throw:measure"};
  ASSERT_TRUE(run()->interrupted);
  EXPECT_EQ(uncommit_parity("-other-m-"), 4);
  expect_whole(resume());
  EXPECT_EQ(asked("base", "load models/m"), 1);
  const auto bundle = read_bundle(folder());
  for (const Row& row : rows_of("other")) EXPECT_TRUE(bundle->parity.contains(row.cell_id));
}

TEST_F(FinishedModelTest, IsNotSetUpAgainWhereTheBaselineWasLost) {
  study_.order = RunOrder::kSequential;
  faults_["base"] = {"throw:measure"};
  ASSERT_TRUE(run()->interrupted);
  const int64_t loads = asked("base", "load models/m") + asked("other", "load models/m");
  expect_whole(resume());
  EXPECT_EQ(asked("base", "load models/m") + asked("other", "load models/m"), loads);
  EXPECT_EQ(asked("other", "parity"), 0);
}

// The order of the file is that of the processes: the baseline's comes last here.
TEST_F(RunTest, AnswersWaitForABaselineThatRunsLater) {
  study_.parity = ParityTime::kAfter;
  study_.order = RunOrder::kSequential;
  study_.arms = {arm("other"), arm("base")};
  expect_whole(run());
  EXPECT_EQ(parity_of("other")["passed"], true);
  EXPECT_EQ(asked("other", "parity"), kAsks);
  EXPECT_EQ(asked("base", "parity"), kAsks);
  EXPECT_EQ(asked("other", "load models/m"), 1);
}

}  // namespace
}  // namespace assay
