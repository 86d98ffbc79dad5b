// Chooses the number of processes by the cost of a start.
#include "study/default_processes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text/text.h"
#include "study/arm_options.h"
#include "study/command_arm.h"
#include "study/plan.h"

namespace assay {
namespace {

// True if the arm names a GPU, or names no device and takes a GPU where there is one.
bool asks_for_gpu(const StudyArm& arm) {
  return device_option(arm).starts_with("cuda") || may_take_gpu(arm);
}

// The reason why the first arm and model with a dear start has one; empty: none has. The start of
// an arm that compiles before it can time anything ends when it has compiled.
std::string dear_start(const Study& study, std::span<const ModelSize> models) {
  for (const StudyArm& arm : study.arms) {
    for (size_t model = 0; model < study.models.size(); ++model) {
      const double compiling = asks_for_gpu(arm) ? 0 : compile_seconds(arm);
      const auto seconds = start_seconds(arm, models[model].bytes);
      if (seconds && *seconds + compiling < kCheapStartSeconds) continue;
      const std::string& name = study.models[model].name;
      if (!seconds) return fmt::format("the size of \"{}\" is unknown", name);
      return fmt::format("starting{} \"{}\" on \"{}\" is estimated at {} s",
                         compiling > 0 ? " and compiling" : "", arm.name, name,
                         format_significant(*seconds + compiling, 2));
    }
  }
  return "";
}

// The most processes, from kLeastProcesses on, whose starts and preparations take no longer than
// their measurements; fewer if not even so few do.
int64_t payable(Study study, std::span<const ModelSize> models) {
  EstimateBasis basis;
  basis.models.assign(models.begin(), models.end());
  for (const StudyArm& arm : study.arms) basis.on_gpu.push_back(asks_for_gpu(arm));
  for (study.processes = kMostProcesses; study.processes > kLeastProcesses; --study.processes) {
    if (study.processes > study.repetitions || count_rows(study) > kMaxPlanRows) continue;
    const auto estimate = plan_estimate(study, make_plan(study), basis);
    if (!estimate) return 0;
    if (estimate->starting_s + estimate->preparing_s <= estimate->repetitions_s) break;
  }
  return study.processes;
}

// An invocation of a command arm is a process: as many as the repetitions take.
DefaultProcesses by_invocations(const Study& study) {
  const int64_t least = processes_for_samples(study);
  if (least == 1) return {kMostProcesses, "an invocation of each command is a process"};
  return {least,
          fmt::format("a process is one invocation of a command, and it takes {} of them for "
                      "{} repetitions",
                      least, study.repetitions)};
}

DefaultProcesses where_starts_are_dear(const Study& study, std::span<const ModelSize> models,
                                       const std::string& dear) {
  const int64_t most = payable(study, models);
  if (most > kLeastProcesses) {
    return {most, fmt::format("{}; starting and preparing {} processes of each arm takes no longer "
                              "than their repetitions",
                              dear, most)};
  }
  const char* const cost =
      most == 0
          ? ""
          : ", and starting and preparing more processes would take longer than the repetitions";
  return {kLeastProcesses, fmt::format("{}{}; two processes are too few for intervals, and the "
                                       "study's key `processes` sets more",
                                       dear, cost)};
}

}  // namespace

DefaultProcesses default_processes(const Study& study, std::span<const ModelSize> models) {
  const std::string dear = dear_start(study, models);
  DefaultProcesses chosen =
      has_command_arms(study) ? by_invocations(study)
      : std::ranges::any_of(study.arms, is_foreign)
          ? DefaultProcesses{kMostProcesses,
                             "a start of a server, or a connection to one, is a process"}
      : dear.empty()
          ? DefaultProcesses{kMostProcesses,
                             fmt::format("every arm is estimated to start in under {:.0f} s on "
                                         "every model",
                                         kCheapStartSeconds)}
          : where_starts_are_dear(study, models, dear);
  if (study.repetitions < chosen.processes) {
    chosen = {study.repetitions, fmt::format("each process makes one of the {}",
                                             counted(study.repetitions, "repetition"))};
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

namespace {

std::vector<ModelSize> model_sizes(const Study& study) {
  std::vector<ModelSize> models;
  for (const StudyModel& model : study.models) {
    ModelSize& size = models.emplace_back();
    if (!model.arch.empty()) continue;
    if (const auto found = model_size(model.path)) size = *found;
  }
  return models;
}

void choose_processes(Study& study) {
  DefaultProcesses chosen = default_processes(study, model_sizes(study));
  study.processes = chosen.processes;
  study.processes_because = std::move(chosen.because);
}

}  // namespace

int64_t least_repetitions(const Study& study) {
  return dear_start(study, model_sizes(study)).empty() ? kMostProcesses : 1;
}

void settle_processes(Study& study) {
  if (!study.processes_given) choose_processes(study);
  settle_samples(study);
}

}  // namespace assay
