// The number of worker processes that share a cell's repetitions if the study doesn't say.
//
// Two processes of one arm differ by more than their repetitions show, so a study gets several
// unless they cost more than they tell.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "study/estimate.h"
#include "study/study.h"

namespace assay {

// kMostProcesses if every arm starts in under kCheapStartSeconds on every model. Else the most, up
// to these, whose starts and preparations are estimated to take no longer than the repetitions; but
// at least kLeastProcesses, which are too few for an interval
// (analysis/findings/contrast.h).
inline constexpr int64_t kMostProcesses = 5;
inline constexpr int64_t kLeastProcesses = 2;
inline constexpr double kCheapStartSeconds = 5;

struct DefaultProcesses {
  int64_t processes = 1;
  std::string because;  // "every arm is estimated to start in under 5 s on every model"
};

// `models` are the study's. Judges by the arms' options alone: a torch arm that names no device
// counts as one on a GPU. A study with command arms gets as many as their invocations' samples ask
// for. Never more than repetitions, nor so many that the plan has more than kMaxPlanRows rows.
DefaultProcesses default_processes(const Study& study, std::span<const ModelSize> models);

// The repetitions that give each process of a study, whose number is chosen by default, one of
// them: kMostProcesses if every start is cheap, by its models' files, else 1. For studies without
// command arms.
int64_t least_repetitions(const Study& study);

// Sets `processes` and `processes_because` of a study that doesn't give them, by its models' files:
// the same files give the same plan. Sets the number of samples an invocation of a command arm
// prints too (command_arm.h).
void settle_processes(Study& study);

}  // namespace assay
