// One line a key, as people write it.
#include "study/bench_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/records/backend_traits.h"
#include "base/records/json.h"
#include "base/records/phase.h"
#include "base/text/text.h"
#include "study/arm_options.h"

namespace assay {
namespace {

// A type of arms, whose products compute in it; the weights' is the model's.
constexpr std::string_view kFp8 = "fp8";

// Any text as a YAML scalar: JSON's strings are among YAML's.
std::string quoted(const std::string& text) {
  return to_json_line(Json(text));
}

std::string numbers(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

// Most graphs that a compiled arm may need in one process: one for each combination of sizes.
int64_t most_graphs(const BenchTests& tests) {
  const size_t lengths = tests.prompts.size() + tests.generations.size() * tests.depths.size();
  return static_cast<int64_t>(tests.batches.size() * lengths);
}

// ", dynamic: ..." of an arm of this mode over this cache; empty: the study's own choice.
std::string dynamic_key(const BenchTests& tests, const BackendTraits& backend,
                        const std::string& mode, const std::string& cache) {
  constexpr int64_t kUsualLimit = 8;
  const bool native = backend.worker == WorkerKind::kAssay;
  if (!mode_compiles(mode) || (!native && tests.dynamic.empty())) return "";
  const std::string word = !tests.dynamic.empty() ? tests.dynamic
                           : cache == "static"    ? "false"
                                                  : "true";
  std::string key = ", dynamic: " + word;
  if (native && most_graphs(tests) > kUsualLimit) {
    key += fmt::format(", recompile_limit: {}", most_graphs(tests));
  }
  return key;
}

// A line a cache and number of threads, named as a list of caches names its arms. `word` is MODE,
// of the native engine, or BACKEND:MODE.
std::string arm_lines(const BenchTests& tests, const std::string& word) {
  const size_t colon = word.find(':');
  const bool native = backend_traits(word.substr(0, colon)).name.empty() || colon == word.npos;
  const std::string mode = native ? word : word.substr(colon + 1);
  const BackendTraits& backend = backend_traits(native ? "native" : word.substr(0, colon));
  const std::string device =
      tests.device.empty() && backend.takes_gpu_unasked ? "cpu" : tests.device;
  std::string lines;
  const auto add = [&](const std::string& cache, std::optional<int64_t> threads) {
    const std::string name = (native ? mode : fmt::format("{}-{}", backend.name, mode)) +
                             (tests.caches.size() > 1 ? "-" + cache : "") +
                             (tests.threads.size() > 1 ? fmt::format("-t{}", *threads) : "");
    lines += fmt::format("  - {{name: {}, backend: {}, mode: {}, cache: {}", quoted(name),
                         backend.name, quoted(mode), quoted(cache));
    lines += dynamic_key(tests, backend, mode, cache);
    if (!device.empty()) lines += ", device: " + quoted(device);
    if (tests.dtype == kFp8) lines += fmt::format(", dtype: {}", kFp8);
    if (threads) lines += fmt::format(", threads: {}", *threads);
    lines += "}\n";
  };
  for (const std::string& cache : tests.caches) {
    if (tests.threads.empty()) add(cache, std::nullopt);
    for (const int64_t threads : tests.threads) add(cache, threads);
  }
  return lines;
}

// The arm's name is the server's API, which its caller has put there.
std::string server_line(const Json& server) {
  std::string line =
      fmt::format("  - {{name: {}, backend: http", quoted(server["api"].get<std::string>()));
  for (const auto& [key, value] : server.items())
    line += fmt::format(", {}: {}", key, to_json_line(value));
  return line + "}\n";
}

std::string model_line(const BenchTests& tests, const BenchModel& model) {
  std::string line =
      fmt::format("  - {{path: {}, name: {}", quoted(model.path), quoted(model.name));
  if (!tests.dtype.empty() && tests.dtype != kFp8) line += ", dtype: " + quoted(tests.dtype);
  return line + "}\n";
}

std::string scenario_line(int64_t tokens, Phase phase) {
  return fmt::format("  - {{name: prompt_{}, phases: {}}}\n", tokens, phase_name(phase));
}

// A prompt that is prefilled and decoded behind is one scenario of both phases.
std::string scenario_lines(const BenchTests& tests) {
  const auto depths = tests.generations.empty() ? std::vector<int64_t>() : tests.depths;
  const auto has = [](const std::vector<int64_t>& of, int64_t tokens) {
    return std::ranges::find(of, tokens) != of.end();
  };
  std::string lines;
  for (const int64_t tokens : tests.prompts) {
    lines += has(depths, tokens) ? fmt::format("  - prompt_{}\n", tokens)
                                 : scenario_line(tokens, Phase::kPrefill);
  }
  for (const int64_t tokens : depths) {
    if (!has(tests.prompts, tokens)) lines += scenario_line(tokens, Phase::kKvDecode);
  }
  return lines;
}

std::string load_lines(const BenchTests& tests) {
  const BenchLoad& load = tests.load;
  std::string text = "load:\n";
  if (!load.concurrency.empty())
    text += fmt::format("  concurrency: {}\n", numbers(load.concurrency));
  if (!load.rates.empty()) text += fmt::format("  rate: [{}]\n", fmt::join(load.rates, ", "));
  if (!load.arrivals.empty()) text += fmt::format("  arrivals: {}\n", load.arrivals);
  if (load.duration_s > 0) text += fmt::format("  duration_s: {}\n", load.duration_s);
  if (load.requests > 0) text += fmt::format("  requests: {}\n", load.requests);
  text += fmt::format("  prompt_tokens: {}\n  new_tokens: {}\n", numbers(tests.prompts),
                      numbers(tests.generations));
  if (load.slo.empty()) return text;
  std::vector<std::string> bounds;
  for (const auto& [key, ms] : load.slo) bounds.push_back(fmt::format("{}: {}", key, ms));
  return text + fmt::format("  slo: {{{}}}\n", join(bounds, ", "));
}

}  // namespace

std::string bench_study(const BenchTests& tests) {
  std::string text = "name: bench\nmodels:\n";
  for (const BenchModel& model : tests.models) text += model_line(tests, model);
  text += "arms:\n";
  if (!tests.server.is_null()) text += server_line(tests.server);
  for (const std::string& arm : tests.arms) text += arm_lines(tests, arm);
  if (tests.load.any())
    return text + load_lines(tests) + fmt::format("repetitions: {}\n", tests.repetitions);
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
