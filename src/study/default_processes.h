// How many worker processes share a cell's repetitions where the study doesn't say.
//
// Two processes of one arm differ by more than their repetitions show, so a study gets several
// unless each of them costs much.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "study/study.h"

namespace assay {

// Where every arm starts in under kCheapStartSeconds on every model, and where one doesn't: two
// would leave the spread between processes one degree of freedom, and an interval of 12.7 standard
// errors decides nothing.
inline constexpr int64_t kProcessesOfCheapStarts = 5;
inline constexpr int64_t kProcessesOfDearStarts = 3;
inline constexpr double kCheapStartSeconds = 1;

// Of a process: one row shows nothing of how its rows differ.
inline constexpr int64_t kLeastRowsOfProcess = 2;

// Seconds until a fresh process of the arm could serve a cell of a model of so many bytes (absent:
// unknown), the kernels that an earlier one left on disk considered. Absent: it can't be told.
// A native arm on the processor maps its weights (eager: about 2 GB/s until they are there) or
// packs them (compiled: 0.5 GB/s; gpt2-100m's 413 MB took 0.8 s on two virtual cores of an AMD
// EPYC, 2026-11-23), and without a cache of kernels compiles them for 4 s; any other arm takes
// seconds to open its device or to import its framework (gpu_arm.h).
std::optional<double> start_seconds(const StudyArm& arm, std::optional<double> model_bytes);

struct DefaultProcesses {
  int64_t processes = 1;
  std::string because;  // "every arm is estimated to start in under a second on every model"
};

// `model_bytes` of each of the study's models. Never so many that a process has fewer than
// kLeastRowsOfProcess repetitions, nor that the plan has more than kMaxPlanRows rows.
DefaultProcesses default_processes(const Study& study,
                                   std::span<const std::optional<double>> model_bytes);

// Sets `processes` and `processes_because` of a study that doesn't give them, by the sizes of its
// models' files: the same files give the same plan. Does nothing to one that does.
void settle_processes(Study& study);

}  // namespace assay
