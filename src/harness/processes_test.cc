// A cell's repetitions over several worker processes: each process's share, and the rest if one is
// lost or the run is stopped.
#include "harness/run_fixture.h"

namespace assay {
namespace {

class ProcessesTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    study_.scenarios.resize(1);
    study_.batch = {1};
    study_.processes = 3;
  }

  // "PROCESS: REPETITIONS" of each cell, warm-ups below 0; "-" where no process came up.
  std::map<std::string, std::string> shares() const {
    const auto bundle = read_bundle(folder());
    std::map<std::string, std::string> shown;
    std::map<std::string, OptionalCount> last;
    if (!bundle) return {{"bundle", bundle.error().message}};
    for (const Row& row : bundle->rows) {
      std::string& text = shown[row.cell_id];
      if (text.empty() || last[row.cell_id] != row.process) {
        if (!text.empty()) text += "; ";
        text += (row.process ? std::to_string(*row.process) : "-") + ":";
      }
      last[row.cell_id] = row.process;
      text += " " + std::to_string(row.repetition);
    }
    return shown;
  }
  void expect_shares(const std::string& arm_name, const std::string& expected) const {
    int cells = 0;
    for (const auto& [id, shown] : shares()) {
      if (id.find("-" + arm_name + "-") == std::string::npos) continue;
      EXPECT_EQ(shown, expected) << id;
      ++cells;
    }
    EXPECT_EQ(cells, 2);
  }
};

constexpr const char* kEvenShares = "0: -6 -5 0 1; 1: -4 -3 2 3; 2: -2 -1 4 5";

TEST_F(ProcessesTest, ShareACellsRepetitionsInRounds) {
  for (const RunOrder order :
       {RunOrder::kSequential, RunOrder::kShuffled, RunOrder::kInterleaved}) {
    fs::remove_all(folder());
    fs::remove(scratch_ / "base");
    study_.order = order;
    expect_whole(run());
    expect_shares("base", kEvenShares);
    expect_shares("other", kEvenShares);
    // One more is parity's; a process serves both of its arm's cells.
    EXPECT_EQ(asked("base", "load models/m"), 4) << run_order_name(order);
    const auto bundle = read_bundle(folder());
    int64_t process = 0;
    for (const Row& row : bundle->rows) {
      EXPECT_GE(*row.process, process) << "no arm is ahead of the others by a round";
      process = *row.process;
      const bool whole = order != RunOrder::kInterleaved;
      EXPECT_EQ(row.block, whole ? process : std::max(row.repetition, 2 * process));
    }
    EXPECT_EQ(bundle->manifest["study"]["processes"], 3);
  }
}

// Each round goes through both models, also where the run was stopped between them and resumed.
TEST_F(ProcessesTest, OfSeveralModelsAreSpreadOverTheRun) {
  study_.models.push_back({"n", "models/n", "fp32"});
  for (const ParityTime parity : {ParityTime::kBefore, ParityTime::kAfter}) {
    for (const RunOrder order :
         {RunOrder::kSequential, RunOrder::kShuffled, RunOrder::kInterleaved}) {
      for (const bool stopped : {false, true}) {
        fs::remove_all(folder());
        for (const char* arm : {"base", "other"}) fs::remove(scratch_ / arm);
        study_.order = order;
        study_.parity = parity;
        if (stopped) {
          observer_.rows = 0;
          observer_.interrupt_fd = interrupt_[1];
          observer_.interrupt_after = make_plan(study_).rows / 2 + 1;
          ASSERT_TRUE(run()->interrupted);
          expect_whole(resume());
        } else {
          expect_whole(run());
        }
        const auto bundle = read_bundle(folder());
        ASSERT_TRUE(bundle) << bundle.error().message;
        std::vector<std::pair<std::string, int64_t>> turns;  // model, and round by its repetitions
        for (const Row& row : bundle->rows) {
          if (row.repetition < 0) continue;
          const std::pair turn(row.model.str(), row.repetition / 2);
          if (turns.empty() || turns.back() != turn) turns.push_back(turn);
        }
        EXPECT_EQ(turns, (std::vector<std::pair<std::string, int64_t>>{
                             {"m", 0}, {"n", 0}, {"m", 1}, {"n", 1}, {"m", 2}, {"n", 2}}))
            << run_order_name(order);
        if (stopped) continue;
        for (const char* model : {"load models/m", "load models/n"}) {
          EXPECT_EQ(asked("base", model), parity == ParityTime::kBefore ? 4 : 3) << model;
        }
      }
    }
  }
}

TEST_F(ProcessesTest, OneProcessServesAllThatAStudyWithoutTheKeyAsks) {
  study_.processes = 1;
  expect_whole(run());
  expect_shares("other", "0: -2 -1 0 1 2 3 4 5");
  EXPECT_EQ(asked("other", "load models/m"), 2);
}

TEST_F(ProcessesTest, TheFirstSampleOfEachIsCold) {
  study_.warmup = 0;
  expect_whole(run());
  for (const Row& row : rows_of("other")) {
    EXPECT_EQ(row.cold, row.repetition % 2 == 0) << row.repetition;
  }
}

TEST_F(ProcessesTest, EachHasItsEntryInTheEvidence) {
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const auto& [id, evidence] : bundle->evidence) {
    const std::vector<EvidenceProcess>& processes = evidence.processes;
    ASSERT_EQ(processes.size(), 3u) << id;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(processes[i].process, static_cast<int64_t>(i));
      EXPECT_EQ(processes[i].prepare_seconds, 0.25);
      EXPECT_EQ(processes[i].compiler_real, CompilerReal::kNotApplicable);
      EXPECT_FALSE(processes[i].lost);
      ASSERT_TRUE(processes[i].placement);
      EXPECT_TRUE(processes[i].placement->last_cpu);
      EXPECT_TRUE(processes[i].placement->cpus_allowed);
    }
    EXPECT_EQ(evidence.reported_by, 2);
  }
}

// The first of the arm's processes says that it never reached the compiler, the others don't.
TEST_F(ProcessesTest, WhatOneProcessDidNotProveTheCellDidNot) {
  study_.phases = {Phase::kPrefill};
  study_.order = RunOrder::kSequential;  // one report a process
  study_.parity = ParityTime::kAfter;    // so that no process before is asked for evidence
  faults_["other"] = {"label:evidence", "--once", (scratch_ / "struck").string()};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  const Evidence& evidence = bundle->evidence.at(rows_of("other").front().cell_id);
  EXPECT_EQ(evidence.compiler_real, CompilerReal::kLabelOnly);
  ASSERT_TRUE(evidence.reported);
  EXPECT_EQ(evidence.reported->whole["compiler_real"], "label_only");
  EXPECT_EQ(evidence.reported_by, 0);
  ASSERT_EQ(evidence.processes.size(), 3u);
  EXPECT_EQ(evidence.processes[2].compiler_real, CompilerReal::kNotApplicable);
}

// A lost process costs the rest of its unit: its share, or one repetition; the next unit gets a
// process of its own.
TEST_F(ProcessesTest, ALostOneCostsItsUnitAlone) {
  study_.phases = {Phase::kPrefill, Phase::kKvDecode};
  for (const RunOrder order : {RunOrder::kSequential, RunOrder::kInterleaved}) {
    fs::remove_all(folder());
    study_.order = order;
    faults_["other"] = {"segv:measure:2"};  // the second share's first
    expect_whole(run());
    const bool whole = order == RunOrder::kSequential;
    expect_shares("other", whole ? kEvenShares : "0: -6 -5 0 1; 1: -4 -3 2; 2: 3; 3: -2 -1 4 5");
    for (const Row& row : rows_of("other")) {
      const bool lost = row.repetition == 2 || (whole && row.repetition == 3);
      EXPECT_EQ(row.error_class, lost ? "SIGSEGV" : "") << row.repetition;
    }
    const auto base = rows_of("base");
    EXPECT_EQ(count(base, RowStatus::kOk), static_cast<int64_t>(base.size()));
  }
}

// The rest of its share is done by the process that replaces it, which warms up without rows, and
// the next round's is another again.
TEST_F(ProcessesTest, OneThatReplacesALostOneHasTheNextNumber) {
  study_.phases = {Phase::kPrefill};
  study_.processes = 2;
  study_.repetitions = 12;
  faults_["other"] = {"segv:measure:1"};
  ASSERT_TRUE(run());
  for (const auto& [id, shown] : shares()) {
    const bool lost = id.find("other") != std::string::npos;
    EXPECT_EQ(shown, lost ? "0: -4 -3 0 1; 1: 2 3 4 5; 2: -2 -1 6 7 8 9 10 11"
                          : "0: -4 -3 0 1 2 3 4 5; 1: -2 -1 6 7 8 9 10 11");
  }
  EXPECT_TRUE(verify_bundle(folder())->empty());
}

// Each may cost a start or a timeout. Wherever the run is stopped, a resume tries no more of them.
TEST_F(ProcessesTest, ACellThatFailsThreeTimesInARowWaitsForItsNextRound) {
  study_.phases = {Phase::kPrefill};
  study_.processes = 2;
  study_.repetitions = 12;
  faults_["other"] = {"segv:measure"};
  for (const int64_t after : {0, 9, 15}) {
    SCOPED_TRACE(after);
    fs::remove_all(folder());
    fs::remove(scratch_ / "other");
    observer_.rows = 0;
    observer_.interrupt_fd = after > 0 ? interrupt_[1] : -1;
    observer_.interrupt_after = after;
    const auto first = run();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->interrupted, after > 0);
    if (after > 0) expect_whole(resume());
    const auto rows = rows_of("other");
    EXPECT_EQ(rows.size(), 16u);
    EXPECT_EQ(count(rows, RowStatus::kCrash), 16);
    if (after == 0) {
      EXPECT_EQ(asked("other", "load models/m"), 2 * 3 + 1) << "and one for parity";
    }
    const auto bundle = read_bundle(folder());
    const Evidence& evidence = bundle->evidence.at(rows.front().cell_id);
    EXPECT_EQ(evidence.failures.size(), 2u * (3 + 1));
    EXPECT_EQ(evidence.failures[3].message,
              "not tried again in this round of processes: 3 repetitions in a row failed");
  }
}

TEST_F(ProcessesTest, RowsThatNoProcessCameUpForHaveNone) {
  faults_["other"] = {"exit3:load"};
  expect_whole(run());
  expect_shares("other", "-: -6 -5 0 1 -4 -3 2 3 -2 -1 4 5");
  expect_shares("base", kEvenShares);
}

// Wherever the run is stopped: committed rows stay, the rest of the round is done by processes that
// come after those of its first part, and the rounds behind it are as planned.
TEST_F(ProcessesTest, AResumeGoesOnInTheMiddleOfARound) {
  study_.order = RunOrder::kSequential;
  observer_.interrupt_fd = interrupt_[1];
  for (const int64_t after : {1, 5, 18, 23, 31, 46}) {
    SCOPED_TRACE(after);
    fs::remove_all(folder());
    observer_.rows = 0;
    observer_.interrupt_after = after;
    ASSERT_TRUE(run()->interrupted);
    const auto before = read_bundle(folder());
    ASSERT_TRUE(before);
    expect_whole(resume());
    const auto all = read_bundle(folder());
    for (size_t i = 0; i < before->rows.size(); ++i) EXPECT_EQ(all->rows[i], before->rows[i]);
    // Shares of one unit: none is split.
    expect_shares("base", kEvenShares);
    expect_shares("other", kEvenShares);
    for (const auto& [id, evidence] : all->evidence) EXPECT_EQ(evidence.processes.size(), 3u) << id;
  }
}

TEST_F(ProcessesTest, AResumeSplitsAShareBetweenTwoBlocks) {
  study_.phases = {Phase::kPrefill};
  study_.arms.resize(1);
  study_.processes = 2;
  study_.repetitions = 12;
  observer_.interrupt_fd = interrupt_[1];
  observer_.interrupt_after = 6;
  ASSERT_TRUE(run()->interrupted);
  expect_whole(resume());
  EXPECT_EQ(shares().begin()->second, "0: -4 -3 0 1 2 3; 1: 4 5; 2: -2 -1 6 7 8 9 10 11");
}

// The repetitions that stopping may add are shared, too: no process does all of them.
TEST_F(ProcessesTest, EachGoesOnUntilItsOwnIntervalIsNarrow) {
  study_.phases = {Phase::kPrefill, Phase::kKvDecode};
  study_.processes = 2;
  study_.stopping = Stopping{10, 1e-6};
  faults_["other"] = {"jitter:measure"};
  const auto summary = run();
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->rows, planned_rows_ + 2 * 4);
  expect_shares("other", "0: -4 -3 0 1 2 3 4; 1: -2 -1 5 6 7 8 9");
  expect_shares("base", "0: -4 -3 0 1 2; 1: -2 -1 3 4 5");
  rows_of("other");  // checks order_index
  EXPECT_TRUE(verify_bundle(folder())->empty());
}

TEST_F(ProcessesTest, AResumeKeepsWhatStoppingAddedToEarlierRounds) {
  study_.order = RunOrder::kSequential;
  study_.phases = {Phase::kPrefill, Phase::kKvDecode};
  study_.processes = 2;
  study_.stopping = Stopping{10, 1e-6};
  faults_["other"] = {"jitter:measure"};
  observer_.interrupt_fd = interrupt_[1];
  for (const int64_t after : {10, 22, 30, 39}) {
    SCOPED_TRACE(after);
    fs::remove_all(folder());
    observer_.rows = 0;
    observer_.interrupt_after = after;
    ASSERT_TRUE(run()->interrupted);
    const auto summary = resume();
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->rows, planned_rows_ + 2 * 4);
    expect_shares("other", "0: -4 -3 0 1 2 3 4; 1: -2 -1 5 6 7 8 9");
    expect_shares("base", "0: -4 -3 0 1 2; 1: -2 -1 3 4 5");
    rows_of("other");
  }
}

TEST_F(ProcessesTest, ParityIsAskedOnceAndProfilesAreTakenOnce) {
  profile_ = true;
  faults_["base"] = faults_["other"] = {"--profiler"};
  for (const ParityTime time : {ParityTime::kBefore, ParityTime::kAfter}) {
    for (const RunOrder order : {RunOrder::kSequential, RunOrder::kInterleaved}) {
      fs::remove_all(folder());
      fs::remove(scratch_ / "other");
      study_.parity = time;
      study_.order = order;
      expect_whole(run());
      EXPECT_EQ(asked("other", "parity"), 2) << "once a prompt";
      EXPECT_EQ(parity_of("other")["passed"], true);
      const auto asked_of = diary("other");
      const auto last_load = std::ranges::find(asked_of.rbegin(), asked_of.rend(), "load models/m");
      const auto last_parity = std::ranges::find(asked_of.rbegin(), asked_of.rend(), "parity");
      EXPECT_EQ(last_parity < last_load, time == ParityTime::kAfter) << "of the last process";
      EXPECT_EQ(asked("other", "load models/m"), time == ParityTime::kBefore ? 4 : 3);
      EXPECT_EQ(asked("other", "profile"), 2) << "once a cell";
    }
  }
}

}  // namespace
}  // namespace assay
