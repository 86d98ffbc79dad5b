// optimum-benchmark: a report of measurements by target, and the configuration that they are of.
#include <algorithm>
#include <array>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "import/formats/readers.h"
#include "import/formats/sample_parts.h"
#include "import/formats/settings.h"

namespace assay {
namespace {

// A report, and the configuration of its folder.
struct OptimumPart {
  const SourceText* source = nullptr;
  const Json* report = nullptr;
  const Json* config = nullptr;  // null: there is none
};

bool is_config(const Json& document) {
  return document.is_object() && document.contains("backend") && document.contains("scenario");
}

Result<std::vector<OptimumPart>> parts_of(std::span<const SourceText> sources) {
  std::vector<OptimumPart> parts;
  std::map<std::string, const Json*> configs;  // by folder
  for (const SourceText& source : sources) {
    ASSAY_TRY(const auto documents, documents_of(source));
    const Json& document = documents[0];
    if (is_config(document)) {
      if (!configs.try_emplace(folder_of(source), &document).second) {
        return bad_input("{}: expected one configuration a folder, found a second", source.path);
      }
    } else if (member(document, "report").is_object()) {
      parts.push_back({&source, &document["report"], &member(document, "config")});
    } else {
      parts.push_back({&source, &document, nullptr});
    }
  }
  for (OptimumPart& part : parts) {
    const auto config = configs.find(folder_of(*part.source));
    if (part.config == nullptr && config != configs.end()) part.config = config->second;
  }
  if (parts.empty()) {
    return bad_input("{}: expected a report, found only configurations", sources[0].path);
  }
  return parts;
}

// torch.compile's mode, or eager where the configuration says that it wasn't asked for.
Status state_mode(const Json& backend, const std::string& object, RunFacts& facts) {
  const Json& compiled = member(backend, "torch_compile");
  if (!compiled.is_boolean()) return {};
  if (compiled == false) return facts.state(ImportField::kCompileMode, "eager", object);
  const Json& options = member(backend, "torch_compile_config");
  const std::string mode = plain_text(options, "mode");
  ASSAY_CHECK(facts.state(ImportField::kCompileMode, mode.empty() ? "default" : mode, object));
  const Json& dynamic = member(options, "dynamic");
  if (!dynamic.is_boolean()) return {};
  return facts.state(ImportField::kDynamic, dynamic == true ? "true" : "false", object);
}

Status state_weights(const Json& backend, const std::string& object, RunFacts& facts) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    const std::string dtype = plain_text(backend, key);
    if (dtype.empty() || dtype == "auto") continue;
    ASSAY_CHECK(facts.state(ImportField::kDtype, dtype, object));
  }
  if (!backend.contains("quantization_scheme")) return {};
  const std::string scheme = plain_text(backend, "quantization_scheme");
  return facts.state(ImportField::kQuantization, scheme.empty() ? "none" : scheme, object);
}

Status state_identity(const Json& config, const std::string& object, RunFacts& facts) {
  const Json& backend = member(config, "backend");
  const Json& machine = member(config, "environment");
  const Json& gpus = member(machine, "gpu");
  const bool on_gpu = plain_text(backend, "device") == "cuda";
  std::string device = on_gpu ? (gpus.is_array() && !gpus.empty() ? shown_text(gpus[0]) : "")
                              : plain_text(machine, "cpu");
  device.erase(0, device.find_first_not_of(' '));
  ASSAY_CHECK(facts.state(ImportField::kDevice, short_name(device), object));
  std::string build;
  const auto add = [&](const std::string& name, const std::string& version) {
    if (!name.empty() && !version.empty()) {
      build += (build.empty() ? "" : ", ") + name + " " + version;
    }
  };
  add(plain_text(backend, "name"), plain_text(backend, "version"));
  add("transformers", plain_text(machine, "transformers_version"));
  add("optimum-benchmark", plain_text(machine, "optimum_benchmark_version"));
  ASSAY_CHECK(facts.state(ImportField::kFrameworkBuild, short_name(build), object));
  return facts.state(ImportField::kCodeSha, plain_text(machine, "optimum_benchmark_commit"),
                     object);
}

// Prefixes that settings have in arms' names.
constexpr std::array<std::pair<std::string_view, const char*>, 5> kOptimumMarks = {
    {{"backend.cache_implementation", "cache-"},
     {"backend.attn_implementation", "attn-"},
     {"backend.intra_op_num_threads", "t"},
     {"backend.inter_op_num_threads", "inter"},
     {"backend.autocast_enabled", "autocast-"}}};

// States the whole configuration, except its name and members that fields are made of.
Status state_optimum_settings(const Json& config, const std::string& object, ImportedRun& run) {
  static const auto kOfFields = one_of(
      {"name", "print_report", "log_report", "backend.name", "backend.version", "backend.model",
       "backend.dtype", "backend.torch_dtype", "backend.torch_compile_config.dynamic",
       "backend.torch_compile_config.mode", "backend.quantization_scheme",
       "scenario.input_shapes.batch_size", "scenario.input_shapes.sequence_length",
       "scenario.generate_kwargs.max_new_tokens", "environment.transformers_version",
       "environment.optimum_benchmark_version", "environment.optimum_benchmark_commit"});
  const bool on_gpu = plain_text(member(config, "backend"), "device") == "cuda";
  const auto is_other = [&](std::string_view name) {
    if (name == "backend.cache_implementation") return run.facts.knows(ImportField::kCache);
    if (name == "backend.torch_compile") return run.facts.knows(ImportField::kCompileMode);
    return kOfFields(name) || name == (on_gpu ? "environment.gpu" : "environment.cpu");
  };
  ASSAY_CHECK(add_settings(config, {.is_other = is_other}, object, run));
  for (StatedSetting& setting : run.settings) {
    const auto mark =
        std::ranges::find(kOptimumMarks, setting.name, [](const auto& m) { return m.first; });
    if (mark != kOptimumMarks.end()) setting.mark = mark->second;
  }
  return {};
}

Status state_config(const Json& config, const std::string& object, ImportedRun& run) {
  RunFacts& facts = run.facts;
  const Json& backend = member(config, "backend");
  const Json& scenario = member(config, "scenario");
  const std::string name = plain_text(backend, "name");
  ASSAY_CHECK(facts.state(ImportField::kBackend, short_name(name), object));
  ASSAY_CHECK(facts.state(ImportField::kModel, short_name(plain_text(backend, "model")), object));
  ASSAY_CHECK(state_weights(backend, object, facts));
  ASSAY_CHECK(state_mode(backend, object, facts));
  ASSAY_CHECK(state_identity(config, object, facts));
  const std::string cache = plain_text(backend, "cache_implementation");
  if (cache == "static" || cache == "dynamic") {
    ASSAY_CHECK(facts.state(ImportField::kCache, cache, object));
  }
  const Json& shapes = member(scenario, "input_shapes");
  ASSAY_CHECK(facts.state(ImportField::kBatch, plain_text(shapes, "batch_size"), object));
  ASSAY_CHECK(
      facts.state(ImportField::kPromptTokens, plain_text(shapes, "sequence_length"), object));
  ASSAY_CHECK(state_optimum_settings(config, object, run));
  run.warmed_up = whole_member(scenario, "warmup_runs").value_or(0) > 0;
  return {};
}

// The phase that a target's latency is the time of.
struct OptimumTarget {
  const char* name;
  std::optional<Phase> phase;  // absent: the report doesn't say
  int64_t less_tokens;         // of those that were generated, before it
};
constexpr std::array<OptimumTarget, 5> kTargets = {{{"prefill", Phase::kPrefill, 0},
                                                    {"decode", Phase::kKvDecode, 1},
                                                    {"generate", Phase::kE2eKv, 0},
                                                    {"forward", Phase::kPrefill, 0},
                                                    {"call", std::nullopt, 0}}};

Status state_target(const OptimumTarget& target, const Json& config, const std::string& object,
                    RunFacts& facts) {
  if (target.phase) {
    ASSAY_CHECK(facts.state(ImportField::kPhase, phase_name(*target.phase), object));
  }
  // "forward" and "call" may be of any model: the word stays with them.
  const bool generates = target.phase && std::string_view(target.name) != "forward";
  const auto prompt = facts.count(ImportField::kPromptTokens);
  if (!generates || prompt) {
    ASSAY_CHECK(facts.state(ImportField::kScenario,
                            generates ? fmt::format("prompt_{}", *prompt) : target.name, object));
  }
  const auto asked =
      whole_member(member(member(config, "scenario"), "generate_kwargs"), "max_new_tokens");
  if (!target.phase || *target.phase == Phase::kPrefill || !asked || *asked <= target.less_tokens ||
      *asked > 1'000'000'000) {
    return {};
  }
  facts.state_count(ImportField::kNewTokens, *asked - target.less_tokens);
  return {};
}

double seconds_unit(const std::string& unit) {
  return unit == "s" ? 1e3 : unit == "ms" ? 1 : 0;
}

Status add_values(const Json& latency, const std::string& object, ImportedRun& run) {
  const double factor = seconds_unit(plain_text(latency, "unit"));
  if (factor == 0) {
    return bad_input("{}: expected the unit s or ms, found {}", object,
                     quoted_excerpt(plain_text(latency, "unit")));
  }
  const Json& values = member(latency, "values");
  run.means = values.is_null();
  std::vector<double> times;
  if (run.means) {
    ASSAY_TRY(const double mean, json_number(latency, "mean", object));
    times = {mean};
  } else {
    ASSAY_TRY(times, json_numbers(values, object, "values"));
  }
  for (const double time : times) put_latency(run.samples.emplace_back(), time * factor);
  return {};
}

Status read_part(const OptimumPart& part, Imported& imported) {
  static const Json kNoConfig;
  const Json& config = part.config ? *part.config : kNoConfig;
  size_t targets = 0;
  for (const OptimumTarget& target : kTargets) {
    const Json& latency = member(member(*part.report, target.name), "latency");
    if (latency.is_null()) continue;
    const std::string object = fmt::format("{}: {}", part.source->path, target.name);
    ImportedRun run{.source = part.source->path, .facts = {}};
    ASSAY_CHECK(state_config(config, object, run));
    ASSAY_CHECK(state_target(target, config, object, run.facts));
    ASSAY_CHECK(add_values(latency, object, run));
    ASSAY_CHECK(add_run(std::move(run), imported));
    ++targets;
  }
  if (targets > 0) return {};
  return bad_input(
      "{}: expected the latency of prefill, decode, generate, forward or call, found "
      "none",
      part.source->path);
}

Json machine_of_config(const Json& config) {
  Json machine = Json::object();
  const Json& environment = member(config, "environment");
  for (const char* key : {"cpu", "cpu_count", "cpu_ram_mb", "system", "machine", "platform",
                          "python_version", "gpu", "gpu_count", "gpu_vram_mb"}) {
    if (const Json& value = member(environment, key); !value.is_null()) machine[key] = value;
  }
  return machine;
}

}  // namespace

Result<Imported> read_optimum(std::span<const SourceText> sources) {
  Imported imported{.format = "optimum", .tool = "optimum-benchmark"};
  imported.order = "sequential";
  ASSAY_TRY(const std::vector<OptimumPart> parts, parts_of(sources));
  for (const OptimumPart& part : parts) {
    ASSAY_CHECK(read_part(part, imported));
    if (!part.config) continue;
    imported.machine = machine_of_config(*part.config);
    const std::string version =
        plain_text(member(*part.config, "environment"), "optimum_benchmark_version");
    if (!version.empty()) imported.tool = "optimum-benchmark " + short_name(version);
  }
  return imported;
}

}  // namespace assay
