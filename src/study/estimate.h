// How long a plan will take, from the size of the weights and the speed of the memory alone, so
// that it can be told before anything is loaded.
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

// Bytes of the *.safetensors files in a model's folder. A folder that is missing or holds none:
// bad_input.
Result<double> weight_bytes(const std::filesystem::path& folder);

// Seconds of a cell's repetition as the harness sees it, untimed prefill of kv_decode included:
// every generated token reads all weights once, and so do every 16 tokens of a prompt (beyond that
// a processor computes rather than reads). A lower bound for decoding at batch 1; it leaves out
// attention over the cache, starting workers, loading and parity checks.
double repetition_seconds(const Study& study, const Cell& cell, double model_bytes,
                          double read_bytes_per_s);

// Over all rows of the plan, warm-ups included, extra ones of optional stopping not. Absent when
// the size of a model isn't known.
std::optional<double> plan_seconds(const Study& study, const Plan& plan,
                                   const std::vector<std::optional<double>>& model_bytes,
                                   double read_bytes_per_s);

}  // namespace assay
