// Requests after timing, those left out for arms that can't run, and GPU sensors.
#include <map>
#include <utility>

#include "artifact/parity_cost.h"
#include "artifact/quality.h"
#include "base/files/files.h"
#include "harness/run_fixture.h"

namespace assay {
namespace {

TEST_F(RunTest, ParityAfterTimingComparesTheSame) {
  study_.parity = ParityTime::kAfter;
  faults_["other"] = {"differ:parity"};
  expect_whole(run());
  EXPECT_EQ(parity_of("base")["passed"], true);
  EXPECT_EQ(parity_of("other")["passed"], false);
  EXPECT_EQ(parity_of("other")["first_difference"]["position"], 0);
  EXPECT_EQ(observer_.notes.size(), 1u);
}

TEST_F(RunTest, ParityAfterTimingStartsOneProcessAnArm) {
  study_.parity = ParityTime::kAfter;
  study_.scenarios.resize(1);
  study_.batch = {1};
  expect_whole(run());
  std::string printed;
  for (const Row& row : rows_of("base")) {
    if (row.repetition != 0) continue;
    const auto log = read_file(folder() / "cells" / row.cell_id.str() / "stderr.log");
    if (log) printed += *log;
  }
  EXPECT_EQ(printed, "fake worker: started\n");
}

// If another cell were prepared in between, the answer would be that of a second compilation.
TEST_F(RunTest, ParityAfterTimingIsAskedOfTheCellThatWasTimed) {
  study_.parity = ParityTime::kAfter;
  study_.token_lengths = {2, 4, 3};
  expect_whole(run());
  for (const char* arm_name : {"base", "other"}) {
    std::string prepared;
    for (const std::string& line : diary(arm_name)) {
      if (line.starts_with("prepare")) prepared = line;
      if (line == "parity") {
        EXPECT_EQ(prepared, "prepare kv_decode 4") << arm_name;
      }
    }
    EXPECT_EQ(asked(arm_name, "parity"), 3) << "once a prompt";
  }
}

// A study with weights of their own in "other", and what is printed of them.
ModelQuality use_own_weights(Study& study, FakeMemory& memory, const fs::path& scratch) {
  study.arms[1].options["quantization"] = "q4";
  study.quality.emplace();
  const QualityFigure figure{.value = 0.5, .interval = EvidenceInterval{0.25, 1}};
  const ModelQuality printed{.model = "q4",
                             .reference = "m",
                             .text = "drawn",
                             .window = 32,
                             .windows = 4,
                             .positions = 60,
                             .kl_mean = figure,
                             .kl_p99 = figure,
                             .same_choice = figure,
                             .nll = figure,
                             .reference_nll = figure,
                             .nll_change = figure};
  EXPECT_TRUE(write_file(scratch / "printed", to_json_text(quality_to_json(printed))));
  memory.quality = fmt::format("echo 50 %% >&2; cat {}", (scratch / "printed").string());
  return printed;
}

TEST_F(RunTest, TheQualityOfWeightsIsKeptInTheirArmsCells) {
  const ModelQuality printed = use_own_weights(study_, memory_, scratch_);
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const Row& row : bundle->rows) {
    const auto& quality = bundle->evidence.at(row.cell_id.str()).quality;
    EXPECT_EQ(quality, row.arm == "other" ? std::optional(printed) : std::nullopt) << row.cell_id;
  }
  EXPECT_EQ(parity_of("other")["baseline_arm"], "other");
  EXPECT_EQ(observer_.notes.size(), 1u) << "one measurement for all cells";
}

TEST_F(RunTest, QualityThatCannotBeMeasuredCostsNoRow) {
  use_own_weights(study_, memory_, scratch_);
  for (const auto& [command, problem] :
       {std::pair{"echo '1 %' >&2; echo no >&2; exit 2", "exit 2: no"},
        {"kill -SEGV $$", "SIGSEGV"},
        {"echo '{}'", "model quality: expected a value at model"},
        {"echo nonsense", "model quality: "}}) {
    fs::remove_all(folder());
    memory_.quality = command;
    expect_whole(run());
    const auto bundle = read_bundle(folder());
    const auto& quality = bundle->evidence.at(rows_of("other").front().cell_id.str()).quality;
    ASSERT_TRUE(quality) << command;
    EXPECT_TRUE(quality->problem.starts_with(problem)) << quality->problem;
  }
}

TEST_F(RunTest, QualityThatWasInterruptedIsMeasuredByTheNextSitting) {
  const ModelQuality printed = use_own_weights(study_, memory_, scratch_);
  const std::string whole = std::exchange(memory_.quality, "exec sleep 1000");
  observer_.interrupt_on_note = true;
  observer_.interrupt_fd = interrupt_[1];
  const auto first = run();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->interrupted);
  memory_.quality = whole;
  expect_whole(resume());
  const auto bundle = read_bundle(folder());
  EXPECT_EQ(bundle->evidence.at(rows_of("other").front().cell_id.str()).quality, printed);
}

TEST_F(RunTest, ParityThatKillsItsProcessCostsNoRow) {
  study_.parity = ParityTime::kAfter;
  study_.token_lengths = {2, 4};
  faults_["other"] = {"segv:parity"};
  expect_whole(run());
  const auto rows = rows_of("other");
  EXPECT_EQ(count(rows, RowStatus::kOk), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(parity_of("other")["passed"], false);
  EXPECT_EQ(parity_of("other")["error"]["class"], "SIGSEGV");
}

TEST_F(RunTest, AnArmThatLostEveryRowIsNotAskedForParity) {
  study_.parity = ParityTime::kAfter;
  faults_["other"] = {"segv:measure"};
  expect_whole(run());
  EXPECT_EQ(asked("other", "parity"), 0);
  const Json parity = parity_of("other");
  ASSERT_TRUE(parity.is_object());
  EXPECT_TRUE(parity["passed"].is_null());
  EXPECT_EQ(parity["error"],
            (Json{{"arm", "other"},
                  {"class", "not_asked"},
                  {"message", "parity was not requested, because every row was lost"}}));
  EXPECT_EQ(parity_of("base")["passed"], true);
}

TEST_F(RunTest, AnArmThatLostItsGenerationAloneIsAskedForItsPrefills) {
  study_.parity = ParityTime::kAfter;
  faults_["other"] = {"throw:generate"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  const auto rows = rows_of("other");
  EXPECT_GT(count(rows, RowStatus::kOk), 0);
  for (const Row& row : rows) {
    EXPECT_EQ(row.status == RowStatus::kOk, row.phase == Phase::kPrefill);
    const Json& parity = bundle->parity.at(row.cell_id);
    if (row.phase == Phase::kPrefill) {
      EXPECT_EQ(parity["passed"], true) << parity;
      EXPECT_EQ(parity["generated_tokens"], 1);
      EXPECT_GE(parity["compared_tokens"], row.batch);
    } else {
      EXPECT_TRUE(parity["passed"].is_null()) << parity;
      EXPECT_EQ(parity["error"]["message"],
                "parity was requested for only 1 of the tokens, because every row with more tokens "
                "was lost");
    }
  }
}

TEST_F(RunTest, AnArmThatLostItsLongestGenerationIsAskedForTheNext) {
  study_.parity = ParityTime::kAfter;
  study_.token_lengths = {2, 8, 4};
  faults_["other"] = {"throw:generate:8"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const Row& row : rows_of("other")) {
    const Json& parity = bundle->parity.at(row.cell_id);
    EXPECT_EQ(row.status == RowStatus::kOk, row.new_tokens < 8);
    EXPECT_EQ(parity["generated_tokens"], row.new_tokens + 1);
    if (row.new_tokens < 8) {
      EXPECT_EQ(parity["passed"], true) << parity;
    } else {
      EXPECT_EQ(parity["error"]["message"],
                "parity was requested for only 5 of the tokens, because every row with more tokens "
                "was lost");
    }
  }
}

TEST_F(RunTest, NobodyIsAskedOnceTheBaselineIsLost) {
  study_.parity = ParityTime::kAfter;
  study_.order = RunOrder::kSequential;
  faults_["base"] = {"throw:measure"};
  expect_whole(run());
  EXPECT_EQ(parity_of("base")["error"]["class"], "not_asked");
  EXPECT_EQ(asked("other", "parity"), 0);
  EXPECT_TRUE(parity_of("other").is_null());
}

TEST_F(RunTest, WhereTheBaselineLostItsGenerationItsPrefillsAreCompared) {
  study_.parity = ParityTime::kAfter;
  study_.order = RunOrder::kSequential;
  faults_["base"] = {"throw:generate"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const Row& row : rows_of("other")) {
    const auto parity = bundle->parity.find(row.cell_id);
    ASSERT_NE(parity, bundle->parity.end());
    const Json compared = row.phase == Phase::kPrefill ? Json(true) : Json();
    EXPECT_EQ(parity->second["passed"], compared);
  }
}

TEST_F(RunTest, SequentialOrderAsksEachArmBeforeItsProcessEnds) {
  study_.parity = ParityTime::kAfter;
  study_.order = RunOrder::kSequential;
  profile_ = true;
  faults_["base"] = faults_["other"] = {"--profiler"};
  expect_whole(run());
  EXPECT_EQ(parity_of("other")["passed"], true);
  std::string printed;
  for (const Row& row : rows_of("other")) {
    if (row.repetition != 0) continue;
    const auto log = read_file(folder() / "cells" / row.cell_id.str() / "stderr.log");
    if (log) printed += *log;
  }
  EXPECT_EQ(printed, "fake worker: started\n");
}

TEST_F(RunTest, ProfilesEachCellOnce) {
  profile_ = true;
  faults_["other"] = {"--profiler"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const auto& [id, evidence] : bundle->evidence) {
    ASSERT_TRUE(evidence.profile) << id;
    const bool traced = evidence.requested.backend == "fake" && id.contains("-other-");
    const auto trace = read_file(folder() / "cells" / id / "trace.json.gz");
    EXPECT_EQ(trace.has_value(), traced) << id;
    if (traced && trace) {
      EXPECT_EQ(evidence.profile->summary, Json({{"kernels_launched", 7}}));
      EXPECT_EQ(*trace, "{}");
    } else {
      EXPECT_EQ(evidence.profile->skipped, "the worker has no profiler");
    }
  }
}

TEST_F(RunTest, WithoutTheFlagNothingIsProfiled) {
  faults_["other"] = {"--profiler"};
  expect_whole(run());
  const auto bundle = read_bundle(folder());
  for (const auto& [id, evidence] : bundle->evidence) EXPECT_FALSE(evidence.profile) << id;
}

TEST_F(RunTest, AnInterruptionBeforeTheLastQuestionsIsMadeUpFor) {
  study_.parity = ParityTime::kAfter;
  profile_ = true;
  faults_["base"] = faults_["other"] = {"--profiler"};
  // Every row is there by then: the profile of the first cell is interrupted.
  observer_.interrupt_after = make_plan(study_).rows;
  observer_.interrupt_fd = interrupt_[1];
  const auto stopped = run();
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(stopped->interrupted);
  std::array<char, 8> drain{};
  ASSERT_GT(read(interrupt_[0], drain.data(), drain.size()), 0);
  expect_whole(run(true));
  EXPECT_EQ(parity_of("other")["passed"], true);
  const auto bundle = read_bundle(folder());
  for (const auto& [id, evidence] : bundle->evidence) {
    EXPECT_TRUE(evidence.profile && evidence.profile->summary) << id;
  }
}

TEST_F(RunTest, AnArmThatCannotRunIsAnOutcomeBesideTheOthers) {
  readiness_["other"].verdict = ArmReadiness::Verdict::kImpossible;
  readiness_["other"].error_class = "no_cuda";
  readiness_["other"].reason = "expected a CUDA device, found none";
  expect_whole(run());
  const auto rows = rows_of("other");
  EXPECT_EQ(count(rows, RowStatus::kError), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(rows.front().error_class, "no_cuda");
  EXPECT_EQ(count(rows_of("base"), RowStatus::kOk), static_cast<int64_t>(rows_of("base").size()));
  EXPECT_TRUE(parity_of("other").is_null()) << "it was not asked";
  const auto bundle = read_bundle(folder());
  const auto& readiness = bundle->evidence.at(rows.front().cell_id).gate;
  ASSERT_TRUE(readiness);
  EXPECT_EQ(readiness->verdict, "impossible");
  EXPECT_EQ(readiness->reason, "expected a CUDA device, found none");
  EXPECT_FALSE(fs::exists(folder() / "cells" / rows.front().cell_id.str() / "stderr.log"));
  ASSERT_EQ(observer_.notes.size(), 1u);
  EXPECT_EQ(observer_.notes[0], "arm \"other\" can't run here: expected a CUDA device, found none");
}

TEST_F(RunTest, ARunOfWhichNoArmCanRunIsRefused) {
  for (const char* arm : {"base", "other"}) {
    readiness_[arm].verdict = ArmReadiness::Verdict::kImpossible;
    readiness_[arm].error_class = "no_torch";
    readiness_[arm].reason = "torch can't be imported";
  }
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(refused.error().message, "arm \"base\": torch can't be imported");
}

// A GPU of which two things are known.
class FakeGpus final : public GpuSensors {
 public:
  std::vector<GpuInfo> list() override { return {{"GPU", "GPU-1", "1", {}}}; }
  GpuState read(const std::string& uuid) override {
    if (uuid != "GPU-1") return {};
    return {1980, {}, 350, true, {"hardware slowdown"}};
  }
  // Process 1 isn't of the run.
  std::optional<std::vector<GpuProcess>> processes(const std::string&) override {
    return std::vector<GpuProcess>{{1, "train", 5000}};
  }
  std::optional<std::vector<GpuUse>> uses_since(const std::string&, int64_t since_us) override {
    return std::vector<GpuUse>{{1, since_us + 1, 0.5}};
  }
};

std::vector<const Row*> rows_by_cell(const Bundle& bundle, const std::string& cell) {
  std::vector<const Row*> rows;
  for (const Row& row : bundle.rows) {
    if (row.cell_id == cell) rows.push_back(&row);
  }
  std::ranges::sort(rows, {}, &Row::order_index);
  return rows;
}

TEST_F(RunTest, ArmsOnAGpuCarryItsSensorsAndNoOthers) {
  gpus_ = std::make_unique<FakeGpus>();
  monitor_ = std::make_unique<Monitor>(MachineFiles("/nonexistent"));
  readiness_["other"].device = "GPU";
  readiness_["other"].gpu_uuid = "GPU-1";
  expect_whole(run());
  for (const Row& row : rows_of("other")) {
    EXPECT_EQ(row.sm_clock_mhz, 1980);
    EXPECT_EQ(row.power_w, 350);
    EXPECT_EQ(row.throttled, true);
    EXPECT_FALSE(row.temperature_c);
  }
  for (const Row& row : rows_of("base")) {
    EXPECT_FALSE(row.sm_clock_mhz);
    EXPECT_FALSE(row.throttled);
  }
  const auto commits = read_file(folder() / "commits.jsonl");
  EXPECT_TRUE(commits->contains("\"throttle_reasons\":[\"hardware slowdown\"]"));
  EXPECT_TRUE(commits->contains("\"gpu_others_share\":0.5"));
}

TEST_F(RunTest, EvidenceOfAnArmOnAGpuNamesOtherProgramsAndTheirRows) {
  gpus_ = std::make_unique<FakeGpus>();
  monitor_ = std::make_unique<Monitor>(MachineFiles("/nonexistent"));
  readiness_["other"].device = "GPU";
  readiness_["other"].gpu_uuid = "GPU-1";
  observer_.interrupt_fd = interrupt_[1];
  observer_.interrupt_after = 20;  // within a unit, whose neighbours are told once, by the resume
  EXPECT_TRUE(run()->interrupted);
  expect_whole(resume());
  const auto bundle = read_bundle(folder());
  for (const auto& [cell, evidence] : bundle->evidence) {
    if (rows_by_cell(*bundle, cell).front()->arm == "base") {
      EXPECT_TRUE(evidence.gpu_neighbours.empty() && evidence.throttle_reasons.empty());
      continue;
    }
    EXPECT_EQ(evidence.throttle_reasons, std::vector<std::string>{"hardware slowdown"});
    std::vector<int64_t> named, rows;
    for (const EvidenceNeighbour& one : evidence.gpu_neighbours) {
      EXPECT_EQ(std::tuple(one.pid, one.process, one.memory_bytes, one.share),
                std::tuple(1, "train", 5000u, 0.5));
      for (int64_t i = 0; i < one.rows; ++i) named.push_back(one.first_row + i);
    }
    for (const Row* row : rows_by_cell(*bundle, cell)) rows.push_back(row->order_index);
    EXPECT_EQ(named, rows);
  }
}

// Costs by scenario: two prompts of one and one of the other, each compiled for.
std::map<std::string, ParityCost> costs_of(const fs::path& folder, const std::string& arm) {
  std::map<std::string, ParityCost> costs;
  const auto bundle = read_bundle(folder);
  EXPECT_TRUE(bundle) << bundle.error().message;
  for (const Row& row : bundle->rows) {
    const auto cost = parity_cost_of(bundle->parity.at(row.cell_id.str()));
    EXPECT_TRUE(cost) << row.cell_id.str();
    if (row.arm == arm && cost) costs[row.scenario.str()] = *cost;
  }
  return costs;
}

TEST_F(RunTest, ParityRecordsWhatItsProcessCompiled) {
  expect_whole(run());
  for (const char* arm_name : {"base", "other"}) {
    const auto costs = costs_of(folder(), arm_name);
    EXPECT_EQ(costs.at("short").compile_seconds, 0.5);
    EXPECT_EQ(costs.at("text").compile_seconds, 0.25) << "one process, and its own share";
    EXPECT_TRUE(costs.at("text").own_process);
    EXPECT_GT(costs.at("text").seconds, 0);
  }
}

TEST_F(RunTest, ParityAfterTimingRecordsWhatItAddedToTheMeasuredProcess) {
  study_.parity = ParityTime::kAfter;
  expect_whole(run());
  const auto costs = costs_of(folder(), "other");
  EXPECT_EQ(costs.at("short").compile_seconds, 0.5);
  EXPECT_EQ(costs.at("text").compile_seconds, 0.25);
  EXPECT_FALSE(costs.at("text").own_process);
}

TEST_F(RunTest, AnswersOfAProcessThatDiesWhenAskedForItsCostCount) {
  faults_["other"] = {"segv:evidence", "--once", (scratch_ / "once").string()};
  expect_whole(run());
  EXPECT_EQ(parity_of("other")["passed"], true);
  const auto costs = costs_of(folder(), "other");
  EXPECT_FALSE(costs.at("short").compile_seconds) << "which nobody could say any more";
  EXPECT_EQ(costs.at("text").compile_seconds, 0.25) << "of the process that came next";
}

}  // namespace
}  // namespace assay
