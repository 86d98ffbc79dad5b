// Estimates a plan's time.
#include "study/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/records/backend_traits.h"
#include "base/records/json.h"
#include "base/records/lenient_json.h"
#include "study/arm_options.h"
#include "study/gpu_arm.h"
#include "study/load_study.h"

namespace assay {
namespace {

// Tokens that go through the weights for the price of reading them: 2 FLOP a token and 4 bytes a
// weight; a core that reads 5 GB/s and computes 40 GFLOP/s breaks even at 16.
constexpr double kTokensPerRead = 16;

// Parts of a start (start_seconds()).
constexpr double kMappedBytesPerS = 2e9;
constexpr double kPackedBytesPerS = 0.5e9;
constexpr double kCompileSeconds = 4;

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

double table_bytes(const Json& config) {
  const double element = text_member(config, "torch_dtype").ends_with("float16") ? 2 : 4;
  const double hidden =
      number_member(config, "hidden_size").value_or(number_member(config, "n_embd").value_or(0));
  const double words = number_member(config, "vocab_size").value_or(0);
  // Untied, one table is looked up and the other one computes the logits.
  const double tables = member(config, "tie_word_embeddings") == false ? 2 : 1;
  return std::max(0.0, element * hidden * words * tables);
}

// Seconds of a forward pass of so many tokens, over the batch.
double pass_seconds(const ModelSize& model, double tokens, double read_bytes_per_s) {
  const double bytes = model.bytes.value_or(0);
  const double once = std::min(model.vocabulary_bytes, bytes);
  const double reads = std::max(1.0, tokens / kTokensPerRead);
  return (once + reads * (bytes - once)) / read_bytes_per_s;
}

// Seconds of a prompt of so many tokens and the decode steps after it.
double tokens_seconds(const ModelSize& model, double prompt, int64_t steps, int64_t batch,
                      double read_bytes_per_s) {
  const auto sequences = static_cast<double>(batch);
  return pass_seconds(model, prompt * sequences, read_bytes_per_s) +
         static_cast<double>(steps) * pass_seconds(model, sequences, read_bytes_per_s);
}

bool keeps_kernels(const StudyArm& arm) {
  const auto option = arm.options.find("kernel_cache");
  return option == arm.options.end() || *option != false;
}

// The number of preparations of each cell: one whenever its worker last served another cell, or
// none.
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

// Seconds of an arm's parity on a model: each prompt, at each batch, for the most tokens that a
// cell makes of it. `seconds` of one, given the mean prompt, the decode steps and the batch.
template <typename Seconds>
double parity_seconds(const Study& study, const Seconds& seconds) {
  double sum = 0;
  if (study.load) return sum;
  for (const StudyScenario& scenario : study.scenarios) {
    const auto longest = longest_generation(study, scenario);
    if (!longest) continue;
    const auto prompts = static_cast<double>(std::max<size_t>(1, scenario.prompt_tokens.size()));
    for (const int64_t batch : study.batch) {
      sum += seconds(prompt_tokens(scenario), *longest, batch, prompts);
    }
  }
  return sum;
}

// Adds the start of the arm's workers, and their parity.
void add_gpu_workers(const Study& study, const GpuArm& arm, TimeEstimate& sum) {
  sum.starting_s += starts(study) * arm.start_seconds() +
                    static_cast<double>(rounds(study)) * arm.explain_seconds();
  const bool own_process = study.parity == ParityTime::kBefore;  // later its code is compiled
  sum.parity_s +=
      parity_seconds(study, [&](double prompt, int64_t steps, int64_t batch, double prompts) {
        return (own_process ? arm.prepare_seconds(steps) : 0) +
               prompts * arm.seconds(prompt * static_cast<double>(batch), steps);
      });
}

void add_workers(const Study& study, const StudyArm& arm, const ModelSize& model,
                 double read_bytes_per_s, TimeEstimate& sum) {
  sum.starting_s += starts(study) * start_seconds(arm, model.bytes).value_or(0);
  sum.parity_s +=
      parity_seconds(study, [&](double prompt, int64_t steps, int64_t batch, double prompts) {
        return prompts * tokens_seconds(model, prompt, steps, batch, read_bytes_per_s);
      });
}

}  // namespace

Result<double> weight_bytes(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_regular_file(folder, error)) {
    const uintmax_t size = fs::file_size(folder, error);
    if (!error) return static_cast<double>(size);
  }
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

Result<ModelSize> model_size(const std::filesystem::path& folder) {
  ModelSize size;
  ASSAY_TRY(size.bytes, weight_bytes(folder));
  const Result<Json> config = read_json_file(folder / "config.json");
  if (!config) return size;
  size.vocabulary_bytes = std::min(table_bytes(*config), *size.bytes);
  for (const char* name : {"num_hidden_layers", "n_layer"}) {
    if (const auto layers = whole_member(*config, name); layers && *layers > 0) {
      size.layers = layers;
    }
  }
  return size;
}

double repetition_seconds(const Study& study, const Cell& cell, const ModelSize& model,
                          double read_bytes_per_s) {
  return kRowSeconds + tokens_seconds(model, prompt_tokens(study.scenarios[cell.scenario]),
                                      cell.new_tokens, cell.batch, read_bytes_per_s);
}

std::optional<double> start_seconds(const StudyArm& arm, std::optional<double> model_bytes) {
  const BackendTraits& backend = backend_traits(arm.backend);
  if (!backend.costs) return std::nullopt;
  if (device_option(arm).starts_with("cuda") || may_take_gpu(arm)) return backend.costs->gpu_start;
  const double process = backend.costs->processor_start;
  if (!backend.maps_weights) return process;
  if (!model_bytes) return std::nullopt;
  if (!mode_compiles(arm.mode)) return process + *model_bytes / kMappedBytesPerS;
  return process + *model_bytes / kPackedBytesPerS + (keeps_kernels(arm) ? 0 : kCompileSeconds);
}

double compile_seconds(const StudyArm& arm) {
  const auto& costs = backend_traits(arm.backend).costs;
  return costs && mode_compiles(arm.mode) ? costs->processor_compile : 0;
}

std::vector<std::optional<TimeEstimate>> cell_estimates(const Study& study, const Plan& plan,
                                                        const EstimateBasis& basis) {
  const int64_t all = rounds(study);
  const auto rows = static_cast<double>(all * study.warmup + round_begin(study, all));
  const std::vector<int64_t> prepared = preparations(study, plan);
  std::vector<std::optional<TimeEstimate>> estimates(plan.cells.size());
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const Cell& cell = plan.cells[i];
    if (study.load) {
      if (const auto run_s = schedule_seconds(offered_load(study, cell, 0)))
        estimates[i] = {.repetitions_s = rows * *run_s};
      continue;
    }
    const ModelSize& model = basis.models[cell.model];
    if (!model.bytes || !backend_traits(study.arms[cell.arm].backend).costs) continue;
    if (!basis.on_gpu[cell.arm]) {
      estimates[i] = {
          .repetitions_s = rows * repetition_seconds(study, cell, model, basis.read_bytes_per_s),
          .preparing_s = static_cast<double>(prepared[i]) * compile_seconds(study.arms[cell.arm])};
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
  if (study.load) return sum;  // nobody knows how long a server takes to start
  for (size_t arm = 0; arm < study.arms.size(); ++arm) {
    for (const ModelSize& model : basis.models) {
      if (basis.on_gpu[arm]) {
        const GpuArm on_gpu(study.arms[arm], *model.layers, *model.bytes,
                            basis.gpu_read_bytes_per_s);
        add_gpu_workers(study, on_gpu, sum);
        continue;
      }
      add_workers(study, study.arms[arm], model, basis.read_bytes_per_s, sum);
    }
  }
  return sum;
}

}  // namespace assay
