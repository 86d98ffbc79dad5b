// How many worker processes share a cell's repetitions where the study doesn't say.
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

// kMostProcesses where every arm starts in under kCheapStartSeconds on every model. Where one
// doesn't: as many, up to these, as the plan can pay, which are those whose starts and preparations
// are estimated to take no longer than the repetitions; else kLeastProcesses, which are too few for
// an interval (analysis/findings/contrast.h).
inline constexpr int64_t kMostProcesses = 5;
inline constexpr int64_t kLeastProcesses = 2;
inline constexpr double kCheapStartSeconds = 5;

struct DefaultProcesses {
  int64_t processes = 1;
  std::string because;  // "every arm is estimated to start in under 5 s on every model"
};

// `models` are the study's. By its arms' own words alone: a torch arm that names no device counts
// as one on a GPU. A study with command arms has as many as their invocations' samples ask for.
// Never more than repetitions, nor so many that the plan has more than kMaxPlanRows rows.
DefaultProcesses default_processes(const Study& study, std::span<const ModelSize> models);

// The repetitions that give each process a study gets by default one of them: kMostProcesses where
// every start is cheap, by its models' files, else 1. For studies without command arms.
int64_t least_repetitions(const Study& study);

// Sets `processes` and `processes_because` of a study that doesn't give them, by its models' files:
// the same files give the same plan. Of command arms also how many samples an invocation prints
// (command_arm.h).
void settle_processes(Study& study);

}  // namespace assay
