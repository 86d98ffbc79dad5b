// Checks of arms and models without Python, and the readiness with it.
#include "backend/torch/torch_backend.h"

#include <map>

#include "backend/torch/torch_probe.h"
#include "backend/torch/torch_readiness.h"
#include "study/estimate.h"

namespace assay {
namespace {

// Importing torch from a cold disk takes most of a minute.
constexpr double kProbeTimeout_s = 180;
constexpr const char* kMakeEnvironment =
    "`make torch-env`, or name an interpreter with torch and transformers in ASSAY_TORCH_PYTHON";

// The first of these keys that holds a positive integer: GPT-2 has other names than later models.
std::optional<int64_t> size_of(const Json& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto it = config.find(key);
    if (it != config.end() && it->is_number_integer() && it->get<int64_t>() > 0) {
      return it->get<int64_t>();
    }
  }
  return std::nullopt;
}

void read_config(const Json& config, ModelFacts& facts) {
  facts.max_positions = size_of(config, {"max_position_embeddings", "n_positions"});
  facts.layers = size_of(config, {"num_hidden_layers", "n_layer"});
}

class TorchBackend final : public Backend {
 public:
  TorchBackend(std::filesystem::path program, ArchitectureSource architectures, Spawner& spawner,
               EnvironmentReader environment)
      : program_(std::move(program)),
        architectures_(std::move(architectures)),
        spawner_(spawner),
        environment_(std::move(environment)) {}

  // The study's parser has checked modes and keys; here those that exclude one another are refused.
  Status check_arm(const StudyArm& arm) const override {
    if (arm.mode == "manual-cudagraph" && arm.cache != "static") {
      return bad_input(
          "arm \"{}\": expected cache static for manual-cudagraph (a captured step can't grow a "
          "cache), found {}",
          arm.name, arm.cache);
    }
    return {};
  }

  WorkerCommand worker_command(const StudyArm& arm) const override {
    const auto python = find_python(arm, environment_);
    const auto workers = find_workers(program_, environment_);
    // readiness() has said so before anybody starts a worker.
    if (!python || !workers) return {{"python3"}, {}};
    // Nothing is downloaded at run time, and no thread of a tokenizer runs beside a timed region.
    return {{*python, "-B", (*workers / "torch" / "worker.py").string()},
            {{"HF_HUB_OFFLINE", "1"}, {"TOKENIZERS_PARALLELISM", "false"}}};
  }

  std::optional<std::string> readiness_program(const StudyArm& arm) const override {
    const auto python = find_python(arm, environment_);
    if (!python || !find_workers(program_, environment_)) return std::nullopt;
    return *python;
  }

  ArmReadiness readiness(const StudyArm& arm) override {
    const auto workers = find_workers(program_, environment_);
    if (!workers) return impossible_arm("no_worker", workers.error().message, "");
    const auto python = find_python(arm, environment_);
    if (!python) return impossible_arm("no_interpreter", python.error().message, kMakeEnvironment);
    const auto known = probes_.find(*python);
    const auto probe =
        known != probes_.end()
            ? known
            : probes_
                  .emplace(*python, probe_python(spawner_, *python, *workers / "torch" / "probe.py",
                                                 kProbeTimeout_s))
                  .first;
    if (!probe->second) {
      return impossible_arm("no_interpreter", probe->second.error().message, kMakeEnvironment);
    }
    return judge_torch_arm(arm, *probe->second);
  }

  // The interpreter as a file where its name is a path; libraries of its own, PyTorch among them,
  // are known by their versions alone.
  std::vector<ArmInput> inputs(const StudyArm& arm) override {
    std::vector<ArmInput> inputs;
    if (const auto workers = find_workers(program_, environment_)) {
      inputs.push_back({"torch worker", "worker.py", *workers / "torch" / "worker.py"});
      inputs.push_back({"torch worker", "assay_torch/", *workers / "torch" / "assay_torch"});
    }
    const auto python = find_python(arm, environment_);
    if (python && python->find('/') != std::string::npos) {
      inputs.push_back({"", "python", *python});
    }
    return inputs;
  }

  Json load_options(const StudyArm& arm, const StudyModel& model, uint64_t seed) const override {
    Json options = arm.options;
    options.erase("python");
    if (model.arch.empty()) return options;
    if (auto architecture = architectures_(model.arch, model.dtype)) {
      options["config"] = std::move(architecture->config);
    }
    options["seed"] = seed;
    return options;
  }

  Result<ModelFacts> inspect(const StudyModel& model,
                             std::span<const std::string> texts) const override {
    ModelFacts facts;
    if (!model.arch.empty()) {
      ASSAY_TRY(const TorchArchitecture architecture, architectures_(model.arch, model.dtype));
      read_config(architecture.config, facts);
      facts.weight_bytes = architecture.weight_bytes;
      if (!texts.empty()) {
        return bad_input(
            "model \"{}\": expected scenarios of token counts (an architecture without a "
            "checkpoint has no tokenizer), found a text",
            model.name);
      }
      return facts;
    }
    ASSAY_TRY(const Json config, read_json_file(model.path / "config.json"));
    read_config(config, facts);
    ASSAY_TRY(const double bytes, weight_bytes(model.path));
    facts.weight_bytes = static_cast<uint64_t>(bytes);
    return facts;
  }

  // Nobody measures the bandwidth of the device that PyTorch computes on: no row is judged by it.
  std::optional<ReadLimit> read_limit(const StudyArm&, uint64_t) override { return std::nullopt; }

 private:
  std::filesystem::path program_;
  ArchitectureSource architectures_;
  Spawner& spawner_;
  EnvironmentReader environment_;
  std::map<std::string, Result<TorchProbe>> probes_;  // by interpreter
};

}  // namespace

std::unique_ptr<Backend> make_torch_backend(std::filesystem::path program,
                                            ArchitectureSource architectures, Spawner& spawner,
                                            EnvironmentReader environment) {
  return std::make_unique<TorchBackend>(std::move(program), std::move(architectures), spawner,
                                        std::move(environment));
}

}  // namespace assay
