// assay plan: the cells and units that a run would do, without running.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "study/estimate.h"
#include "study/filter.h"
#include "study/plan.h"
#include "study/study.h"

namespace assay::cli {
namespace {

struct PlanOptions {
  std::string study;
  bool units = false;
  std::vector<std::string> only;
  double read_gb_per_s = kAssumedReadBytesPerS / 1e9;
};

Table cell_table(const Study& study, const Plan& plan,
                 const std::vector<std::optional<double>>& bytes, double read_bytes_per_s) {
  Table table;
  table.title = "Cells";
  table.columns = {{"cell_id", Align::kLeft},
                   {"arm", Align::kLeft},
                   {"model", Align::kLeft},
                   {"phase", Align::kLeft},
                   {"scenario", Align::kLeft},
                   {"new_tokens"},
                   {"batch"},
                   {"warmup"},
                   {"repetitions"},
                   {"estimate_s"}};
  for (const Cell& cell : plan.cells) {
    std::optional<double> seconds;
    if (bytes[cell.model]) {
      seconds = static_cast<double>(study.warmup + study.repetitions) *
                repetition_seconds(study, cell, *bytes[cell.model], read_bytes_per_s);
    }
    table.rows.push_back(
        {TableCell::of(cell.id), TableCell::of(study.arms[cell.arm].name),
         TableCell::of(study.models[cell.model].name), TableCell::of(cell.phase),
         TableCell::of(study.scenarios[cell.scenario].name),
         cell.new_tokens > 0 ? TableCell::of(cell.new_tokens) : TableCell::absent(),
         TableCell::of(cell.batch), TableCell::of(study.warmup), TableCell::of(study.repetitions),
         TableCell::of(seconds, 3)});
  }
  return table;
}

Table unit_table(const Study& study, const Plan& plan) {
  Table table;
  table.title = "Units, in the order of the run";
  table.columns = {
      {"unit"},        {"cell_id", Align::kLeft}, {"block"}, {"warmup"}, {"first_repetition"},
      {"repetitions"}, {"first_order_index"}};
  for (const Unit& unit : plan.units) {
    table.rows.push_back({TableCell::of(unit.index), TableCell::of(plan.cells[unit.cell].id),
                          TableCell::of(unit.block),
                          TableCell::of(unit.first_of_cell ? study.warmup : int64_t{0}),
                          TableCell::of(unit.first_repetition), TableCell::of(unit.repetitions),
                          TableCell::of(unit.first_order_index)});
  }
  return table;
}

// What stands below the table: counts, and the estimate with how it was made.
std::string summary(const Study& study, const Plan& plan, std::optional<double> seconds,
                    const PlanOptions& options) {
  std::string text = fmt::format(
      "{} cells ({} conditions x {} arms), {} units, {} rows ({} of them warm-ups), {} order, seed "
      "{}\n",
      plan.cells.size(), plan.cells.size() / study.arms.size(), study.arms.size(),
      plan.units.size(), plan.rows, study.warmup * static_cast<int64_t>(plan.cells.size()),
      run_order_name(study.order), study.seed);
  if (study.stopping) {
    text += fmt::format("optional stopping may add repetitions, up to {} a cell\n",
                        study.stopping->max_repetitions);
  }
  if (!seconds) return text + "no time estimate: the size of a model isn't known\n";
  return text + fmt::format(
                    "time estimate: about {}\n  one read of the weights on disk at {} GB/s for "
                    "each generated token and for each 16\n  prompt tokens; without attention, "
                    "loading and parity checks. --read-gb-per-s gives this\n  machine's figure "
                    "(`assay doctor` measures it)\n",
                    format_duration(*seconds), format_significant(options.read_gb_per_s, 3));
}

// What each arm would be on this machine.
Table gate_table(const Study& study, BackendSet& backends) {
  Table table;
  table.title = "Arms here";
  table.columns = {{"arm", Align::kLeft},
                   {"here", Align::kLeft},
                   {"runs as", Align::kLeft},
                   {"why", Align::kLeft},
                   {"fix", Align::kLeft}};
  const auto text = [](const std::string& value) {
    return value.empty() ? TableCell::absent() : TableCell::of(value);
  };
  for (const StudyArm& arm : study.arms) {
    const ArmGate gate = backends.at(arm.backend)->gate(arm);
    const bool runs = gate.verdict != ArmGate::Verdict::kImpossible;
    table.rows.push_back({TableCell::of(arm.name),
                          TableCell::of(std::string(gate_verdict_name(gate.verdict))),
                          runs ? TableCell::of(gate.fallback.empty() ? arm.mode : gate.fallback)
                               : TableCell::absent(),
                          text(gate.reason), text(gate.fix)});
  }
  return table;
}

// Of each model, where it can be known; a model that can't be read is named on stderr.
std::vector<std::optional<double>> model_bytes(const Study& study, BackendSet& backends) {
  std::vector<std::optional<double>> bytes;
  for (const StudyModel& model : study.models) {
    auto& known = bytes.emplace_back();
    if (model.arch.empty()) {
      const Result<double> found = weight_bytes(model.path);
      if (found) known = *found;
      if (!found) fmt::print(stderr, "assay: note: {}\n", found.error().message);
      continue;
    }
    const auto facts = backends.at("torch")->inspect(model, {});
    if (facts && facts->weight_bytes) known = static_cast<double>(*facts->weight_bytes);
    if (!facts) fmt::print(stderr, "assay: note: {}\n", facts.error().message);
  }
  return bytes;
}

Json plan_json(const Study& study, const Plan& plan,
               const std::vector<std::optional<double>>& bytes, const PlanOptions& options,
               const Table& gates) {
  const double read_bytes_per_s = options.read_gb_per_s * 1e9;
  const auto seconds = plan_seconds(study, plan, bytes, read_bytes_per_s);
  Json json;
  json["study"] = study.name;
  json["order"] = run_order_name(study.order);
  json["seed"] = study.seed;
  json["counts"] = {{"cells", plan.cells.size()},
                    {"arms", study.arms.size()},
                    {"units", plan.units.size()},
                    {"rows", plan.rows}};
  json["estimate_s"] = seconds ? Json(*seconds) : Json(nullptr);
  json["estimate_read_gb_per_s"] = options.read_gb_per_s;
  json["arms"] = gates.to_json();
  json["cells"] = cell_table(study, plan, bytes, read_bytes_per_s).to_json();
  if (options.units) json["units"] = unit_table(study, plan).to_json();
  return json;
}

Result<int> run_plan(const PlanOptions& options, OutputFormat format) {
  ASSAY_TRY(Study study, read_study(options.study));
  ASSAY_CHECK(keep_only(study, options.only));
  const Plan plan = make_plan(study);
  BackendSet backends = make_backends();
  const auto bytes = model_bytes(study, backends);
  if (format == OutputFormat::kCsv) {
    fmt::print("{}", (options.units ? unit_table(study, plan)
                                    : cell_table(study, plan, bytes, options.read_gb_per_s * 1e9))
                         .render(format));
    return 0;
  }
  const Table gates = gate_table(study, backends);
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(plan_json(study, plan, bytes, options, gates)));
    return 0;
  }
  const double read_bytes_per_s = options.read_gb_per_s * 1e9;
  const Table table =
      options.units ? unit_table(study, plan) : cell_table(study, plan, bytes, read_bytes_per_s);
  fmt::print("{}\n{}\n{}", table.render(format), gates.render(format),
             summary(study, plan, plan_seconds(study, plan, bytes, read_bytes_per_s), options));
  return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, Selected& selected) {
  CLI::App* command =
      app.add_subcommand("plan", "the cells and units that a run would do, without running");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("study", options->study, "study file")->required()->type_name("STUDY");
  command->add_flag("--units", options->units, "list every unit in the order of the run");
  command
      ->add_option("--read-gb-per-s", options->read_gb_per_s,
                   "read bandwidth that the time estimate assumes")
      ->check(CLI::Range(1e-3, 1e6))
      ->type_name("GB/S");
  add_only_option(*command, options->only);
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return run_plan(*options, *format); }; });
}

}  // namespace assay::cli
