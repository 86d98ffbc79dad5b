// A plan's time, estimated from the size of the weights and the speed of the memory, for PyTorch on
// a GPU from the number of layers, so that it is known before anything is loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/plan.h"
#include "study/study.h"

namespace assay {

// Assumed if nobody has measured it. One thread of a shared Xeon decoded gpt2-25m at 24 GB/s
// (2026-11-25), two of an older one read 26 (docs/engine-figures.md); a desktop reads about as
// much.
inline constexpr double kAssumedReadBytesPerS = 20e9;
inline constexpr double kAssumedGpuReadBytesPerS = 1000e9;

// The harness's time beside a repetition on the processor: it asks the worker, times the
// yardsticks, samples the machine, writes the row and commits it. Medians of 0.65 to 0.95 ms on two
// virtual cores of a Xeon (2026-11-24, rows of studies/tiny.yaml and demo.yaml).
inline constexpr double kRowSeconds = 0.8e-3;

// Bytes of the *.safetensors files in a model's folder, or of a model's one file. A folder that is
// missing or holds none: bad_input.
Result<double> weight_bytes(const std::filesystem::path& folder);

// A model's sizes, known before it is loaded.
struct ModelSize {
  std::optional<double> bytes = {};    // of its weights
  std::optional<int64_t> layers = {};  // absent: arms on a GPU have no estimate
  // Bytes of the vocabulary's tables among the weights: a pass reads them for one token of each
  // sequence however many it takes; 0: not known.
  double vocabulary_bytes = 0;
};
// Reads a model's *.safetensors files and config.json. bad_input as weight_bytes(); a size that
// config.json doesn't tell is absent.
Result<ModelSize> model_size(const std::filesystem::path& folder);

// Seconds of a cell's repetition on the processor as the harness sees it, with the untimed prefill
// of kv_decode and the harness's own kRowSeconds: every decode step reads all weights once, and so
// do every 16 tokens of a prompt (beyond that a processor computes rather than reads), the
// vocabulary aside. It leaves out attention over the cache. A model of unknown size reads nothing.
double repetition_seconds(const Study& study, const Cell& cell, const ModelSize& model,
                          double read_bytes_per_s);

// Seconds until a fresh process of the arm could serve a cell of a model of so many bytes (absent:
// unknown), the kernels that an earlier one left on disk considered. Absent: there is no estimate.
// A native arm on the processor starts its process (8 ms for each of studies/tiny.yaml's on two
// virtual cores of a Xeon, 2026-11-24) and maps its weights (eager: about 2 GB/s until they are
// there) or packs them (compiled: 0.5 GB/s; gpt2-100m's 413 MB took 0.8 s on two virtual cores of
// an AMD EPYC, 2026-11-23), and without a cache of kernels compiles them for 4 s; any other arm
// takes seconds to open its device or to import its framework (gpu_arm.h), and fewer if its option
// names the processor.
std::optional<double> start_seconds(const StudyArm& arm, std::optional<double> model_bytes);

// Seconds that each preparation of a cell adds on the processor: torch compiles. 0 if it does
// nothing that start_seconds() doesn't count.
double compile_seconds(const StudyArm& arm);

// The figures that an estimate is based on.
struct EstimateBasis {
  std::vector<ModelSize> models;  // the study's
  std::vector<bool> on_gpu;       // of the study's arms: computed on a GPU
  double read_bytes_per_s = kAssumedReadBytesPerS;
  double gpu_read_bytes_per_s = kAssumedGpuReadBytesPerS;
};

// Seconds by their purpose.
struct TimeEstimate {
  double repetitions_s = 0;  // warm-ups included, extra ones of optional stopping not
  double preparing_s = 0;  // compiling, whenever a worker turns to a cell that it didn't serve last
  double starting_s = 0;   // workers: importing torch, reading or building the model, explaining
  double parity_s = 0;     // its tokens, and its compiling on a GPU in processes of its own
  double total() const { return repetitions_s + preparing_s + starting_s + parity_s; }
};

// Repetitions and preparation of each cell of the plan; absent: the size of its model isn't known.
// Under load the schedules of its runs; absent for a closed loop without a duration, which ends
// when the server has answered.
std::vector<std::optional<TimeEstimate>> cell_estimates(const Study& study, const Plan& plan,
                                                        const EstimateBasis& basis);

// The plan's estimate, with the start of each of its processes. Preparing is that of arms on a GPU
// alone. Absent if a cell's is.
std::optional<TimeEstimate> plan_estimate(const Study& study, const Plan& plan,
                                          const EstimateBasis& basis);

}  // namespace assay
