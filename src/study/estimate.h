// How long a plan will take, from the size of the weights and the speed of the memory, and of
// PyTorch on a GPU from the number of layers, so that it can be told before anything is loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/plan.h"
#include "study/study.h"

namespace assay {

// Assumed where nobody has measured it: a desktop or a share of a server.
inline constexpr double kAssumedReadBytesPerS = 10e9;
inline constexpr double kAssumedGpuReadBytesPerS = 1000e9;

// Bytes of the *.safetensors files in a model's folder. A folder that is missing or holds none:
// bad_input.
Result<double> weight_bytes(const std::filesystem::path& folder);

// Seconds of a cell's repetition as the harness sees it, untimed prefill of kv_decode included:
// every generated token reads all weights once, and so do every 16 tokens of a prompt (beyond that
// a processor computes rather than reads). A lower bound for decoding at batch 1; it leaves out
// attention over the cache.
double repetition_seconds(const Study& study, const Cell& cell, double model_bytes,
                          double read_bytes_per_s);

// What is known of a model before it is loaded.
struct ModelSize {
  std::optional<double> bytes;    // of its weights
  std::optional<int64_t> layers;  // absent: arms on a GPU have no estimate
};

// What an estimate is made of.
struct EstimateBasis {
  std::vector<ModelSize> models;  // the study's
  std::vector<bool> on_gpu;       // of the study's arms: computed on a GPU
  double read_bytes_per_s = kAssumedReadBytesPerS;
  double gpu_read_bytes_per_s = kAssumedGpuReadBytesPerS;
};

// Seconds by what they are spent on.
struct TimeEstimate {
  double repetitions_s = 0;  // warm-ups included, extra ones of optional stopping not
  double preparing_s = 0;  // compiling, whenever a worker turns to a cell that it didn't serve last
  double starting_s = 0;   // workers: importing torch, reading or building the model, explaining
  double parity_s = 0;     // with what it compiles in processes of its own
  double total() const { return repetitions_s + preparing_s + starting_s + parity_s; }
};

// Repetitions and preparation of each cell of the plan; absent: the size of its model isn't known.
std::vector<std::optional<TimeEstimate>> cell_estimates(const Study& study, const Plan& plan,
                                                        const EstimateBasis& basis);

// Of the plan, with the start of each of its processes. Preparing and parity are those of arms on a
// GPU alone; a start of any other arm is a read of the weights. Absent where a cell's is.
std::optional<TimeEstimate> plan_estimate(const Study& study, const Plan& plan,
                                          const EstimateBasis& basis);

}  // namespace assay
