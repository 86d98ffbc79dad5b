// How long a plan will take.
#include "study/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {
namespace {

// Tokens that go through the weights for the price of reading them: 2 FLOP a token and 4 bytes a
// weight; a core that reads 5 GB/s and computes 40 GFLOP/s breaks even at 16.
constexpr double kTokensPerRead = 16;

// Mean over the prompts of the scenario. A text has no length before a tokenizer has seen it; 4
// bytes a token is the rule of thumb for English.
double prompt_tokens(const StudyScenario& scenario) {
  if (scenario.prompt_tokens.empty()) {
    return std::max(1.0, static_cast<double>(scenario.text.size()) / 4);
  }
  const auto sum =
      std::accumulate(scenario.prompt_tokens.begin(), scenario.prompt_tokens.end(), int64_t{0});
  return static_cast<double>(sum) / static_cast<double>(scenario.prompt_tokens.size());
}

double reads_for(double tokens) {
  return std::max(1.0, tokens / kTokensPerRead);
}

}  // namespace

Result<double> weight_bytes(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return bad_input("{}: expected a model's folder, found none", folder.string());
  }
  double bytes = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".safetensors") continue;
    const uintmax_t size = it->file_size(error);
    if (error) break;
    bytes += static_cast<double>(size);
  }
  if (error) {
    return bad_input("{}: expected a readable model's folder, found: {}", folder.string(),
                     error.message());
  }
  if (bytes == 0) {
    return bad_input("{}: expected *.safetensors files, found none", folder.string());
  }
  return bytes;
}

double repetition_seconds(const Study& study, const Cell& cell, double model_bytes,
                          double read_bytes_per_s) {
  const auto batch = static_cast<double>(cell.batch);
  double reads = reads_for(prompt_tokens(study.scenarios[cell.scenario]) * batch);
  // The prefill gives the first token.
  if (cell.new_tokens > 1) reads += static_cast<double>(cell.new_tokens - 1) * reads_for(batch);
  return reads * model_bytes / read_bytes_per_s;
}

std::optional<double> plan_seconds(const Study& study, const Plan& plan,
                                   const std::vector<std::optional<double>>& model_bytes,
                                   double read_bytes_per_s) {
  const auto rows = static_cast<double>(study.warmup + study.repetitions);
  double seconds = 0;
  for (const Cell& cell : plan.cells) {
    if (!model_bytes[cell.model]) return std::nullopt;
    seconds += rows * repetition_seconds(study, cell, *model_bytes[cell.model], read_bytes_per_s);
  }
  return seconds;
}

}  // namespace assay
