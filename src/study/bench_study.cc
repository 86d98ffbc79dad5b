// One line a key, as people write it.
#include "study/bench_study.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/phase.h"
#include "base/text.h"

namespace assay {
namespace {

// Any text as a YAML scalar: JSON's strings are among YAML's.
std::string quoted(const std::string& text) {
  return to_json_line(Json(text));
}

std::string numbers(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

// "torch:reduce-overhead" has a backend of its own.
std::string arm_line(const BenchTests& tests, const std::string& word) {
  constexpr std::string_view kTorch = "torch:";
  const bool torch = word.starts_with(kTorch);
  const std::string mode = torch ? word.substr(kTorch.size()) : word;
  std::string line = fmt::format(
      "  - {{name: {}, backend: {}, mode: {}, cache: ", quoted(torch ? "torch-" + mode : mode),
      torch ? "torch" : "native", quoted(mode));
  if (tests.caches.size() == 1) {
    line += quoted(tests.caches.front());
  } else {
    std::vector<std::string> caches;
    for (const std::string& cache : tests.caches) caches.push_back(quoted(cache));
    line += fmt::format("[{}]", join(caches, ", "));
  }
  if (!tests.device.empty()) line += ", device: " + quoted(tests.device);
  if (tests.threads > 0) line += fmt::format(", threads: {}", tests.threads);
  return line + "}\n";
}

std::string model_line(const BenchTests& tests, const BenchModel& model) {
  std::string line =
      fmt::format("  - {{path: {}, name: {}", quoted(model.path), quoted(model.name));
  if (!tests.dtype.empty()) line += ", dtype: " + quoted(tests.dtype);
  return line + "}\n";
}

std::string scenario_line(int64_t tokens, Phase phase) {
  return fmt::format("  - {{name: prompt_{}, phases: {}}}\n", tokens, phase_name(phase));
}

// A prompt that is prefilled and decoded behind is one scenario of both phases.
std::string scenario_lines(const BenchTests& tests) {
  std::string lines;
  bool decoded = tests.generations.empty();
  for (const int64_t tokens : tests.prompts) {
    if (!decoded && tokens == tests.depth) {
      lines += fmt::format("  - prompt_{}\n", tokens);
      decoded = true;
    } else {
      lines += scenario_line(tokens, Phase::kPrefill);
    }
  }
  return decoded ? lines : lines + scenario_line(tests.depth, Phase::kKvDecode);
}

}  // namespace

std::string bench_study(const BenchTests& tests) {
  std::string text = "name: bench\nmodels:\n";
  for (const BenchModel& model : tests.models) text += model_line(tests, model);
  text += "arms:\n";
  for (const std::string& arm : tests.arms) text += arm_line(tests, arm);
  std::vector<std::string> phases;
  if (!tests.prompts.empty()) phases.emplace_back(phase_name(Phase::kPrefill));
  if (!tests.generations.empty()) phases.emplace_back(phase_name(Phase::kKvDecode));
  text += fmt::format("phases: [{}]\nscenarios:\n{}", join(phases, ", "), scenario_lines(tests));
  if (!tests.generations.empty()) {
    text += fmt::format("token_lengths: {}\n", numbers(tests.generations));
  }
  return text + fmt::format("batch: {}\nrepetitions: {}\nwarmup: 1\nparity: after\n",
                            numbers(tests.batches), tests.repetitions);
}

}  // namespace assay
