// How long a plan will take.
#include "study/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "study/gpu_arm.h"

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

// How often each cell is prepared: whenever its worker last served another cell, or none.
std::vector<int64_t> preparations(const Study& study, const Plan& plan) {
  std::vector<int64_t> times(plan.cells.size());
  std::vector<std::optional<size_t>> last(study.arms.size());
  int64_t round = 0;
  for (const Unit& unit : plan.units) {
    if (std::exchange(round, unit.round) != unit.round) last.assign(study.arms.size(), {});
    auto& before = last[plan.cells[unit.cell].arm];
    if (before != unit.cell) ++times[unit.cell];
    before = unit.cell;
  }
  return times;
}

// The arm's processes of one model: one a round, and one of parity before timing.
double starts(const Study& study) {
  return static_cast<double>(rounds(study)) + (study.parity == ParityTime::kBefore ? 1 : 0);
}

// Their start, and what parity asks of them.
void add_gpu_workers(const Study& study, const GpuArm& arm, TimeEstimate& sum) {
  const bool own_process = study.parity == ParityTime::kBefore;
  sum.starting_s += starts(study) * arm.start_seconds() +
                    static_cast<double>(rounds(study)) * arm.explain_seconds();
  for (const StudyScenario& scenario : study.scenarios) {
    const auto asked = longest_generation(study, scenario);
    if (!asked) continue;
    const int64_t longest = *asked;
    const auto prompts = static_cast<double>(std::max<size_t>(1, scenario.prompt_tokens.size()));
    for (const int64_t batch : study.batch) {
      const double tokens = prompt_tokens(scenario) * static_cast<double>(batch);
      // After timing what it runs is compiled.
      if (own_process) sum.parity_s += arm.prepare_seconds(longest);
      sum.parity_s += prompts * arm.seconds(tokens, longest);
    }
  }
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

std::vector<std::optional<TimeEstimate>> cell_estimates(const Study& study, const Plan& plan,
                                                        const EstimateBasis& basis) {
  const int64_t all = rounds(study);
  const auto rows = static_cast<double>(all * study.warmup + round_begin(study, all));
  const std::vector<int64_t> prepared = preparations(study, plan);
  std::vector<std::optional<TimeEstimate>> estimates(plan.cells.size());
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = plan.cells[i];
    const ModelSize& model = basis.models[cell.model];
    if (!model.bytes) continue;
    if (!basis.on_gpu[cell.arm]) {
      estimates[i] = {.repetitions_s = rows * repetition_seconds(study, cell, *model.bytes,
                                                                 basis.read_bytes_per_s)};
      continue;
    }
    if (!model.layers) continue;
    const GpuArm arm(study.arms[cell.arm], *model.layers, *model.bytes, basis.gpu_read_bytes_per_s);
    const double tokens =
        prompt_tokens(study.scenarios[cell.scenario]) * static_cast<double>(cell.batch);
    estimates[i] = {
        .repetitions_s = rows * arm.seconds(tokens, cell.new_tokens),
        .preparing_s = static_cast<double>(prepared[i]) * arm.prepare_seconds(cell.new_tokens)};
  }
  return estimates;
}

std::optional<TimeEstimate> plan_estimate(const Study& study, const Plan& plan,
                                          const EstimateBasis& basis) {
  TimeEstimate sum;
  for (const auto& cell : cell_estimates(study, plan, basis)) {
    if (!cell) return std::nullopt;
    sum.repetitions_s += cell->repetitions_s;
    sum.preparing_s += cell->preparing_s;
  }
  for (size_t arm = 0; arm < study.arms.size(); ++arm) {
    for (const ModelSize& model : basis.models) {
      if (basis.on_gpu[arm]) {
        const GpuArm on_gpu(study.arms[arm], *model.layers, *model.bytes,
                            basis.gpu_read_bytes_per_s);
        add_gpu_workers(study, on_gpu, sum);
        continue;
      }
      sum.starting_s += starts(study) * *model.bytes / basis.read_bytes_per_s;
    }
  }
  return sum;
}

}  // namespace assay
