// assay run: measures a study into a bundle.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/shown_text.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/run_progress.h"
#include "harness/run.h"
#include "identity/gpu_sensors.h"
#include "identity/identity.h"
#include "identity/monitor.h"
#include "study/filter.h"
#include "study/study.h"

namespace assay::cli {
namespace {

constexpr int kExitInterrupted = 130;  // as a shell reports a program that SIGINT ended

struct RunOptions {
  std::string study;
  std::string bundle;
  bool resume = false;
  bool profile = false;
  std::vector<std::string> only;
};

// Threads that the machine must offer: 0, all of them, if any arm wants all.
int64_t most_threads(const Study& study) {
  int64_t most = 0;
  for (const StudyArm& arm : study.arms) {
    if (arm.threads == 0) return 0;
    most = std::max(most, arm.threads);
  }
  return most;
}

BundleHeader make_header(const Study& study, std::string study_yaml, const Preflight& preflight,
                         GpuSensors* gpus) {
  const MachineFiles files;
  BundleHeader header;
  header.study_yaml = std::move(study_yaml);
  header.environment = collect_environment(files, most_threads(study));
  if (gpus) header.environment["gpus"] = gpus_to_json(gpus->list());
  std::vector<ArmIdentity> arms;
  for (size_t i = 0; i < study.arms.size(); ++i) {
    const StudyArm& arm = study.arms[i];
    const ArmGate& gate = preflight.gates[i];
    arms.push_back(
        {arm.name, arm.cache, arm.mode, gate.device, gate.code_generator, gate.framework_build});
    Json about = gate_to_json(gate);
    if (!gate.facts.is_null()) about[arm.backend == "torch" ? "interpreter" : "gpu"] = gate.facts;
    header.environment["arms"][arm.name] = std::move(about);
  }
  header.identity = identity_to_json(make_identity(read_host(files), build_info()), arms);
  header.started_at_ns = system_clock().wall_ns();
  header.assay_version = ASSAY_VERSION;
  return header;
}

void print_summary(const RunOptions& options, const RunSummary& summary, OutputFormat format) {
  Table table;
  table.columns = {{"status", Align::kLeft}, {"rows"}};
  for (const auto& [status, rows] : summary.rows_by_status) {
    table.rows.push_back(
        {TableCell::of(std::string(row_status_name(status))), TableCell::of(rows)});
  }
  if (format == OutputFormat::kTable || format == OutputFormat::kMarkdown) {
    table.title = fmt::format("{}: {} rows", options.bundle, summary.rows);
    fmt::print("{}\nfindings: assay analyze {}\n", table.render(format),
               shown_line(options.bundle));
  } else {
    fmt::print("{}", table.render(format));
  }
}

Result<int> run(const RunOptions& options, OutputFormat format) {
  ASSAY_TRY(const Interrupt interrupt, Interrupt::create());
  ASSAY_TRY(std::string study_yaml, read_file(options.study));
  ASSAY_TRY(Study study, parse_study(study_yaml, options.study));
  ASSAY_CHECK(keep_only(study, options.only));
  const Plan plan = make_plan(study);
  BackendSet backends = make_backends();
  ASSAY_TRY(const Preflight preflight, check_study(study, backends));
  ASSAY_CHECK(check_room(study));
  const auto nvml = open_nvml();
  GpuSensors* gpus = nvml ? nvml->get() : nullptr;
  RunRequest request{study,          plan,
                     preflight,      make_header(study, study_yaml, preflight, gpus),
                     options.bundle, options.resume};

  Progress progress(stderr_style(), system_clock(), tell);
  if (!options.only.empty()) request.header.environment["only"] = options.only;
  RunProgress observer(study, plan, preflight.weight_bytes, system_clock(), progress);
  Monitor monitor;
  RunContext context{disk(),   system_spawner(), system_clock(),         backends,
                     observer, &monitor,         interrupt.descriptor(), "assay " ASSAY_VERSION,
                     gpus,     options.profile};
  const auto summary = run_study(std::move(request), context);
  progress.clear();
  if (!summary) return std::unexpected(summary.error());
  if (summary->interrupted) {
    tell(fmt::format(
        "assay: interrupted with {} rows committed; continue with: assay run {} -o {} --resume\n",
        summary->rows, shown_line(options.study), shown_line(options.bundle)));
    return kExitInterrupted;
  }
  print_summary(options, *summary, format);
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Selected& selected) {
  CLI::App* command = app.add_subcommand("run", "measure a study into a bundle");
  auto options = std::make_shared<RunOptions>();
  command->add_option("study", options->study, "study file")->required()->type_name("STUDY");
  command->add_option("-o,--output", options->bundle, "folder of the bundle to write")
      ->required()
      ->type_name("BUNDLE");
  command->add_flag("--resume", options->resume, "continue a bundle that was interrupted");
  command->add_flag("--profile", options->profile,
                    "trace one repetition of each cell after its timing, where the backend can");
  add_only_option(*command, options->only);
  const auto format = add_output_format(*command, "--output-format");
  command->callback([=, &selected] { selected.body = [=] { return run(*options, *format); }; });
}

}  // namespace assay::cli
