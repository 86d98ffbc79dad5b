// Checks a study, opens the run's files and devices, and runs it.
#include "cli/study/measure.h"

#include <memory>

#include "base/clock.h"
#include "base/files/files.h"
#include "base/records/backend_traits.h"
#include "cli/backends.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/study/run_progress.h"
#include "harness/run.h"
#include "harness/run_inputs.h"
#include "identity/gpu_sensors.h"
#include "identity/identity.h"
#include "identity/monitor.h"
#include "study/default_processes.h"
#include "study/filter.h"
#include "study/sides.h"

namespace assay::cli {
namespace {

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
    const ArmReadiness& readiness = preflight.readiness[i];
    arms.push_back({arm.name, arm.cache, arm.mode, readiness.device, readiness.code_generator,
                    readiness.framework_build, readiness.code_sha});
    Json about = readiness_to_json(readiness);
    if (!readiness.program.is_null()) about["program"] = readiness.program;
    if (!readiness.facts.is_null())
      about[std::string(backend_traits(arm.backend).facts_name)] = readiness.facts;
    header.environment["arms"][arm.name] = std::move(about);
  }
  header.identity = identity_to_json(make_identity(read_host(files), build_info()), arms);
  header.started_at_ns = system_clock().wall_ns();
  header.assay_version = ASSAY_VERSION;
  return header;
}

// A side that can't run leaves nothing to compare, and a probe that can't nothing to read.
Status check_arms_run(const Study& study, const Preflight& preflight) {
  for (size_t i = 0; i < study.arms.size(); ++i) {
    const ArmReadiness& readiness = preflight.readiness[i];
    if (readiness.verdict != ArmReadiness::Verdict::kImpossible) continue;
    return environment_error("arm \"{}\": {}{}", study.arms[i].name, readiness.reason,
                             readiness.fix.empty() ? "" : "; " + readiness.fix);
  }
  return {};
}

}  // namespace

Result<Measured> measure_study(const MeasureOptions& options) {
  ASSAY_TRY(Interrupt interrupt, Interrupt::create());
  ASSAY_TRY(std::string study_yaml, options.study_text ? Result<std::string>(*options.study_text)
                                                       : read_file(options.study));
  ASSAY_TRY(Study study, parse_study(study_yaml, options.study));
  ASSAY_CHECK(keep_only(study, options.only));
  settle_processes(study);
  if (options.sides) {
    ASSAY_TRY(study, two_sided(std::move(study), *options.sides));
  }
  const Plan plan = make_plan(study);
  BackendSet backends = make_backends();
  ASSAY_TRY(const Preflight preflight, check_study(study, backends));
  if (study.sides || options.every_arm_runs) ASSAY_CHECK(check_arms_run(study, preflight));
  ASSAY_CHECK(check_room(study));
  const auto nvml = open_nvml();
  GpuSensors* gpus = nvml ? nvml->get() : nullptr;
  RunRequest request{study,          plan,
                     preflight,      make_header(study, study_yaml, preflight, gpus),
                     options.bundle, options.resume};
  Json& environment = request.header.environment;
  ASSAY_TRY(BoundFiles inputs, bind_inputs(study, preflight, backends, environment));
  environment["inputs"] = inputs.to_json();

  Progress progress(stderr_style(), system_clock(), tell);
  if (!options.only.empty()) environment["only"] = options.only;
  RunProgress observer(study, plan, preflight.weight_bytes, system_clock(), progress);
  Monitor monitor;
  RunContext context{
      disk(),   system_spawner(),       system_clock(),         backends, observer,
      &monitor, interrupt.descriptor(), "assay " ASSAY_VERSION, gpus,     options.profile,
      &inputs};
  auto summary = run_study(std::move(request), context);
  progress.clear();
  if (!summary) return std::unexpected(std::move(summary).error());
  // From here on the program may be stopped as any. One signal that was waited for still pends.
  if (!summary->interrupted) interrupt.end();
  return Measured{.interrupted = summary->interrupted,
                  .rows = summary->rows,
                  .rows_by_status = std::move(summary->rows_by_status),
                  .processes = study.processes,
                  .processes_because = study.processes_because,
                  .starting_s = context.starting_s,
                  .preparing_s = context.preparing_s};
}

}  // namespace assay::cli
