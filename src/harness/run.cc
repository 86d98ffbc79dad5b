// The plan's units in order, those skipped that an earlier run has committed.
#include "harness/run.h"
#include "harness/device_limits.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/files/hash.h"
#include "harness/after_timing.h"
#include "harness/quality.h"
#include "harness/run_inputs.h"
#include "harness/unit_runner.h"
#include "study/load_study.h"

namespace assay {
namespace {

class Run {
 public:
  Run(const RunRequest& request, RunContext& context, BundleWriter bundle)
      : request_(request),
        study_(request.study),
        plan_(request.plan),
        context_(context),
        bundle_(std::move(bundle)),
        state_(study_, plan_),
        units_(study_, plan_, bundle_, context, state_) {}

  Status restore();
  // False: interrupted.
  Result<bool> run_units();
  Result<RunSummary> finish(bool interrupted);

 private:
  Evidence committed_evidence(Evidence evidence, int64_t processes) const;
  void tell_readiness();
  std::vector<const Unit*> units_left() const;
  // A model of the study, whose units take turns with those of the others.
  struct ModelPart {
    size_t model;
    AfterTiming after;
    size_t units_left = 0;
    std::optional<ModelSetup> setup = {};  // once it is needed
  };
  // The part's setup, which is made where it isn't there; null: interrupted.
  Result<const ModelSetup*> set_up(ModelPart& part);
  // The units in their order. False: interrupted, as below.
  Result<bool> run_in_turns(const std::vector<const Unit*>& units, std::vector<ModelPart>& parts);
  Result<bool> run_unit(const Unit& unit, const Unit* next, ModelPart& part);
  // Once the part's units are over: makes the requests beyond timing, and holds weights against the
  // model's.
  Result<bool> finish_model(ModelPart& part);
  Result<bool> ask_the_last(ModelPart& part);
  // Drops the unit, and returns true, if the rounds before it decided its stratum.
  bool drop_if_decided(const Unit& unit);
  void drop_decided(std::vector<const Unit*>& units);
  Status record_decisions(size_t model);
  Status check_inputs(const Json& first_environment) const;
  Status check_model_hash(size_t model, const std::string& hash);
  bool interrupted() const;

  const RunRequest& request_;
  const Study& study_;
  const Plan& plan_;
  RunContext& context_;
  BundleWriter bundle_;
  RunState state_;
  UnitRunner units_;
  std::map<size_t, std::string> model_hashes_;  // as far as workers have told them
  int64_t rows_before_ = 0;                     // committed by earlier runs
  bool limits_known_ = false;
};

// Takes over an earlier run's state: of its committed units, and the parity that it has recorded.
Status Run::restore() {
  std::map<std::string, size_t> cell_by_id;
  std::map<std::pair<size_t, int64_t>, int64_t> round_of_block;  // a cell's units have one each
  for (size_t i = 0; i < plan_.cells.size(); ++i) cell_by_id[plan_.cells[i].id] = i;
  for (const auto& [unit, note] : bundle_.committed_units()) {
    if (unit < 0 || unit >= static_cast<int64_t>(plan_.units.size())) {
      return bad_input("{}: expected units of the plan, found unit {} committed",
                       request_.folder.string(), unit);
    }
    const std::string name = fmt::format("{}: note of unit {}", request_.folder.string(), unit);
    ASSAY_TRY(const int64_t extra, json_int(note, "extra_rows", name));
    ASSAY_TRY(const std::string hash, json_string(note, "model_hash", name));
    const Unit& planned = plan_.units[static_cast<size_t>(unit)];
    state_.extra_repetitions[planned.cell] += extra;
    round_of_block[{planned.cell, planned.block}] = planned.round;
    const size_t model = plan_.cells[planned.cell].model;
    if (!hash.empty()) model_hashes_[model] = hash;
  }
  if (!request_.resume) return {};
  ASSAY_TRY(const Bundle so_far, read_bundle(request_.folder));
  ASSAY_CHECK(check_inputs(so_far.environment));
  for (const Row& row : so_far.rows) {
    const auto at = cell_by_id.find(row.cell_id);
    if (at == cell_by_id.end()) continue;
    const size_t cell = at->second;
    const int64_t round = round_of_block[{cell, row.block}];
    int64_t& processes = state_.processes[cell].count;
    processes = std::max(processes, row.process.value_or(-1) + 1);
    state_.note(cell, round, row);
  }
  for (const auto& [id, evidence] : so_far.evidence) {
    if (cell_by_id.contains(id)) {
      const size_t cell = cell_by_id[id];
      state_.evidence.restore(cell, committed_evidence(evidence, state_.processes[cell].count));
    }
  }
  for (const auto& [id, parity] : so_far.parity) {
    if (cell_by_id.contains(id)) state_.cells_with_parity.insert(cell_by_id[id]);
  }
  rows_before_ = state_.committed_rows = static_cast<int64_t>(so_far.rows.size());
  return {};
}

// Evidence without the failures of units that were not committed, which are run again, and without
// the processes that served only such units.
Evidence Run::committed_evidence(Evidence evidence, int64_t processes) const {
  std::erase_if(evidence.failures, [&](const EvidenceFailure& failure) {
    return !bundle_.committed_units().contains(failure.unit);
  });
  std::erase_if(evidence.gpu_neighbours, [&](const EvidenceNeighbour& one) {
    return !bundle_.committed_units().contains(one.unit);
  });
  std::erase_if(evidence.processes,
                [&](const EvidenceProcess& one) { return one.process >= processes; });
  if (evidence.reported_by.value_or(processes) >= processes) evidence.reported_by.reset();
  return evidence;
}

// A model whose rows are committed is known by the hash that its workers tell, too.
Status Run::check_inputs(const Json& first_environment) const {
  std::vector<std::string> known;
  for (const auto& [model, hash] : model_hashes_) {
    known.push_back(model_owner(study_.models[model]));
  }
  return check_same_inputs(first_environment, request_.header.environment, known);
}

Status Run::check_model_hash(size_t model, const std::string& hash) {
  const auto before = model_hashes_.find(model);
  if (before == model_hashes_.end() || hash.empty() || before->second == hash) return {};
  return bad_input("model \"{}\": expected hash {} as in the committed rows, found {}",
                   study_.models[model].name, before->second, hash);
}

bool Run::interrupted() const {
  pollfd wait{context_.interrupt_fd, POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

// Tells the user the readiness of arms that aren't ready, and puts them into their evidence.
void Run::tell_readiness() {
  for (size_t arm = 0; arm < study_.arms.size(); ++arm) {
    const StudyArm& study_arm = study_.arms[arm];
    const ArmReadiness readiness = context_.backends.at(study_arm.backend)->readiness(study_arm);
    if (readiness.verdict == ArmReadiness::Verdict::kReady) continue;
    state_.evidence.set_readiness(arm, readiness);
    context_.observer.on_note(
        readiness.verdict == ArmReadiness::Verdict::kImpossible
            ? fmt::format("arm \"{}\" can't run here: {}", study_arm.name, readiness.reason)
            : fmt::format("arm \"{}\" would run as {}: {}", study_arm.name, readiness.fallback,
                          readiness.reason));
  }
}

std::vector<const Unit*> Run::units_left() const {
  std::vector<const Unit*> units;
  for (const Unit& unit : plan_.units) {
    if (!bundle_.committed_units().contains(unit.index)) units.push_back(&unit);
  }
  return units;
}

Result<bool> Run::run_units() {
  std::vector<const Unit*> left = units_left();
  tell_readiness();
  int64_t rows_left = 0;
  for (const Unit* unit : left) rows_left += unit->rows();
  context_.observer.on_start(rows_before_, rows_before_ + rows_left, left);
  drop_decided(left);
  std::vector<ModelPart> parts;
  for (size_t model = 0; model < study_.models.size(); ++model) {
    parts.push_back(
        {model, AfterTiming(study_, plan_, model, bundle_, context_, state_, units_.workers())});
  }
  for (const Unit* unit : left) ++parts[plan_.cells[unit->cell].model].units_left;
  // An interrupted run may have left the last questions open.
  for (ModelPart& part : parts) {
    if (part.units_left > 0) continue;
    ASSAY_TRY(const bool went_on, finish_model(part));
    if (!went_on) return false;
  }
  return run_in_turns(left, parts);
}

Result<bool> Run::run_in_turns(const std::vector<const Unit*>& units,
                               std::vector<ModelPart>& parts) {
  std::optional<std::pair<size_t, int64_t>> turn;  // whose processes live: model and round
  for (size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = *units[i];
    ModelPart& part = parts[plan_.cells[unit.cell].model];
    --part.units_left;
    if (!drop_if_decided(unit)) {
      if (interrupted()) return false;
      const std::pair now(part.model, unit.round);
      if (turn != now) units_.workers().begin_round(unit.round);
      turn = now;
      ASSAY_TRY(const bool went_on,
                run_unit(unit, i + 1 < units.size() ? units[i + 1] : nullptr, part));
      if (!went_on) return false;
    }
    if (part.units_left > 0) continue;
    ASSAY_TRY(const bool went_on, finish_model(part));
    if (!went_on) return false;
  }
  return true;
}

bool Run::drop_if_decided(const Unit& unit) {
  if (!state_.decisions) return false;
  if (!state_.decisions->over(plan_.cells[unit.cell].condition, unit.round)) return false;
  state_.dropped_units.insert(unit.index);
  context_.observer.on_dropped(plan_.cells[unit.cell], unit);
  return true;
}

// Drops units of strata that the rows of an earlier sitting have decided: that needs no worker.
// Only the first round of a condition that has units left is looked at: those before it are whole.
void Run::drop_decided(std::vector<const Unit*>& units) {
  std::set<size_t> open;  // conditions
  std::erase_if(units, [&](const Unit* unit) {
    const size_t condition = plan_.cells[unit->cell].condition;
    if (open.contains(condition)) return false;
    if (drop_if_decided(*unit)) return true;
    open.insert(condition);
    return false;
  });
}

// Writes each stratum's state at its end into the evidence of the model's cells, once.
Status Run::record_decisions(size_t model) {
  if (!state_.decisions) return {};
  bool wrote = false;
  for (size_t cell = 0; cell < plan_.cells.size(); ++cell) {
    if (plan_.cells[cell].model != model) continue;
    Evidence& evidence = state_.evidence.of(cell);
    if (evidence.stopping) continue;
    evidence.stopping = state_.decisions->summary(plan_.cells[cell].condition);
    ASSAY_CHECK(state_.evidence.write(cell, bundle_));
    wrote = true;
  }
  return wrote ? bundle_.commit_cells() : Status{};
}

Result<const ModelSetup*> Run::set_up(ModelPart& part) {
  if (part.setup) return &*part.setup;
  ASSAY_CHECK(bundle_.begin_sitting());
  if (!std::exchange(limits_known_, true)) {
    const uint64_t largest = std::ranges::max(request_.preflight.weight_bytes);
    units_.row_judge().set_read_limits(measure_read_limits(study_, largest, context_));
    units_.set_matrix_limits(measure_matrix_limits(study_, context_));
  }
  ASSAY_TRY(part.setup, set_up_model(study_, plan_, part.model, bundle_, context_, units_.workers(),
                                     state_.evidence, state_.cells_with_parity));
  if (!part.setup) return nullptr;
  ASSAY_CHECK(check_model_hash(part.model, part.setup->model_hash));
  if (!part.setup->model_hash.empty()) model_hashes_[part.model] = part.setup->model_hash;
  return &*part.setup;
}

Result<bool> Run::run_unit(const Unit& unit, const Unit* next, ModelPart& part) {
  ASSAY_TRY(const ModelSetup* setup, set_up(part));
  if (!setup) return false;
  ASSAY_TRY(const UnitEnd end, units_.run(unit, *setup, request_.preflight.lengths[part.model]));
  if (end == UnitEnd::kInterrupted) return false;
  ASSAY_TRY(const bool asked, part.after.unit_over(unit, *setup));
  if (!asked) return false;
  // If the next arm's process will end this one's, the last round's is asked now.
  const size_t arm = plan_.cells[unit.cell].arm;
  if (unit.round + 1 < rounds(study_) || !units_.workers().exclusive()) return true;
  const bool last =
      !next || plan_.cells[next->cell].arm != arm || plan_.cells[next->cell].model != part.model;
  return last ? part.after.run(arm, *setup) : true;
}

Result<bool> Run::finish_model(ModelPart& part) {
  ASSAY_TRY(const bool went_on, ask_the_last(part));
  if (!went_on) return false;
  return measure_quality(study_, plan_, part.model, bundle_, context_, units_.workers(),
                         state_.evidence);
}

Result<bool> Run::ask_the_last(ModelPart& part) {
  ASSAY_CHECK(record_decisions(part.model));
  ASSAY_CHECK(part.after.record_lost());
  if (!part.setup) {
    if (!part.after.owes()) return true;
    if (interrupted()) return false;
    units_.workers().begin_round(0);
  }
  ASSAY_TRY(const ModelSetup* setup, set_up(part));
  if (!setup) return false;
  // The baseline first: the others' answers are compared and recorded at once.
  for (const size_t arm : arms_baseline_first(study_)) {
    ASSAY_TRY(const bool went_on, part.after.run(arm, *setup));
    if (!went_on) return false;
  }
  ASSAY_CHECK(part.after.record_uncompared());
  return true;
}

Result<RunSummary> Run::finish(bool interrupted) {
  if (!interrupted) units_.workers().retire_all();
  RunSummary summary;
  summary.interrupted = interrupted;
  ASSAY_TRY(const Bundle bundle, read_bundle(request_.folder));
  for (const Row& row : bundle.rows) ++summary.rows_by_status[row.status];
  summary.rows = static_cast<int64_t>(bundle.rows.size());
  if (interrupted) return summary;
  Json models = Json::object();
  for (const auto& [model, hash] : model_hashes_) models[study_.models[model].name] = hash;
  Json weights = Json::object();
  for (size_t model = 0; model < study_.models.size(); ++model) {
    const uint64_t bytes = request_.preflight.weight_bytes[model];
    if (bytes > 0) weights[study_.models[model].name] = bytes;
  }
  const int64_t now_ns = context_.clock.wall_ns();
  ASSAY_CHECK(bundle_.seal({{"finished_at", format_utc(now_ns)},
                            {"finished_at_ns", now_ns},
                            {"model_sha256", std::move(models)},
                            {"model_weight_bytes", std::move(weights)},
                            {"rows", summary.rows},
                            {"rows_by_status", status_counts_to_json(summary.rows_by_status)}}));
  return summary;
}

void show_warnings(const Json& environment, RunObserver& observer) {
  const auto warnings = environment.find("warnings");
  if (warnings == environment.end() || !warnings->is_array()) return;
  for (const Json& warning : *warnings) {
    if (warning.is_string()) observer.on_warning(warning.get<std::string>());
  }
}

}  // namespace

Json study_summary(const Study& study) {
  Json arms = Json::array();
  for (const StudyArm& arm : study.arms) {
    arms.push_back({{"name", arm.name},
                    {"backend", arm.backend},
                    {"mode", arm.mode},
                    {"cache", arm.cache},
                    {"dynamic", arm.dynamic},
                    {"threads", arm.threads},
                    {"options", arm.options}});
  }
  Json summary = {{"name", study.name},           {"baseline", study.baseline},
                  {"seed", study.seed},           {"order", run_order_name(study.order)},
                  {"warmup", study.warmup},       {"repetitions", study.repetitions},
                  {"processes", study.processes}, {"arms", std::move(arms)}};
  if (!study.require.empty()) summary["require"] = study.require;
  if (study.load) {
    summary["load"]["slo"] = record_to_json(study.load->slo);
    for (const Cell& cell : make_plan(study).cells) {
      OfferedLoad load = offered_load(study, cell, 0);
      load.trace.clear();
      summary["load"]["offered"][study.scenarios[cell.scenario].name] = record_to_json(load);
    }
  }
  if (study.sides) summary["sides"] = {{"base", study.sides->base}, {"cand", study.sides->cand}};
  return summary;
}

Result<RunSummary> run_study(RunRequest request, RunContext& context) {
  request.header.study = study_summary(request.study);
  request.header.plan_hash = sha256_hex(to_json_text(plan_to_json(request.study, request.plan)));
  auto bundle = request.resume
                    ? BundleWriter::resume(context.files, request.folder, request.header)
                    : BundleWriter::create(context.files, request.folder, request.header);
  if (!bundle) return std::unexpected(std::move(bundle).error());
  show_warnings(request.header.environment, context.observer);
  if (context.inputs) {
    bundle->check_commits([&]() -> std::optional<CommitRefusal> {
      auto change = context.inputs->changed();
      if (!change) return std::nullopt;
      const int64_t now_ns = context.clock.wall_ns();
      change->record["at"] = format_utc(now_ns);
      change->record["at_ns"] = now_ns;
      return CommitRefusal{std::move(change->message), std::move(change->record)};
    });
  }
  Run run(request, context, std::move(bundle).value());
  ASSAY_CHECK(run.restore());
  ASSAY_TRY(const bool finished, run.run_units());
  return run.finish(!finished);
}

}  // namespace assay
