// What a start costs, and what that allows.
#include "study/default_processes.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "study/arm_options.h"
#include "study/estimate.h"
#include "study/gpu_arm.h"

namespace assay {
namespace {

constexpr double kProcessSeconds = 0.1;
constexpr double kMappedBytesPerS = 2e9;
constexpr double kPackedBytesPerS = 0.5e9;
constexpr double kCompileSeconds = 4;

bool keeps_kernels(const StudyArm& arm) {
  const auto option = arm.options.find("kernel_cache");
  return option == arm.options.end() || *option != false;
}

// Why the first arm and model whose start is dear is; empty: none is.
std::string dear_start(const Study& study, std::span<const std::optional<double>> model_bytes) {
  for (const StudyArm& arm : study.arms) {
    for (size_t model = 0; model < study.models.size(); ++model) {
      const auto seconds = start_seconds(arm, model_bytes[model]);
      if (seconds && *seconds < kCheapStartSeconds) continue;
      const std::string& name = study.models[model].name;
      if (!seconds) return fmt::format("the size of \"{}\" isn't known", name);
      return fmt::format("starting \"{}\" on \"{}\" is estimated at {} s", arm.name, name,
                         format_significant(*seconds, 2));
    }
  }
  return "";
}

}  // namespace

std::optional<double> start_seconds(const StudyArm& arm, std::optional<double> model_bytes) {
  if (arm.backend != "native") return kStartSeconds;
  if (device_option(arm).starts_with("cuda")) return kNativeStartSeconds;
  if (!model_bytes) return std::nullopt;
  if (!mode_compiles(arm.mode)) return kProcessSeconds + *model_bytes / kMappedBytesPerS;
  return kProcessSeconds + *model_bytes / kPackedBytesPerS +
         (keeps_kernels(arm) ? 0 : kCompileSeconds);
}

DefaultProcesses default_processes(const Study& study,
                                   std::span<const std::optional<double>> model_bytes) {
  const std::string dear = dear_start(study, model_bytes);
  DefaultProcesses chosen{kProcessesOfDearStarts, dear};
  if (dear.empty()) {
    chosen = {kProcessesOfCheapStarts,
              "every arm is estimated to start in under a second on every model"};
  }
  const int64_t most = std::max<int64_t>(1, study.repetitions / kLeastRowsOfProcess);
  if (most < chosen.processes) {
    chosen = {most, fmt::format("a process needs at least {} of the {} repetitions",
                                kLeastRowsOfProcess, study.repetitions)};
  }
  Study asked = study;
  const auto too_long = [&] {
    asked.processes = chosen.processes;
    return count_rows(asked) > kMaxPlanRows;
  };
  while (chosen.processes > 1 && too_long()) {
    --chosen.processes;
    chosen.because = fmt::format("a plan has at most {} rows, warm-ups included", kMaxPlanRows);
  }
  return chosen;
}

void settle_processes(Study& study) {
  if (study.processes_given) return;
  std::vector<std::optional<double>> model_bytes;
  for (const StudyModel& model : study.models) {
    std::optional<double>& bytes = model_bytes.emplace_back();
    if (!model.arch.empty()) continue;
    if (const auto found = weight_bytes(model.path)) bytes = *found;
  }
  DefaultProcesses chosen = default_processes(study, model_bytes);
  study.processes = chosen.processes;
  study.processes_because = std::move(chosen.because);
}

}  // namespace assay
