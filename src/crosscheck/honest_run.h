// A sealed run as the harness leaves it, made by code for tests that change one thing in it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "artifact/read_bundle.h"
#include "base/clock.h"
#include "base/files/hash.h"
#include "identity/identity.h"
#include "study/plan.h"
#include "study/prompt_index.h"

namespace assay {

inline constexpr const char* kHonestStudy = R"(name: honest
models: [{name: m, path: model}]
arms:
  - {name: eager, backend: native, mode: eager, cache: dynamic}
  - {name: compiled, backend: native, mode: compiled, cache: static, dynamic: false}
phases: [prefill, kv_decode]
scenarios: [{name: two, prompt_tokens: [10, 30]}]
token_lengths: [4]
padding: {scope: scenario, multiple_of: 8}
processes: 2
repetitions: 4
warmup: 1
)";
inline constexpr int64_t kStart_ns = 1'795'600'510'000'000'000;
inline constexpr int64_t kStep_ns = 5'000'000'000;

inline Host honest_host() {
  Host host;
  host.cpu_model = "Example CPU";
  host.cpu_family = 6;
  host.cpu_model_number = 1;
  host.cpu_stepping = 2;
  host.cpus_allowed = {0, 1};
  return host;
}

inline BuildInfo honest_build() {
  BuildInfo build;
  build.version = "0.1.0";
  build.sha = std::string(40, 'a');
  build.dirty = false;
  build.compiler = "gcc 12.2.0";
  build.build_type = "Release";
  return build;
}

// A sealed run of the study, as the harness leaves it.
class HonestRun {
 public:
  HonestRun() : study_(parse_study(kHonestStudy, "study.yaml").value()), plan_(make_plan(study_)) {
    bundle_.complete = true;
    bundle_.study_yaml = kHonestStudy;
    write_manifest();
    for (const Unit& unit : plan_.units) add_unit(unit);
    for (size_t cell = 0; cell < plan_.cells.size(); ++cell) add_records(cell);
    const auto rows = std::ssize(bundle_.rows);
    const int64_t end = kStart_ns + (rows + 1) * kStep_ns;
    bundle_.manifest["completion"] = {{"finished_at", format_utc(end)},
                                      {"finished_at_ns", end},
                                      {"model_sha256", {{"m", std::string(64, 'b')}}},
                                      {"rows", rows},
                                      {"rows_by_status", {{"ok", rows}}}};
  }

  Bundle& bundle() { return bundle_; }
  std::vector<CommittedUnit>& units() { return units_; }
  // The first row of the arm's cell in kv_decode that is no warm-up.
  Row& row(const std::string& arm = "compiled") {
    return *std::ranges::find_if(bundle_.rows, [&](const Row& one) {
      return one.arm == arm && one.phase == Phase::kKvDecode && one.repetition == 0;
    });
  }
  Evidence& evidence() { return bundle_.evidence[row().cell_id.str()]; }
  Json& parity() { return bundle_.parity[row().cell_id.str()]; }

 private:
  void write_manifest() {
    Json arms = Json::array();
    std::vector<ArmIdentity> identities;
    for (const StudyArm& arm : study_.arms) {
      arms.push_back({{"name", arm.name},
                      {"backend", arm.backend},
                      {"mode", arm.mode},
                      {"cache", arm.cache},
                      {"dynamic", arm.dynamic},
                      {"options", arm.options}});
      identities.push_back({arm.name, arm.cache, arm.mode});
    }
    bundle_.environment = {{"host", host_to_json(honest_host())},
                           {"build", build_info_to_json(honest_build())}};
    bundle_.sittings = {{.started_at = format_utc(kStart_ns),
                         .started_at_ns = kStart_ns,
                         .environment = bundle_.environment}};
    bundle_.manifest = {
        {"schema_version", kBundleSchemaVersion},
        {"started_at", format_utc(kStart_ns)},
        {"started_at_ns", kStart_ns},
        {"plan_sha256", sha256_hex(to_json_text(plan_to_json(study_, plan_)))},
        {"study",
         {{"name", study_.name},
          {"baseline", study_.baseline},
          {"seed", study_.seed},
          {"order", run_order_name(study_.order)},
          {"warmup", study_.warmup},
          {"repetitions", study_.repetitions},
          {"processes", study_.processes},
          {"arms", arms}}},
        {"identity", identity_to_json(make_identity(honest_host(), honest_build()), identities)}};
  }

  void add_unit(const Unit& unit) {
    for (int64_t i = 0; i < unit.rows(); ++i) {
      add_row(unit,
              i < unit.warmups ? unit.first_warmup + i : unit.first_repetition + i - unit.warmups);
    }
    units_.push_back({unit.index, std::ssize(bundle_.rows)});
  }

  void add_row(const Unit& unit, int64_t repetition) {
    const Cell& cell = plan_.cells[unit.cell];
    const StudyArm& arm = study_.arms[cell.arm];
    const StudyScenario& scenario = study_.scenarios[cell.scenario];
    const size_t prompt = prompt_index(repetition, scenario.prompt_tokens.size());
    Row row;
    row.cell_id = cell.id;
    row.backend = arm.backend;
    row.arm = arm.name;
    row.model = study_.models[cell.model].name;
    row.dtype = "fp32";
    row.cache = arm.cache;
    row.compile_mode = arm.mode;
    row.dynamic = arm.dynamic;
    row.padding = padding_scope_name(study_.padding_scope);
    row.phase = cell.phase;
    row.scenario = scenario.name;
    row.prompt_id = std::to_string(prompt);
    row.batch = cell.batch;
    row.prompt_tokens = scenario.prompt_tokens[prompt];
    row.padded_tokens = 32;
    row.new_tokens = cell.new_tokens;
    row.repetition = repetition;
    row.block = unit.block;
    row.order_index = std::ssize(bundle_.rows);
    row.cold = repetition < 0;
    row.process = unit.round;
    row.latency_ms = 1.0 + 0.01 * static_cast<double>(row.order_index);
    row.tokens = std::max<int64_t>(1, cell.new_tokens);
    row.counts[Counter::kUniqueGraphs] = repetition < 0 ? 1 : 0;
    row.started_at_ns = kStart_ns + (row.order_index + 1) * kStep_ns;
    bundle_.rows.push_back(std::move(row));
  }

  void add_records(size_t index) {
    const Cell& cell = plan_.cells[index];
    const StudyArm& arm = study_.arms[cell.arm];
    Evidence& evidence = bundle_.evidence[cell.id];
    evidence.cell_id = cell.id;
    evidence.phase = cell.phase;
    evidence.requested = {.backend = arm.backend,
                          .mode = arm.mode,
                          .cache = arm.cache,
                          .dynamic = arm.dynamic,
                          .dtype = ""};
    evidence.model_hash = std::string(64, 'b');
    evidence.compiler_real = CompilerReal::kYes;
    evidence.worker.emplace().dtype = "fp32";
    for (int64_t process = 0; process < study_.processes; ++process) {
      evidence.processes.push_back({.process = process,
                                    .compiler_real = CompilerReal::kYes,
                                    .counters = Counts{{Counter::kUniqueGraphs, 4}}});
    }
    evidence.reported = worker_report({{"compiler_real", "yes"}});
    evidence.reported_by = 0;
    bundle_.parity[cell.id] = {{"passed", true},
                               {"baseline_arm", study_.baseline},
                               {"generated_tokens", cell.new_tokens + 1},
                               {"compared_tokens", 2 * (cell.new_tokens + 1)},
                               {"first_difference", nullptr},
                               {"error", nullptr}};
  }

  Study study_;
  Plan plan_;
  Bundle bundle_;
  std::vector<CommittedUnit> units_;
};

}  // namespace assay
