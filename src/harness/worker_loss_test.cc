// Workers that are lost at any point of the conversation: the run goes on, and committed rows
// stay.
#include <csignal>

#include "harness/run_fixture.h"

namespace assay {
namespace {

// "kill:STAGE" dies there at once, "late:STAGE" some microseconds later: before, during or after
// its reply; "half:STAGE" in the middle of a line.
class LossTest : public RunTest,
                 public ::testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(LossTest, NeverHangsAndNeverLosesACommittedRow) {
  const auto [kind, stage] = GetParam();
  study_.batch = {1};
  study_.parity = std::string(kind) == "late" ? ParityTime::kAfter : ParityTime::kBefore;
  profile_ = true;
  faults_["other"] = {"--profiler", fmt::format("{}:{}", kind, stage)};
  expect_whole(run());
  const auto base = rows_of("base");
  EXPECT_EQ(count(base, RowStatus::kOk), static_cast<int64_t>(base.size()));
  for (const Row& row : rows_of("other")) {
    if (row.status == RowStatus::kOk) continue;
    // A machine whose kernel counts out-of-memory kills meanwhile makes them suspects.
    const bool killed = row.status == RowStatus::kCrash || row.status == RowStatus::kOom;
    EXPECT_TRUE(killed) << row_status_name(row.status) << " " << row.error_class;
    EXPECT_EQ(row.error_class, std::string(kind) == "half" ? "exit 3" : "SIGKILL");
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, LossTest,
                         ::testing::Combine(::testing::Values("kill", "late", "half"),
                                            ::testing::Values("hello", "load", "prepare", "measure",
                                                              "parity", "profile", "evidence",
                                                              "tokenize", "shutdown")),
                         [](const auto& param_info) {
                           return fmt::format("{}_{}", std::get<0>(param_info.param),
                                              std::get<1>(param_info.param));
                         });

TEST_F(RunTest, ADeathIsSeenThoughAChildHoldsTheChannel) {
  study_.timeout_s = 600;  // were the death not seen, the test would take as long
  study_.compile_timeout_s = 600;
  study_.scenarios.resize(1);
  study_.batch = {1};
  faults_["other"] = {"orphan:measure:1"};
  expect_whole(run());
  for (const Row& row : rows_of("other")) {
    const bool lost = row.repetition == 1;
    EXPECT_EQ(row.error_class, lost ? "SIGSEGV" : "") << row.repetition;
  }
}

// A CUDA error poisons the process: everything it is asked afterwards fails the same way.
TEST_F(RunTest, AfterAPoisonedDeviceTheNextUnitGetsAFreshProcess) {
  study_.scenarios.resize(1);
  study_.batch = {1};
  study_.phases = {Phase::kPrefill};
  faults_["other"] = {"poison:measure:1", "--once", (scratch_ / "struck").string()};
  expect_whole(run());
  for (const Row& row : rows_of("other")) {
    const bool lost = row.repetition == 1;
    EXPECT_EQ(row.status, lost ? RowStatus::kError : RowStatus::kOk) << row.repetition;
    EXPECT_EQ(row.error_class, lost ? "AcceleratorError" : "");
  }
  const auto bundle = read_bundle(folder());
  const Evidence& evidence = bundle->evidence.at(rows_of("other").front().cell_id);
  ASSERT_FALSE(evidence.failures.empty());
  EXPECT_EQ(evidence.failures[0].message, "CUDA error: an illegal memory access was encountered");
}

TEST_F(RunTest, ACompilationThatTakesTooLongIsATimeoutOfItsOwn) {
  study_.compile_timeout_s = 0.3;
  study_.scenarios.resize(1);
  study_.batch = {1};
  study_.phases = {Phase::kPrefill};
  faults_["other"] = {"hang:prepare"};
  expect_whole(run());
  const auto rows = rows_of("other");
  EXPECT_EQ(count(rows, RowStatus::kTimeout), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(rows.front().error_class, "compile_timeout");
  const auto bundle = read_bundle(folder());
  const Evidence& evidence = bundle->evidence.at(rows.front().cell_id);
  ASSERT_FALSE(evidence.failures.empty());
  EXPECT_EQ(evidence.failures[0].message, "no reply to prepare within 0.3 s");
  ASSERT_TRUE(evidence.worker);
  EXPECT_EQ(evidence.worker->name, "fake") << "who was asked is known";
  EXPECT_FALSE(evidence.worker->prepare_seconds) << "how long it takes isn't";
  EXPECT_TRUE(evidence.worker->prepare_evidence.is_null());
}

// One process serves both cells: the first cell's seconds say nothing about the second.
TEST_F(RunTest, AFailedPreparationHasNoSecondsOfAnEarlierOne) {
  study_.scenarios.resize(1);
  study_.batch = {1};
  study_.order = RunOrder::kSequential;
  faults_["other"] = {"throw:prepare:kv_decode"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  ASSERT_TRUE(bundle) << bundle.error().message;
  for (const Row& row : rows_of("other")) {
    const auto& worker = bundle->evidence.at(row.cell_id).worker;
    ASSERT_TRUE(worker) << row.cell_id;
    const bool failed = row.phase == Phase::kKvDecode;
    EXPECT_EQ(row.error_class, failed ? "FakeError" : "");
    EXPECT_EQ(worker->prepare_seconds, failed ? std::nullopt : std::optional(0.25)) << row.cell_id;
  }
}

TEST_F(RunTest, AnExceptionLeavesTheWorkersLastWords) {
  study_.scenarios.resize(1);
  study_.batch = {1};
  study_.repetitions = 3;
  faults_["other"] = {"throw:measure"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  const Evidence& evidence = bundle->evidence.at(rows_of("other").front().cell_id);
  ASSERT_TRUE(evidence.reported);
  EXPECT_EQ(evidence.compiler_real, CompilerReal::kNotApplicable);
}

}  // namespace
}  // namespace assay
