// assay plan: the cells and units that a run would do, without running.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/process/terminal.h"
#include "base/records/backend_traits.h"
#include "base/text/text.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/fitted_table.h"
#include "cli/option_types.h"
#include "harness/decisions.h"
#include "report/fitting.h"
#include "study/arm_options.h"
#include "study/command_arm.h"
#include "study/default_processes.h"
#include "study/estimate.h"
#include "study/filter.h"
#include "study/gpu_arm.h"
#include "study/plan.h"
#include "study/study.h"

namespace assay::cli {
namespace {

// Names on stderr the thing that is waited for, if it takes more than a few seconds and the machine
// has room for a thread that watches the time.
class WaitingNote {
 public:
  explicit WaitingNote(std::string text) {
    try {
      thread_ = std::jthread([this, said = std::move(text)](const std::stop_token& over) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, over, std::chrono::seconds(3), [] { return false; });
        if (!over.stop_requested()) print_remark("note", said);
      });
    } catch (const std::system_error&) {
      return;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;  // last: stops before the members that it waits on go
};

struct PlanOptions {
  std::string study;
  bool cells = false;
  bool units = false;
  bool probe = false;
  std::vector<std::string> only;
  double read_gb_per_s = kAssumedReadBytesPerS / 1e9;
  double gpu_read_gb_per_s = kAssumedGpuReadBytesPerS / 1e9;
};

// An arm's readiness on this machine, or the program that would have to be started for it and
// wasn't.
struct ArmHere {
  std::optional<ArmReadiness> readiness;
  std::string program = {};
};

std::vector<ArmHere> arms_here(const Study& study, BackendSet& backends, bool probe) {
  std::vector<ArmHere> arms;
  for (const StudyArm& arm : study.arms) {
    Backend& backend = *backends.at(arm.backend);
    auto program = backend.readiness_program(arm);
    if (program && !probe) {
      arms.push_back({std::nullopt, *std::move(program)});
    } else {
      std::optional<WaitingNote> waiting;
      if (program) waiting.emplace(fmt::format("arm \"{}\": waiting for {}", arm.name, *program));
      arms.push_back({backend.readiness(arm)});
    }
  }
  return arms;
}

// A study's plan and how long it would take.
struct Estimated {
  const Study& study;
  const Plan& plan;
  EstimateBasis basis;
  std::vector<std::optional<TimeEstimate>> cells;
  std::optional<TimeEstimate> whole;
  bool impossible = false;  // an arm can't run here; it is counted as if it could
};

Table cell_table(const Estimated& estimated) {
  const auto& [study, plan, basis, cells, whole, impossible] = estimated;
  Table table;
  table.title = "Cells";
  table.columns = columns_of(
      "<cell_id|<arm|<model|<phase|<scenario|new_tokens|batch|processes|"
      "warmup|repetitions|estimate_s");
  const int64_t all_rounds = rounds(study);
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = plan.cells[i];
    std::optional<double> seconds;
    if (cells[i]) seconds = cells[i]->total();
    table.rows.push_back({cell.id, study.arms[cell.arm].name, study.models[cell.model].name,
                          phase_name(cell.phase), study.scenarios[cell.scenario].name,
                          cell.new_tokens > 0 ? TableCell(cell.new_tokens) : TableCell::absent(),
                          cell.batch, all_rounds, all_rounds * study.warmup,
                          round_begin(study, all_rounds), TableCell(seconds, 3)});
  }
  return table;
}

// `process`: as planned; a worker that is lost is replaced, and those behind it are one later.
Table unit_table(const Plan& plan) {
  Table table;
  table.title = "Units, in the order of the run";
  table.columns = columns_of(
      "unit|<cell_id|process|block|warmup|first_repetition|repetitions|"
      "first_order_index");
  for (const Unit& unit : plan.units) {
    table.rows.push_back({unit.index, plan.cells[unit.cell].id, unit.round, unit.block,
                          unit.warmups, unit.first_repetition, unit.repetitions,
                          unit.first_order_index});
  }
  return table;
}

// The rules of study/estimate.h.
std::string processor_rules(const PlanOptions& options) {
  return fmt::format(
      "  Assumptions on the processor: a decode step reads all weights once, and a prompt reads "
      "them once for every 16 tokens, but the vocabulary's once. The read bandwidth is {} GB/s "
      "(--read-gb-per-s; `assay doctor` measures it). The harness takes {} ms a row. Attention "
      "takes no time. Compilation takes a PyTorch arm {} s for each cell in each process; of "
      "native "
      "arms it counts only for those that keep no kernels on disk.\n",
      format_significant(options.read_gb_per_s, 3), format_significant(kRowSeconds * 1e3, 1),
      backend_traits("torch").costs->processor_compile);
}

// The rules of study/gpu_arm.h.
std::string gpu_rules(const PlanOptions& options) {
  const auto number = [](double value) { return format_significant(value, 2); };
  const BackendCosts& torch = *backend_traits("torch").costs;
  return fmt::format(
      "  Assumptions on a GPU, from one host with an H200 (another host took up to {} times as "
      "long): a pass takes {} ms a layer in an eager arm, {} ms in a compiled arm and {} ms "
      "with CUDA graphs, but at least the time to read the weights at {} GB/s "
      "(--gpu-read-gb-per-s). Compiling a graph takes {} s a layer, for each cell and for "
      "parity before timing. A worker takes {} s to start, and {} s a layer to explain a "
      "call.\n",
      number(kSlowerHost), number(torch.gpu_eager_layer * 1e3),
      number(torch.gpu_compiled_layer * 1e3), number(torch.gpu_graphed_layer * 1e3),
      format_significant(options.gpu_read_gb_per_s, 3), number(torch.gpu_compile_layer),
      number(torch.gpu_start), number(torch.gpu_explain_layer));
}

// The study with its stopping by decisions replaced by so many rounds.
Study with_rounds(Study study, int64_t count) {
  study.repetitions = round_begin(study, count);
  study.processes = count;
  study.stopping.reset();
  return study;
}

// The range in which a stratum of a study that stops by decisions may end, and its cost.
struct StoppingRange {
  int64_t least_rounds = 0;
  int64_t most_rounds = 0;
  std::optional<double> least_s;    // if every stratum is decided at the first look that can
  std::optional<double> without_s;  // if the study had no stopping
};

StoppingRange stopping_range(const Estimated& estimated) {
  const Study& study = estimated.study;
  const auto seconds = [&](int64_t count) -> std::optional<double> {
    const Study fixed = with_rounds(study, count);
    const auto estimate = plan_estimate(fixed, make_plan(fixed), estimated.basis);
    if (!estimate) return std::nullopt;
    return estimate->total();
  };
  const int64_t most = rounds(study);
  const int64_t least = std::min(least_rounds_to_decide(study), most);
  return {least, most, seconds(least), seconds(study.processes)};
}

std::string stopping_lines(const Estimated& estimated) {
  const Study& study = estimated.study;
  const StoppingRange range = stopping_range(estimated);
  std::string text = fmt::format(
      "stopping: a stratum ends after {} to {} rounds of processes ({} to {} repetitions a cell), "
      "as soon as its fastest arm is shown to be faster than each other arm or within {} % of "
      "it. Without stopping, a cell has {} repetitions.\n",
      range.least_rounds, range.most_rounds, round_begin(study, range.least_rounds),
      round_begin(study, range.most_rounds), format_significant(study.stopping->margin * 100, 2),
      study.repetitions);
  if (!estimated.whole || !range.least_s || !range.without_s) return text;
  return text + fmt::format("  time: from about {} to {}; without stopping: {}\n",
                            format_duration(*range.least_s),
                            format_duration(estimated.whole->total()),
                            format_duration(*range.without_s));
}

Json stopping_json(const Estimated& estimated) {
  if (!stops_when_decided(estimated.study)) return nullptr;
  const StoppingRange range = stopping_range(estimated);
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  return {{"least_rounds", range.least_rounds},
          {"most_rounds", range.most_rounds},
          {"least_estimate_s", number(range.least_s)},
          {"without_estimate_s", number(range.without_s)}};
}

// The number of processes that share a cell, and the study or the default that decided it.
std::string processes_line(const Study& study) {
  const std::string by = study.processes_given
                             ? "as the study says"
                             : fmt::format("by default: {}", study.processes_because);
  if (study.processes == 1) return fmt::format("processes: 1 ({})\n", by);
  return fmt::format(
      "processes: {} ({})\n  An arm's processes run in turn, share a cell's {}, and make {} "
      "each.\n",
      study.processes, by, counted(study.repetitions, "repetition"),
      counted(study.warmup, "warm-up"));
}

// "12 s compiling". The time of arms that compile on the processor isn't known: only their run
// shows if their kernels are on disk, and the cost of compiling them if not.
std::string compiling_text(const Estimated& estimated) {
  const Study& study = estimated.study;
  bool unknown = false;
  for (size_t i = 0; i < study.arms.size(); ++i) {
    const StudyArm& arm = study.arms[i];
    const bool compiles = !is_foreign(arm) && arm.mode != "eager";
    unknown |= compiles && !estimated.basis.on_gpu[i];
  }
  const double known_s = estimated.whole->preparing_s;
  if (!unknown) return format_duration(known_s);
  return known_s > 0 ? fmt::format("{} or more", format_duration(known_s)) : "an unknown time";
}

// The page's first lines: counts, and the estimate with its basis.
std::string summary(const Estimated& estimated, const PlanOptions& options) {
  const auto& [study, plan, basis, cells, whole, impossible] = estimated;
  std::string text = fmt::format(
      "{} ({} x {}), {}, {} ({} of them warm-ups), {} order, seed {}\n",
      counted(std::ssize(plan.cells), "cell"),
      counted(std::ssize(plan.cells) / std::ssize(study.arms), "condition"),
      counted(std::ssize(study.arms), "arm"), counted(std::ssize(plan.units), "unit"),
      counted(plan.rows, "row"),
      plan.rows - round_begin(study, rounds(study)) * static_cast<int64_t>(plan.cells.size()),
      run_order_name(study.order), study.seed);
  text += processes_line(study);
  if (stops_when_decided(study)) text += stopping_lines(estimated);
  if (study.stopping && !study.stopping->decide) {
    text += fmt::format(
        "stopping: repetitions are added until the interval is narrow enough, up to {} a cell\n",
        study.stopping->max_repetitions);
  }
  if (!whole) {
    return text +
           fmt::format("no time estimate: {}\n", std::ranges::any_of(study.arms, is_foreign)
                                                     ? "the time of a command or server is unknown"
                                                     : "the size of a model is unknown");
  }
  text += fmt::format("time estimate: about {}{}\n", format_duration(whole->total()),
                      impossible ? ", if every arm can run" : "");
  const auto gpus = std::ranges::count(basis.on_gpu, true);
  text +=
      fmt::format("  of this, repetitions take {}, compiling {}, starting workers {}, parity {}\n",
                  format_duration(whole->repetitions_s), compiling_text(estimated),
                  format_duration(whole->starting_s), format_duration(whole->parity_s));
  if (gpus < std::ssize(basis.on_gpu)) text += processor_rules(options);
  if (gpus > 0) text += gpu_rules(options);
  return text;
}

// The text's lines as wide as the terminal, up to a readable width; continued lines are indented.
std::string fitted_lines(std::string_view text) {
  constexpr size_t kWidest = 120;
  constexpr size_t kNarrowest = 20;
  const size_t width = std::clamp(stdout_columns().value_or(kWidest), kNarrowest, kWidest);
  std::string out;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const bool indented = line.starts_with("  ");
    if (indented) line.remove_prefix(2);
    const std::vector<std::string> lines = wrapped_lines(line, width - 2, 0);
    for (size_t i = 0; i < lines.size(); ++i) {
      out += (indented || i > 0 ? "  " : "") + lines[i] + "\n";
    }
  }
  return out;
}

Table readiness_table(const Study& study, const std::vector<ArmHere>& here) {
  Table table;
  table.title = "Arms here";
  table.columns = columns_of("<arm|<here|<runs as|<why|<fix");
  const auto text = [](const std::string& value) { return TableCell::if_any(value); };
  for (size_t i = 0; i < study.arms.size(); ++i) {
    const StudyArm& arm = study.arms[i];
    if (!here[i].readiness) {
      table.rows.push_back(
          {arm.name, "not_asked", TableCell::absent(),
           TableCell((is_foreign(arm) ? "program: " : "interpreter: ") + here[i].program),
           "--probe starts the program to find out"});
      continue;
    }
    const ArmReadiness& readiness = *here[i].readiness;
    const bool runs = readiness.verdict != ArmReadiness::Verdict::kImpossible;
    table.rows.push_back(
        {arm.name, readiness_name(readiness.verdict),
         runs ? TableCell(readiness.fallback.empty() ? arm.mode : readiness.fallback)
              : TableCell::absent(),
         text(readiness.reason), text(readiness.fix)});
  }
  return table;
}

// True by the arm's own option, or by its interpreter's finding here, if it was asked.
bool computes_on_gpu(const StudyArm& arm, const ArmHere& here) {
  if (device_option(arm).starts_with("cuda")) return true;
  if (!may_take_gpu(arm)) return false;
  return arm.mode == "manual-cudagraph" || (here.readiness && !here.readiness->device.empty());
}

Result<ModelSize> size_of(const StudyModel& model, BackendSet& backends) {
  if (model.arch.empty()) return model_size(model.path);
  const auto maker = std::ranges::find_if(all_backends(), &BackendTraits::makes_models);
  ASSAY_TRY(const ModelFacts facts, backends.at(std::string(maker->name))->inspect(model, {}));
  ModelSize size;
  if (facts.weight_bytes) size.bytes = static_cast<double>(*facts.weight_bytes);
  size.layers = facts.layers;
  return size;
}

// The sizes of the models, empty if unknown; a model that can't be read is named on stderr.
std::vector<ModelSize> model_sizes(const Study& study, BackendSet& backends) {
  std::vector<ModelSize> sizes;
  for (const StudyModel& model : study.models) {
    const Result<ModelSize> size = size_of(model, backends);
    sizes.push_back(size.value_or(ModelSize()));
    const bool read_by_us = !std::ranges::all_of(study.arms, is_foreign);
    if (!size && read_by_us) print_remark("note", size.error().message);
  }
  return sizes;
}

Estimated estimate(const Study& study, const Plan& plan, BackendSet& backends,
                   const std::vector<ArmHere>& here, const PlanOptions& options) {
  EstimateBasis basis;
  bool impossible = false;
  for (size_t i = 0; i < study.arms.size(); ++i) {
    basis.on_gpu.push_back(computes_on_gpu(study.arms[i], here[i]));
    impossible |=
        here[i].readiness && here[i].readiness->verdict == ArmReadiness::Verdict::kImpossible;
  }
  basis.models = model_sizes(study, backends);
  basis.read_bytes_per_s = options.read_gb_per_s * 1e9;
  basis.gpu_read_bytes_per_s = options.gpu_read_gb_per_s * 1e9;
  auto cells = cell_estimates(study, plan, basis);
  const auto whole = plan_estimate(study, plan, basis);
  return {study, plan, std::move(basis), std::move(cells), whole, impossible};
}

Json plan_json(const Estimated& estimated, const PlanOptions& options, const Table& readiness) {
  const auto& [study, plan, basis, cells, whole, impossible] = estimated;
  Json json;
  json["study"] = study.name;
  json["order"] = run_order_name(study.order);
  json["seed"] = study.seed;
  json["processes"] = study.processes;
  json["processes_because"] = study.processes_given ? Json(nullptr) : Json(study.processes_because);
  json["stopping"] = stopping_json(estimated);
  json["counts"] = {{"cells", plan.cells.size()},
                    {"arms", study.arms.size()},
                    {"units", plan.units.size()},
                    {"rows", plan.rows}};
  json["estimate_s"] = whole ? Json(whole->total()) : Json(nullptr);
  json["estimate_parts_s"] = nullptr;
  if (whole) {
    json["estimate_parts_s"] = {{"repetitions", whole->repetitions_s},
                                {"preparing", whole->preparing_s},
                                {"starting", whole->starting_s},
                                {"parity", whole->parity_s}};
  }
  json["estimate_read_gb_per_s"] = options.read_gb_per_s;
  json["estimate_gpu_read_gb_per_s"] = options.gpu_read_gb_per_s;
  json["arms"] = readiness.to_json();
  json["cells"] = cell_table(estimated).to_json();
  if (options.units) json["units"] = unit_table(plan).to_json();
  return json;
}

Result<int> run_plan(const PlanOptions& options, OutputFormat format) {
  ASSAY_TRY(Study study, read_study(options.study));
  ASSAY_CHECK(keep_only(study, options.only));
  settle_processes(study);
  const Plan plan = make_plan(study);
  BackendSet backends = make_backends();
  const std::vector<ArmHere> here = arms_here(study, backends, options.probe);
  const Estimated estimated = estimate(study, plan, backends, here, options);
  const Table readiness = readiness_table(study, here);
  if (format == OutputFormat::kJson) {
    fmt::print("{}", to_json_text(plan_json(estimated, options, readiness)));
    return 0;
  }
  if (format == OutputFormat::kCsv) {
    print_table(options.units ? unit_table(plan) : cell_table(estimated), format);
    return 0;
  }
  fmt::print("{}\n", fitted_lines(summary(estimated, options)));
  print_table(readiness, format);
  const size_t columns = stdout_columns().value_or(std::numeric_limits<size_t>::max());
  if (options.cells) fmt::print("\n");
  if (options.cells) print_table(fitted(cell_table(estimated), columns), format);
  if (options.units) fmt::print("\n");
  if (options.units) print_table(fitted(unit_table(plan), columns), format);
  return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand(
      "plan", "show a study's cells, units and rows, and estimate the time of its run");
  auto options = std::make_shared<PlanOptions>();
  command->add_option("study", options->study, "study file")->required()->type_name("STUDY");
  command->add_flag("--cells", options->cells, "list every cell and its time");
  command->add_flag("--units", options->units, "list every unit in the order of the run");
  command
      ->add_option("--read-gb-per-s", options->read_gb_per_s,
                   "read bandwidth that the time estimate assumes")
      ->check(number_between(1e-3, 1e6))
      ->type_name("GB/S");
  command
      ->add_option("--gpu-read-gb-per-s", options->gpu_read_gb_per_s,
                   "read bandwidth that the time estimate assumes for arms on a GPU")
      ->check(number_between(1e-3, 1e6))
      ->type_name("GB/S");
  command->add_flag("--probe", options->probe,
                    "start the interpreters of torch arms, check out the revisions of command "
                    "arms, and report how each arm would run on this machine");
  add_only_option(*command, options->only);
  const auto format = add_output_format(*command);
  command->callback(
      [=, &selected] { selected.body = [=] { return run_plan(*options, *format); }; });
}

}  // namespace assay::cli
