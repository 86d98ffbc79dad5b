// Whole studies against fake workers: the bundle has its rows, whatever the worker's fault.
#include <sys/resource.h>

#include <cstdlib>

#include "harness/run_fixture.h"

namespace assay {
namespace {

TEST_F(RunTest, EveryPlannedRowIsThere) {
  expect_whole(run());
  const auto rows = rows_of("base");
  EXPECT_EQ(count(rows, RowStatus::kOk), static_cast<int64_t>(rows.size()));
  for (const Row& row : rows) {
    EXPECT_EQ(row.cold, row.repetition < 0);
    EXPECT_EQ(row.latency_ms, 1.0);
    EXPECT_EQ(row.counts[Counter::kRecompiles], 2);
    EXPECT_EQ(row.counts[Counter::kGraphReplays], 7);
    EXPECT_EQ(row.counts[Counter::kGraphBreaks], 3);
    EXPECT_EQ(row.counts[Counter::kRecompileLimitHits], 4);
    EXPECT_EQ(row.counts[Counter::kCudagraphCaptures], 5);
    EXPECT_EQ(row.counts[Counter::kCudagraphSkips], 6);
    EXPECT_EQ(row.counts[Counter::kFxCacheHits], 8);
    EXPECT_EQ(row.compile_ms_delta, 1.5);
    EXPECT_EQ(row.fresh_cache, false);
    EXPECT_EQ(row.counts[Counter::kUniqueGraphs], std::nullopt);
    EXPECT_EQ(row.tokens, row.batch * std::max<int64_t>(row.new_tokens, 1));
    EXPECT_EQ(row.tokens_per_s.has_value(), row.phase != Phase::kPrefill);
  }
}

TEST_F(RunTest, ArmsGetTheSamePrompts) {
  expect_whole(run());
  const auto base = rows_of("base");
  const auto other = rows_of("other");
  std::map<std::tuple<Phase, std::string, int64_t, int64_t>, std::string> hashes;
  for (const Row& row : base) {
    hashes[{row.phase, row.scenario, row.batch, row.repetition}] = row.output_hash;
  }
  std::set<std::string> distinct;
  for (const Row& row : other) {
    // The fake worker's output hash is its prompt's.
    EXPECT_EQ((hashes[{row.phase, row.scenario, row.batch, row.repetition}]), row.output_hash);
    distinct.insert(row.output_hash);
  }
  EXPECT_EQ(distinct.size(), 3u);  // two drawn prompts and a text
}

// Bytes are kept by prompt length; those of a false success don't count.
TEST_F(RunTest, BytesThatARepetitionReadsAreKept) {
  faults_["other"] = {"too_fast:measure:4"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const auto& [id, evidence] : bundle->evidence) {
    EXPECT_EQ(evidence.read_bytes.size(), id.contains("short") ? 2u : 1u) << id;
    for (const auto& [length, bytes] : evidence.read_bytes) EXPECT_EQ(bytes, 1'000'000) << length;
  }
}

// So that a compiler that hangs in one worker is not started by the next.
TEST_F(RunTest, WhatWorkersSayReachesTheirBackend) {
  memory_.notes_heard = true;
  expect_whole(run());
  for (const char* what : {"base prepared", "base reported", "other prepared", "other reported"}) {
    EXPECT_GE(memory_.heard[what], 1) << what;
    EXPECT_EQ(std::ranges::count(observer_.notes, what), 1) << what;
  }
}

TEST_F(RunTest, ParityIsRecordedBeforeTiming) {
  expect_whole(run());
  const Json parity = parity_of("other");
  EXPECT_EQ(parity["passed"], true);
  EXPECT_EQ(parity["baseline_arm"], "base");
  EXPECT_GT(parity["compared_tokens"], 0);
  EXPECT_TRUE(observer_.notes.empty());
}

TEST_F(RunTest, AnArmThatFailsParityIsMeasuredAndMarked) {
  faults_["other"] = {"differ:parity"};
  expect_whole(run());
  const auto rows = rows_of("other");
  EXPECT_EQ(count(rows, RowStatus::kOk), static_cast<int64_t>(rows.size()));
  const Json parity = parity_of("other");
  EXPECT_EQ(parity["passed"], false);
  EXPECT_EQ(parity["first_difference"]["position"], 0);
  EXPECT_EQ(observer_.notes.size(), 1u);
}

// One answer serves all cells of an arm on a prompt; each is judged by the tokens that it
// generates.
TEST_F(RunTest, ParityOfACellIsAboutTheTokensThatItGenerates) {
  study_.phases = {Phase::kPrefill, Phase::kKvDecode, Phase::kE2eKv};
  study_.token_lengths = {2, 4};
  for (const auto& [position, fails_from] : {std::pair{3, 4}, {2, 2}, {4, 4}, {5, 5}}) {
    fs::remove_all(folder());
    observer_.notes.clear();
    faults_["other"] = {fmt::format("differ:parity:{}", position)};
    expect_whole(run());
    const auto bundle = read_bundle(folder());
    ASSERT_TRUE(bundle) << bundle.error().message;
    for (const Row& row : rows_of("other")) {
      const Json& parity = bundle->parity.at(row.cell_id);
      EXPECT_EQ(parity["passed"], row.new_tokens < fails_from) << position << " " << row.cell_id;
      EXPECT_EQ(parity["generated_tokens"], row.new_tokens + 1);
      if (row.new_tokens >= fails_from) continue;
      const auto prompts = row.scenario == "short" ? 2 : 1;
      EXPECT_EQ(parity["compared_tokens"], prompts * row.batch * (row.new_tokens + 1));
    }
    EXPECT_EQ(observer_.notes.size(), fails_from == 5 ? 0u : 1u);
  }
}

TEST_F(RunTest, ABaselineWithoutAnswersLeavesParityUnsaid) {
  faults_["base"] = {"segv:parity"};
  expect_whole(run());
  const Json parity = parity_of("base");
  EXPECT_TRUE(parity["passed"].is_null()) << "it isn't held against itself";
  EXPECT_EQ(parity["error"]["class"], "SIGSEGV");
  ASSERT_EQ(observer_.notes.size(), 1u);
  EXPECT_NE(
      observer_.notes[0].find("the baseline, gives no tokens with which to compare the others"),
      std::string::npos)
      << observer_.notes[0];
  EXPECT_EQ(parity_of("other")["error"], parity["error"]) << "why it is compared with nothing";
  EXPECT_TRUE(parity_of("other")["passed"].is_null());
  EXPECT_EQ(count(rows_of("base"), RowStatus::kOk), static_cast<int64_t>(rows_of("base").size()));
}

// If no process can be started there is nothing to make rows of: the run ends with the cause, and
// goes on where there is room.
TEST_F(RunTest, WithoutAnyWorkerThereAreNoRows) {
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before ? before : "";
  for (const ParityTime time : {ParityTime::kBefore, ParityTime::kAfter}) {
    fs::remove_all(folder());
    study_.parity = time;
    ::setenv("TMPDIR", "/nosuch", 1);
    const auto refused = run();
    EXPECT_FALSE(check_room(study_));
    before ? ::setenv("TMPDIR", saved.c_str(), 1) : ::unsetenv("TMPDIR");
    EXPECT_TRUE(check_room(study_));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kEnvironment);
    EXPECT_NE(refused.error().message.find("no arm's worker could be started: temporary folder"),
              std::string::npos)
        << refused.error().message;
    expect_whole(run(true));
    EXPECT_EQ(parity_of("other")["passed"], true);
  }
}

// A run takes more descriptors than a shell's least limit.
TEST_F(RunTest, RoomForDescriptorsIsAskedBefore) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = 20;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  const Status room = check_room(study_);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(room.error().message.find("ulimit -n"), std::string::npos) << room.error().message;
}

struct Fault {
  const char* name;
  const char* fault;
  RowStatus status;
  const char* error_class;

  friend void PrintTo(const Fault& one, std::ostream* out) { *out << one.fault; }
};

class FaultTest : public RunTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(FaultTest, CostsItsRepetitionAlone) {
  study_.timeout_s = std::string(GetParam().fault).starts_with("hang") ? 3 : 60;
  study_.scenarios.resize(1);
  study_.batch = {1};
  faults_["other"] = {GetParam().fault};
  expect_whole(run());
  const auto base = rows_of("base");
  EXPECT_EQ(count(base, RowStatus::kOk), static_cast<int64_t>(base.size()));
  for (const Row& row : rows_of("other")) {
    const bool lost = row.repetition == 1;
    EXPECT_EQ(row.status, lost ? GetParam().status : RowStatus::kOk) << row.repetition;
    EXPECT_EQ(row.error_class, lost ? GetParam().error_class : "");
    EXPECT_EQ(row.latency_ms.has_value(), !lost);
  }
  const std::string id = rows_of("other").front().cell_id;
  const auto log = read_file(folder() / "cells" / id / "stderr.log");
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("about to"), std::string::npos) << *log;
  const auto bundle = read_bundle(folder());
  const std::vector<EvidenceFailure>& failures = bundle->evidence.at(id).failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].repetition, 1);
  EXPECT_EQ(failures[0].error_class, GetParam().error_class);
}

TEST_F(RunTest, OfAFloodedLogTheEndIsKeptAndTheLossIsSaid) {
  study_.scenarios.resize(1);
  study_.batch = {1};
  faults_["other"] = {"flood:measure:1"};
  expect_whole(run());
  const std::string id = rows_of("other").front().cell_id;
  const auto log = read_file(folder() / "cells" / id / "stderr.log");
  ASSERT_TRUE(log);
  const auto bundle = read_bundle(folder());
  const auto dropped = bundle->evidence.at(id).log_dropped_bytes;
  ASSERT_TRUE(dropped);
  EXPECT_GT(*dropped, 2'000'000) << "of the four million that it printed";
  EXPECT_LT(log->size(), WorkerLog::kMostBytes + 10'000);
  EXPECT_NE(log->find("about to flood in measure"), std::string::npos);
  EXPECT_NE(log->find(fmt::format("\n[assay: {} bytes of", *dropped)), std::string::npos);
  EXPECT_NE(log->find("FloodError: the last words\n"), std::string::npos);
  EXPECT_FALSE(bundle->evidence.at(rows_of("base").front().cell_id).log_dropped_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, FaultTest,
    ::testing::Values(Fault{"segv", "segv:measure:1", RowStatus::kCrash, "SIGSEGV"},
                      Fault{"abort", "abort:measure:1", RowStatus::kCrash, "SIGABRT"},
                      Fault{"exit", "exit3:measure:1", RowStatus::kCrash, "exit 3"},
                      Fault{"hang", "hang:measure:1", RowStatus::kTimeout, "timeout"},
                      Fault{"exception", "throw:measure:1", RowStatus::kError, "FakeError"},
                      Fault{"oom", "oom:measure:1", RowStatus::kOom, "FakeOutOfMemory"},
                      Fault{"garbage", "garbage:measure:1", RowStatus::kError, "protocol_error"},
                      Fault{"huge", "huge:measure:1", RowStatus::kError, "protocol_error"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_F(RunTest, FalseSuccessCostsItsRowAlone) {
  faults_["base"] = {"few_tokens:measure:1"};
  faults_["other"] = {"too_fast:measure:4"};
  expect_whole(run());
  for (const Row& row : rows_of("base")) {
    EXPECT_EQ(row.error_class, row.repetition == 1 ? "too_few_tokens" : "");
  }
  for (const Row& row : rows_of("other")) {
    EXPECT_EQ(row.status == RowStatus::kFalseSuccess, row.repetition == 4);
    EXPECT_EQ(row.error_class, row.repetition == 4 ? "faster_than_memory" : "");
  }
}

TEST_F(RunTest, ALimitThatWasMeasuredTooLowCondemnsNoRow) {
  memory_.later = 1e18;
  faults_["base"] = {"too_fast:measure:1"};
  faults_["other"] = {"too_fast:measure:4"};
  expect_whole(run());
  for (const char* name : {"base", "other"}) {
    for (const Row& row : rows_of(name)) EXPECT_EQ(row.status, RowStatus::kOk);
  }
  EXPECT_EQ(memory_.asked, 2);  // the limit measured again for one arm holds for the other
}

TEST_F(RunTest, ALimitIsMeasuredAFewTimesAUnitAndThenBelieved) {
  faults_["other"] = {"too_fast:measure"};  // every sample of it
  expect_whole(run());
  for (const Row& row : rows_of("other")) EXPECT_EQ(row.error_class, "faster_than_memory");
  EXPECT_GT(memory_.asked, 1);
  EXPECT_LE(memory_.asked, 1 + 3 * static_cast<int>(rows_of("other").size()));
}

TEST_F(RunTest, AnArmThatNeverLoadsIsAllRows) {
  faults_["other"] = {"exit3:load"};
  expect_whole(run());
  const auto rows = rows_of("other");
  EXPECT_EQ(count(rows, RowStatus::kCrash), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(parity_of("other")["passed"], false);
}

TEST_F(RunTest, ABaselineThatNeverLoadsLeavesTheOthersMeasured) {
  faults_["base"] = {"throw:load"};
  expect_whole(run());
  const auto rows = rows_of("other");
  EXPECT_EQ(count(rows, RowStatus::kOk), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(count(rows_of("base"), RowStatus::kError),
            static_cast<int64_t>(rows_of("base").size()));
}

TEST_F(RunTest, AModelThatNobodyLoadsIsAllRows) {
  faults_["base"] = {"throw:load"};
  faults_["other"] = {"segv:load"};
  expect_whole(run());
  EXPECT_EQ(count(rows_of("base"), RowStatus::kOk), 0);
  const auto bundle = read_bundle(folder());
  int unprompted = 0;
  for (const auto& [cell, evidence] : bundle->evidence) {
    for (const EvidenceFailure& failure : evidence.failures) {
      if (!failure.message.starts_with("no arm's worker could load the model")) continue;
      ++unprompted;
      EXPECT_NE(failure.message.find("; the last one said: the worker ended: SIGSEGV"),
                std::string::npos)
          << failure.message;
    }
  }
  EXPECT_GT(unprompted, 0);
}

TEST_F(RunTest, SequentialAndShuffledRunEveryRow) {
  study_.order = RunOrder::kSequential;
  expect_whole(run());
  fs::remove_all(folder());
  study_.order = RunOrder::kShuffled;
  expect_whole(run());
}

TEST_F(RunTest, StoppingGoesOnOnlyWhileTheIntervalIsWide) {
  // The fake worker's latencies are all the same: the interval is a point.
  study_.stopping = Stopping{50, 0.01};
  expect_whole(run());
}

TEST_F(RunTest, StoppingAddsRepetitionsUntilTheLimit) {
  study_.stopping = Stopping{9, 1e-6};
  faults_["other"] = {"jitter:measure"};
  const auto summary = run();
  ASSERT_TRUE(summary) << summary.error().message;
  // Four cells an arm; those of "other" go on to repetition 8.
  EXPECT_EQ(summary->rows, planned_rows_ + 4 * 3);
  EXPECT_EQ(std::ranges::max(rows_of("other"), {}, &Row::repetition).repetition, 8);
  EXPECT_EQ(std::ranges::max(rows_of("base"), {}, &Row::repetition).repetition, 5);
}

TEST_F(RunTest, ResumeKeepsWhatStoppingAdded) {
  study_.stopping = Stopping{9, 1e-6};
  faults_["base"] = {"jitter:measure"};
  faults_["other"] = {"jitter:measure"};
  observer_.interrupt_after = 30;
  observer_.interrupt_fd = interrupt_[1];
  ASSERT_TRUE(run()->interrupted);
  std::array<char, 8> drain{};
  ASSERT_GT(read(interrupt_[0], drain.data(), drain.size()), 0);
  const auto summary = run(true);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->rows, planned_rows_ + 8 * 3);
  EXPECT_EQ(rows_of("base").size(), rows_of("other").size());
}

TEST_F(RunTest, AnInterruptedRunIsResumedToTheSameRows) {
  observer_.interrupt_after = 9;
  observer_.interrupt_fd = interrupt_[1];
  const auto stopped = run();
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_LE(stopped->rows, 9);
  const auto before = read_bundle(folder());
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->complete);
  std::array<char, 8> drain{};
  ASSERT_GT(read(interrupt_[0], drain.data(), drain.size()), 0);
  expect_whole(run(true));
  const auto after = read_bundle(folder());
  ASSERT_TRUE(after);
  EXPECT_TRUE(after->complete);
  for (size_t i = 0; i < before->rows.size(); ++i) EXPECT_EQ(after->rows[i], before->rows[i]);
}

TEST_F(RunTest, WhatIsWrongIsFoundBeforeMeasuring) {
  study_.arms[1].mode = "compiled";
  EXPECT_EQ(run().error().message, "arm \"other\": only eager");
  study_.arms[1].mode = "eager";
  study_.arms[1].backend = "fke";
  EXPECT_EQ(run().error().message,
            "arm \"other\": expected a backend of fake, found fke (did you mean \"fake\"?)");
  study_.arms[1].backend = "fake";
  study_.scenarios[0].prompt_tokens = {61};
  EXPECT_EQ(run().error().message,
            "scenario \"short\" on model \"m\": expected at most the model's 64 positions, found "
            "65 (prompt 61, new tokens 4)");
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(RunTest, ShowsTheEnvironmentsWarningsOnceItStarts) {
  expect_whole(run());
  EXPECT_EQ(observer_.warnings, (std::vector<std::string>{"a debug build"}));
}

TEST_F(RunTest, ABundleThatExistsIsRefused) {
  expect_whole(run());
  observer_.warnings.clear();
  const auto again = run();
  ASSERT_FALSE(again);
  EXPECT_TRUE(observer_.warnings.empty());
  EXPECT_EQ(again.error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace assay
