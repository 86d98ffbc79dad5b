// For tests: whole studies against fake workers, and the checks that hold for every run.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/records/backend_traits.h"
#include "harness/run.h"
#include "study/study_quality.h"
#include "tests/support/places.h"

namespace assay {

namespace fs = std::filesystem;

// The apparent speed of the machine's memory.
struct FakeMemory {
  double bytes_per_s = 10e9;
  double later = 10e9;  // from the second time on
  int asked = 0;
  bool notes_heard = false;
  std::string quality;               // shell text that prints the quality of weights
  std::map<std::string, int> heard;  // from workers, by "ARM prepared" and "ARM reported"
};

// Starts the fake worker; an arm's fault is in `faults` by its name, its diary in `diaries`.
class FakeBackend final : public Backend {
 public:
  FakeBackend(const std::map<std::string, std::vector<std::string>>& faults,
              const std::map<std::string, ArmReadiness>& readiness, FakeMemory& memory,
              fs::path diaries)
      : faults_(faults), readiness_(readiness), memory_(memory), diaries_(std::move(diaries)) {}

  Status check_arm(const StudyArm& arm) const override {
    if (arm.mode != "eager") return bad_input("arm \"{}\": only eager", arm.name);
    return {};
  }
  WorkerCommand worker_command(const StudyArm& arm) const override {
    WorkerCommand command{
        {built("fake_worker").string(), "--diary", (diaries_ / arm.name).string()}, {}};
    if (const auto it = faults_.find(arm.name); it != faults_.end()) {
      command.argv.insert(command.argv.end(), it->second.begin(), it->second.end());
    }
    return command;
  }
  ArmReadiness readiness(const StudyArm& arm) override {
    const auto it = readiness_.find(arm.name);
    return it == readiness_.end() ? ArmReadiness{} : it->second;
  }
  Json load_options(const StudyArm&, const StudyModel&, uint64_t) const override {
    return Json::object();
  }
  Result<ModelFacts> inspect(const StudyModel&, std::span<const std::string> texts) const override {
    ModelFacts facts;
    facts.max_positions = 64;
    for (const std::string& text : texts) {
      facts.text_tokens.push_back(static_cast<int64_t>(text.size()));
    }
    return facts;
  }
  std::optional<std::string> hear(const StudyArm& arm, const Json& evidence) override {
    const bool reported = evidence.contains("compiler_real");  // else it is a preparation's
    const std::string what = arm.name + (reported ? " reported" : " prepared");
    const bool first = ++memory_.heard[what] == 1;
    return memory_.notes_heard && first ? std::optional(what) : std::nullopt;
  }
  std::optional<WorkerCommand> quality_command(const StudyArm& arm, const StudyModel&,
                                               const StudyQuality&, uint64_t) const override {
    if (quantization_option(arm).empty()) return std::nullopt;
    return WorkerCommand{{"/bin/sh", "-c", memory_.quality}, {}};
  }
  std::optional<ReadLimit> read_limit(const StudyArm&, uint64_t) override {
    return ReadLimit{memory_.asked++ == 0 ? memory_.bytes_per_s : memory_.later, 1'000'000};
  }

 private:
  const std::map<std::string, std::vector<std::string>>& faults_;
  const std::map<std::string, ArmReadiness>& readiness_;
  FakeMemory& memory_;
  fs::path diaries_;
};

inline constexpr std::string_view kFakeModes[] = {"eager"};

class CountingObserver final : public RunObserver {
 public:
  void on_start(int64_t, int64_t, const std::vector<const Unit*>&) override {}
  void on_unit(const Cell&, const Unit&) override {}
  void on_row(const Row&) override {
    if (rows + 1 == act_after) act();
    if (++rows == interrupt_after && write(interrupt_fd, "x", 1) != 1) ADD_FAILURE();
  }
  void on_dropped(const Cell&, const Unit&) override { ++dropped; }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_note(const std::string& text) override {
    notes.push_back(text);
    if (interrupt_on_note && write(interrupt_fd, "x", 1) != 1) ADD_FAILURE();
  }

  int64_t rows = 0;
  int64_t dropped = 0;
  int64_t interrupt_after = -1;
  int64_t act_after = -1;
  std::function<void()> act;
  bool interrupt_on_note = false;
  int interrupt_fd = -1;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    scratch_ = fs::temp_directory_path() / fmt::format("assay-run-{}-{}", info->name(), getpid());
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
    study_.name = "test";
    study_.models = {{"m", "models/m", "fp32"}};
    study_.arms = {arm("base"), arm("other")};
    study_.phases = {Phase::kPrefill, Phase::kKvDecode};
    study_.scenarios = {{"short", {3, 5}, ""}, {"text", {}, "hello"}};
    study_.token_lengths = {4};
    study_.batch = {2};
    study_.repetitions = 6;
    study_.warmup = 2;
    study_.order = RunOrder::kInterleaved;
    study_.baseline = "base";
    study_.timeout_s = 60;
    ASSERT_EQ(pipe(interrupt_.data()), 0);
  }
  void TearDown() override {
    close(interrupt_[0]);
    close(interrupt_[1]);
    fs::remove_all(scratch_);
  }

  static StudyArm arm(const std::string& name) {
    StudyArm made;
    made.name = name;
    made.backend = "fake";
    made.mode = "eager";
    made.cache = "static";
    return made;
  }

  Result<RunSummary> run(bool resume = false) {
    BackendSet backends;
    backends["fake"] = std::make_unique<FakeBackend>(faults_, readiness_, memory_, scratch_);
    ASSAY_TRY(const Preflight preflight, check_study(study_, backends));
    const Plan plan = make_plan(study_);
    planned_rows_ = plan.rows;
    BundleHeader header;
    header.study_yaml = study_yaml_;
    header.environment = {{"warnings", {"a debug build"}}};
    header.identity = {{"cpu", "fake"}};
    header.started_at_ns = 1;
    RunContext context{disk(),
                       system_spawner(),
                       system_clock(),
                       backends,
                       observer_,
                       monitor_.get(),
                       interrupt_[0],
                       "test",
                       gpus_.get(),
                       profile_,
                       inputs_ ? &*inputs_ : nullptr};
    return run_study({study_, plan, preflight, header, folder(), resume}, context);
  }

  // Continues an interrupted run, without interruption.
  Result<RunSummary> resume() {
    observer_.interrupt_after = -1;
    observer_.interrupt_on_note = false;
    std::array<char, 8> drain{};
    EXPECT_GT(read(interrupt_[0], drain.data(), drain.size()), 0);
    return run(true);
  }

  // Requests to the arm's workers up to now: "load MODEL", "prepare PHASE NEW_TOKENS" or
  // "parity".
  std::vector<std::string> diary(const std::string& arm_name) const {
    std::ifstream file(scratch_ / arm_name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  int64_t asked(const std::string& arm_name, const std::string& what) const {
    return std::ranges::count(diary(arm_name), what);
  }

  fs::path folder() const { return scratch_ / "bundle"; }

  // Rows of a finished or interrupted run, after the checks that hold for every run.
  std::vector<Row> rows_of(const std::string& arm_name) {
    const auto bundle = read_bundle(folder());
    EXPECT_TRUE(bundle) << (bundle ? "" : bundle.error().message);
    if (!bundle) return {};
    std::set<std::pair<std::string, int64_t>> seen;
    std::vector<Row> rows;
    for (const Row& row : bundle->rows) {
      EXPECT_TRUE(seen.insert({row.cell_id, row.repetition}).second) << row.cell_id;
      if (row.arm == arm_name) rows.push_back(row);
    }
    for (size_t i = 0; i < bundle->rows.size(); ++i) {
      EXPECT_EQ(bundle->rows[i].order_index, static_cast<int64_t>(i));
    }
    return rows;
  }

  Json parity_of(const std::string& arm_name) {
    const auto bundle = read_bundle(folder());
    const std::string id = rows_of(arm_name).front().cell_id;
    const auto it = bundle->parity.find(id);
    return it == bundle->parity.end() ? Json() : it->second;
  }

  void expect_whole(const Result<RunSummary>& summary) {
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_FALSE(summary->interrupted);
    EXPECT_EQ(summary->rows, planned_rows_);
    const auto problems = verify_bundle(folder());
    ASSERT_TRUE(problems) << problems.error().message;
    for (const auto& problem : *problems) ADD_FAILURE() << problem.object << problem.problem;
  }

  fs::path scratch_;
  ScopedBackend fake_{{.name = "fake", .modes = kFakeModes, .shows_tokens = true, .costs = {{}}}};
  Study study_;
  std::string study_yaml_ = "name: test\n";  // as the bundle keeps it
  std::map<std::string, std::vector<std::string>> faults_;
  std::map<std::string, ArmReadiness> readiness_;
  FakeMemory memory_;
  bool profile_ = false;
  std::optional<BoundFiles> inputs_;
  std::unique_ptr<GpuSensors> gpus_;
  std::unique_ptr<Monitor> monitor_;
  CountingObserver observer_;
  std::array<int, 2> interrupt_{};
  int64_t planned_rows_ = 0;
};

inline int64_t count(const std::vector<Row>& rows, RowStatus status) {
  return std::ranges::count(rows, status, &Row::status);
}

}  // namespace assay
