// A mode's cost on a GPU, from the arm's options.
#include "study/gpu_arm.h"

#include <algorithm>
#include <string>

#include "base/records/backend_traits.h"
#include "study/arm_options.h"

namespace assay {
namespace {

// Tokens of a prompt that go through the weights for the price of reading them.
constexpr double kTokensPerGpuRead = 256;

// torch._dynamo.config.recompile_limit.
constexpr int64_t kRecompileLimit = 8;

template <typename Value>
Value option(const StudyArm& arm, const std::string& name, Value otherwise) {
  const auto found = arm.options.find(name);
  return found == arm.options.end() ? otherwise : found->get<Value>();
}

// True if code is generated for this part ("prefill" or "decode") of a forward pass.
bool generates(const StudyArm& arm, const char* part) {
  if (!mode_compiles(arm.mode) ||
      option<std::string>(arm, "torch_backend", "inductor") != "inductor") {
    return false;
  }
  const std::string key(backend_traits(arm.backend).phases_option);
  const std::string phases = option<std::string>(arm, key, "both");
  return phases == "both" || phases == part;
}

double layer_seconds(const BackendCosts& costs, const StudyArm& arm, const char* part) {
  const bool decode = std::string_view(part) == "decode";
  const bool replayed = arm.mode == "manual-cudagraph" && decode;
  if (!replayed && !generates(arm, part)) return costs.gpu_eager_layer;
  const bool graphed = replayed || arm.mode == "reduce-overhead" || arm.mode == "max-autotune";
  return graphed ? costs.gpu_graphed_layer : costs.gpu_compiled_layer;
}

double graph_seconds(const BackendCosts& costs, const StudyArm& arm, const char* part,
                     int64_t layers) {
  if (!generates(arm, part)) return 0;
  return costs.gpu_compile + static_cast<double>(layers) * costs.gpu_compile_layer;
}

int64_t decode_graphs(const StudyArm& arm) {
  if (arm.cache == "static" || arm.dynamic == "true") return 1;
  return arm.dynamic == "false" ? option(arm, "recompile_limit", kRecompileLimit) : 2;
}

double explain_layer_seconds(const BackendCosts& costs, const StudyArm& arm) {
  const bool explains = mode_compiles(arm.mode) && option(arm, "explain", true);
  return explains ? costs.gpu_explain_layer : 0;
}

const BackendCosts& costs_of(const StudyArm& arm) {
  static const BackendCosts unknown;
  const auto& costs = backend_traits(arm.backend).costs;
  return costs ? *costs : unknown;
}

}  // namespace

GpuArm::GpuArm(const StudyArm& arm, int64_t layers, double model_bytes, double read_bytes_per_s)
    : read_seconds_(model_bytes / read_bytes_per_s), decode_graphs_(decode_graphs(arm)) {
  const BackendCosts& costs = costs_of(arm);
  prefill_floor_ = static_cast<double>(layers) * layer_seconds(costs, arm, "prefill");
  decode_floor_ = static_cast<double>(layers) * layer_seconds(costs, arm, "decode");
  prefill_compile_ = graph_seconds(costs, arm, "prefill", layers);
  decode_compile_ = graph_seconds(costs, arm, "decode", layers);
  start_ = costs.gpu_start;
  explain_ = static_cast<double>(layers) * explain_layer_seconds(costs, arm);
}

double GpuArm::seconds(double prompt_tokens, int64_t new_tokens) const {
  const double reads = std::max(1.0, prompt_tokens / kTokensPerGpuRead);
  return std::max(prefill_floor_, reads * read_seconds_) +
         static_cast<double>(new_tokens) * std::max(decode_floor_, read_seconds_);
}

double GpuArm::prepare_seconds(int64_t new_tokens) const {
  const auto graphs = static_cast<double>(std::min(decode_graphs_, new_tokens));
  return prefill_compile_ + graphs * decode_compile_;
}

}  // namespace assay
