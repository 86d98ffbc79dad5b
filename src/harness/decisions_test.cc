// When strata end: by rows alone, and in whole studies against fake workers.
#include "harness/decisions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "harness/run_fixture.h"

namespace assay {
namespace {

Study deciding(size_t arms) {
  Study study;
  study.models = {{"m", "models/m", "fp32"}};
  for (size_t i = 0; i < arms; ++i) {
    study.arms.emplace_back().name = fmt::format("arm{}", i);
  }
  study.phases = {Phase::kPrefill};
  study.scenarios = {{"short", {3}, ""}};
  study.batch = {1};
  study.repetitions = 10;
  study.processes = 5;
  study.stopping = Stopping{.max_repetitions = 80, .decide = true};
  return study;
}

Row row_of(double latency_ms, bool cold = false, RowStatus status = RowStatus::kOk) {
  Row row;
  row.status = status;
  row.cold = cold;
  if (status == RowStatus::kOk) row.latency_ms = latency_ms;
  return row;
}

class DecisionsTest : public ::testing::Test {
 protected:
  void begin(size_t arms) {
    study_ = deciding(arms);
    plan_ = make_plan(study_);
    decisions_.emplace(study_, plan_);
  }
  // Two rows of each arm, by the arm's factor and up to 1 % of noise.
  void add_round(int64_t round, const std::vector<double>& factors) {
    for (size_t arm = 0; arm < factors.size(); ++arm) {
      for (int i = 0; i < 2; ++i) {
        decisions_->add(arm, round, row_of(factors[arm] * (1 + 0.01 * random_.uniform())));
      }
    }
  }

  Study study_;
  Plan plan_;
  std::optional<Decisions> decisions_;
  Random random_{1};
};

TEST_F(DecisionsTest, EndsOnceEveryPairWithTheLeaderIsClosed) {
  begin(4);
  const int64_t least = least_rounds_to_decide(study_);
  EXPECT_EQ(least, 6) << "one more than of two arms: six pairs share the 5 %";
  for (int64_t round = 0; round < least; ++round) {
    EXPECT_FALSE(decisions_->over(0, round)) << round;
    add_round(round, {1.5, 1, 1.001, 2});
  }
  EXPECT_TRUE(decisions_->over(0, least));
  EXPECT_TRUE(decisions_->over(0, least + 1));
  EXPECT_FALSE(decisions_->over(0, least - 1)) << "what was run stays planned";
  const StratumLook look = decisions_->look(0, least);
  ASSERT_EQ(look.pairs.size(), 3u);
  for (const LeaderPair& pair : look.pairs) {
    const bool slower = pair.arm == 0 || pair.arm == 3;
    EXPECT_EQ(pair.verdict, slower ? PairVerdict::kFaster : PairVerdict::kEquivalent);
    EXPECT_TRUE(pair.interval->contains(pair.ratio));
  }
  EXPECT_NE(look.leader, 0u);
}

TEST_F(DecisionsTest, OneOpenPairKeepsTheStratum) {
  begin(3);
  for (int64_t round = 0; round < 20; ++round) {
    EXPECT_FALSE(decisions_->over(0, round));
    // The third arm swings by 20 % about the first one's latency.
    add_round(round, {1, 2, round % 2 == 0 ? 1.2 : 1 / 1.2});
  }
  const StratumLook look = decisions_->look(0, 20);
  EXPECT_FALSE(look.decided());
  ASSERT_EQ(look.pairs.size(), 2u);
  for (const LeaderPair& pair : look.pairs) {
    EXPECT_EQ(pair.verdict, pair.arm == 1 ? PairVerdict::kFaster : PairVerdict::kOpen);
  }
}

TEST_F(DecisionsTest, AskedLateItEndsWhereItWouldHaveEnded) {
  begin(2);
  for (int64_t round = 0; round < 9; ++round) add_round(round, {1, 1.5});
  EXPECT_TRUE(decisions_->over(0, 9));
  EXPECT_EQ(decisions_->summary(0).rounds, 5);
}

TEST_F(DecisionsTest, ColdRowsSayNothing) {
  begin(2);
  for (int64_t round = 0; round < 4; ++round) {
    add_round(round, {1, 1.001});
    decisions_->add(0, round, row_of(1000, true));
  }
  EXPECT_NEAR(decisions_->look(0, 4).pairs[0].ratio, 1, 0.02);
}

TEST_F(DecisionsTest, AnArmThatLostARowIsOutOfIt) {
  begin(3);
  for (int64_t round = 0; round < 6; ++round) add_round(round, {1, 1.001, 1.2});
  decisions_->add(2, 1, row_of(0, true, RowStatus::kCrash));
  EXPECT_EQ(decisions_->look(0, 6).pairs.size(), 1u);
  EXPECT_TRUE(decisions_->over(0, 6));
  begin(2);
  for (int64_t round = 0; round < 5; ++round) add_round(round, {1, 1.2});
  decisions_->add(1, 0, row_of(0, false, RowStatus::kError));
  EXPECT_FALSE(decisions_->over(0, 4));
  EXPECT_TRUE(decisions_->over(0, 5)) << "nothing to compare: the study's processes are enough";
  EXPECT_EQ(decisions_->summary(0).leader, std::nullopt);
}

// Six repetitions in two processes, and as many more rounds of three as fit 60.
class DecideRunTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    study_.phases = {Phase::kPrefill, Phase::kKvDecode};
    study_.scenarios = {{"short", {3, 5}, ""}};
    study_.warmup = 1;
    study_.processes = 2;
    study_.stopping = Stopping{.max_repetitions = 60, .decide = true, .margin = 0.001};
  }

  // Rounds that the cells of a phase had, after the checks that hold for every run.
  int64_t rounds_of(const std::string& phase) {
    const auto problems = verify_bundle(folder());
    EXPECT_TRUE(problems && problems->empty());
    int64_t rounds = 0;
    const auto bundle = read_bundle(folder());
    for (const auto& [id, evidence] : bundle->evidence) {
      if (!evidence.phase || phase_name(*evidence.phase) != phase) continue;
      EXPECT_TRUE(rounds == 0 || evidence.stopping->rounds == rounds) << id;
      rounds = evidence.stopping->rounds;
      EXPECT_EQ(evidence.processes.size(), static_cast<size_t>(rounds)) << id;
    }
    for (const std::string arm_name : {"base", "other"}) {
      const auto rows = rows_of(arm_name);
      EXPECT_EQ(std::ranges::count(rows, *parse_phase(phase), &Row::phase), 4 * rounds);
    }
    return rounds;
  }
  EvidenceStopping stopping_of(const std::string& phase) {
    const auto bundle = read_bundle(folder());
    for (const auto& [id, evidence] : bundle->evidence) {
      if (evidence.phase && phase_name(*evidence.phase) == phase)
        return evidence.stopping.value_or(EvidenceStopping());
    }
    return {};
  }
};

TEST_F(DecideRunTest, EqualArmsEndAsEquivalent) {
  const auto summary = run();
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_FALSE(summary->interrupted);
  EXPECT_EQ(rounds_of("prefill"), 5);
  EXPECT_EQ(stopping_of("prefill").pairs.at(0).verdict, "equivalent");
  EXPECT_EQ(observer_.dropped, 2 * 2 * 15 * 3)
      << "two phases, two arms, the repetitions of the rounds that weren't needed";
  EXPECT_EQ(asked("base", "load models/m"), 5 + 1) << "and one for parity";
}

TEST_F(DecideRunTest, AStratumEndsByItself) {
  faults_["base"] = {"noisy:generate:4"};  // kv_decode alone
  ASSERT_TRUE(run());
  EXPECT_EQ(rounds_of("prefill"), 5);
  EXPECT_EQ(rounds_of("kv_decode"), 20) << "its noise hides which is faster: to the most";
  EXPECT_EQ(stopping_of("kv_decode").decided, false);
  EXPECT_EQ(stopping_of("kv_decode").pairs.at(0).verdict, "open");
}

TEST_F(DecideRunTest, ALargeDifferenceShowsThroughNoise) {
  faults_["base"] = {"noisy:measure"};
  faults_["other"] = {"slow:measure"};
  ASSERT_TRUE(run());
  EXPECT_LE(rounds_of("prefill"), 8) << "one of them confirms";
  const EvidenceStopping stopping = stopping_of("prefill");
  EXPECT_EQ(stopping.leader, "base");
  EXPECT_EQ(stopping.pairs.at(0).verdict, "faster");
  EXPECT_NEAR(stopping.pairs.at(0).ratio, 1 / 1.5, 0.1);
}

TEST_F(DecideRunTest, AResumeEndsWhereTheRunWouldHave) {
  faults_["base"] = {"noisy:generate:4"};
  study_.stopping->max_repetitions = 24;  // 8 rounds
  ASSERT_TRUE(run());
  const auto whole = read_bundle(folder());
  observer_.interrupt_fd = interrupt_[1];
  // Interrupts in the first round, before and after prefill is decided, and among the last rows.
  for (const int64_t after : {2, 40, 62, 66, 75, 95}) {
    SCOPED_TRACE(after);
    fs::remove_all(folder());
    observer_.rows = 0;
    observer_.interrupt_after = after;
    ASSERT_TRUE(run()->interrupted);
    const auto summary = resume();
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_FALSE(summary->interrupted);
    const auto resumed = read_bundle(folder());
    ASSERT_EQ(resumed->rows.size(), whole->rows.size());
    for (size_t i = 0; i < whole->rows.size(); ++i) {
      EXPECT_EQ(resumed->rows[i].cell_id, whole->rows[i].cell_id);
      EXPECT_EQ(resumed->rows[i].repetition, whole->rows[i].repetition);
      EXPECT_EQ(resumed->rows[i].latency_ms, whole->rows[i].latency_ms);
    }
    for (const auto& [id, evidence] : resumed->evidence) {
      EXPECT_EQ(evidence.stopping, whole->evidence.at(id).stopping);
    }
    EXPECT_TRUE(verify_bundle(folder())->empty());
  }
}

TEST_F(DecideRunTest, ParityAndProfilesAreAskedOfTheLastProcesses) {
  study_.parity = ParityTime::kAfter;
  profile_ = true;
  faults_["base"] = faults_["other"] = {"--profiler"};
  ASSERT_TRUE(run());
  EXPECT_EQ(rounds_of("prefill"), 5);
  EXPECT_EQ(parity_of("other")["passed"], true);
  EXPECT_EQ(asked("other", "load models/m"), 5) << "no process beyond the timed ones";
  EXPECT_EQ(asked("other", "profile"), 2) << "once a cell";
}

TEST_F(DecideRunTest, AnArmThatIsLostLeavesNothingToDecide) {
  faults_["other"] = {"segv:measure"};
  ASSERT_TRUE(run());
  EXPECT_EQ(count(rows_of("base"), RowStatus::kOk), 2 * 2 * 4) << "two rounds of two phases";
  EXPECT_EQ(stopping_of("prefill").leader, std::nullopt);
}

}  // namespace
}  // namespace assay
