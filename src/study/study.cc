// A study file's schema: every key, its type, range and default.
#include "study/study.h"

#include <algorithm>
#include <array>

#include "base/files/files.h"
#include "base/records/backend_traits.h"
#include "base/text/text.h"
#include "study/arm_options.h"
#include "study/arms.h"
#include "study/command_arm.h"
#include "study/load_study.h"
#include "study/require.h"
#include "study/scenarios.h"
#include "study/study_quality.h"
#include "study/yaml_reader.h"

namespace assay {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kMaxModels = 64;
constexpr int64_t kMaxBatch = 4096;
constexpr int64_t kMaxRepetitions = 1'000'000;
constexpr int64_t kMaxProcesses = 1000;
constexpr int64_t kMaxPaddingMultiple = 4096;
constexpr double kMaxTimeoutS = 86'400;

constexpr std::array kPaddingScopes = {PaddingScope::kNone, PaddingScope::kScenario,
                                       PaddingScope::kGlobal};
constexpr std::array kParityTimes = {ParityTime::kBefore, ParityTime::kAfter};
constexpr std::array kOrders = {RunOrder::kSequential, RunOrder::kShuffled, RunOrder::kInterleaved};

Result<StudyModel> parse_model(const YamlValue& value) {
  static const Words known = {"path", "arch", "dtype", "name"};
  static const Words dtypes = {"fp32", "fp16", "bf16"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  StudyModel model{.name = "", .path = "", .dtype = ""};
  const auto arch = map.find("arch");
  if (arch && map.find("path")) return arch->error("path or arch, not both");
  if (arch) {
    ASSAY_TRY(model.arch, arch->text());
    model.name = model.arch;
  } else {
    ASSAY_TRY(const YamlValue path_value, map.require("path"));
    ASSAY_TRY(const std::string path, path_value.text());
    model.path = path;
  }
  if (const auto dtype = map.find("dtype")) {
    ASSAY_TRY(const size_t index, dtype->one_of(dtypes));
    model.dtype = dtypes[index];
  }
  if (const auto name = map.find("name")) {
    ASSAY_TRY(model.name, name->text());
    return model;
  }
  if (arch) return model;
  // "models/gpt2/" has an empty last part.
  const std::filesystem::path normal = model.path.lexically_normal();
  model.name = (normal.has_filename() ? normal : normal.parent_path()).filename().string();
  if (model.name.empty() || model.name == "." || model.name == "..") {
    return map.find("path")->error(
        "a path that ends in a folder's name, or the key \"name\" beside it");
  }
  return model;
}

Result<std::vector<StudyModel>> parse_models(const YamlValue& value) {
  ASSAY_TRY(const std::vector<YamlValue> items, value.items());
  if (items.size() > kMaxModels) {
    return value.error(fmt::format("at most {} models", kMaxModels),
                       fmt::format("{}", items.size()));
  }
  std::vector<StudyModel> models;
  for (const YamlValue& item : items) {
    ASSAY_TRY(StudyModel model, parse_model(item));
    if (std::ranges::find(models, model.name, &StudyModel::name) != models.end()) {
      return item.error("each model's name once (the key \"name\" gives another)",
                        quoted_excerpt(model.name) + " again");
    }
    models.push_back(std::move(model));
  }
  return models;
}

Status parse_padding(const YamlValue& value, Study& study) {
  static const Words known = {"scope", "multiple_of"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  ASSAY_TRY(const YamlValue scope, map.require("scope"));
  Words scopes;
  for (PaddingScope each : kPaddingScopes) scopes.emplace_back(padding_scope_name(each));
  ASSAY_TRY(const size_t index, scope.one_of(scopes));
  study.padding_scope = kPaddingScopes[index];
  if (const auto multiple = map.find("multiple_of")) {
    ASSAY_TRY(study.padding_multiple_of, multiple->integer(1, kMaxPaddingMultiple));
  }
  return {};
}

Status parse_processes(const YamlValue& value, Study& study) {
  ASSAY_TRY(study.processes, value.integer(1, kMaxProcesses));
  study.processes_given = true;
  if (study.processes <= study.repetitions) return {};
  return value.error(fmt::format("at most as many processes as repetitions, {}", study.repetitions),
                     fmt::format("{}", study.processes));
}

// True if the study stops by decisions, which are between arms that ran side by side.
Result<bool> parse_decide(const YamlMap& stopping, const Study& study) {
  static const Words words = {"false", "true"};
  const auto decide = stopping.find("decide");
  if (!decide) return false;
  ASSAY_TRY(const size_t chosen, decide->one_of(words));
  if (chosen == 0) return false;
  if (const auto interval = stopping.find("relative_ci")) {
    return interval->error("decide or relative_ci, not both");
  }
  if (study.order != RunOrder::kInterleaved) {
    return decide->error("order interleaved, whose arms run side by side",
                         fmt::format("{}", run_order_name(study.order)));
  }
  if (study.arms.size() < 2) return decide->error("two arms or more to decide between", "1");
  return true;
}

Status parse_stopping(const YamlValue& value, Study& study) {
  static const Words known = {"max_repetitions", "relative_ci", "decide", "margin"};
  ASSAY_TRY(const YamlMap map, value.map(known));
  ASSAY_TRY(const YamlValue most, map.require("max_repetitions"));
  Stopping stopping;
  ASSAY_TRY(stopping.max_repetitions, most.integer(study.repetitions, kMaxRepetitions));
  ASSAY_TRY(stopping.decide, parse_decide(map, study));
  if (const auto margin = map.find("margin")) {
    if (!stopping.decide) return margin->error("no margin without decide: true");
    ASSAY_TRY(stopping.margin, margin->positive_number(1));
  }
  if (!stopping.decide) {
    ASSAY_TRY(const YamlValue interval, map.require("relative_ci"));
    ASSAY_TRY(stopping.relative_ci, interval.positive_number(1));
  }
  // Each process judges its own interval, which takes two samples; of two, one may be cold.
  if (study.processes > 1 && study.repetitions / study.processes < 2) {
    return value.error(
        fmt::format("at least 2 repetitions for each of the {} processes", study.processes),
        fmt::format("{}", study.repetitions));
  }
  study.stopping = stopping;
  return {};
}

// Reads the things measured: models, arms, phases, scenarios.
Status parse_subjects(const YamlMap& map, Study& study) {
  ASSAY_TRY(const YamlValue name, map.require("name"));
  ASSAY_TRY(study.name, name.text());
  ASSAY_TRY(const YamlValue models, map.require("models"));
  ASSAY_TRY(study.models, parse_models(models));
  ASSAY_TRY(const YamlValue arms, map.require("arms"));
  ASSAY_TRY(study.arms, parse_arms(arms));
  if (const auto load = map.find("load")) return parse_load_study(map, *load, study);
  for (const StudyArm& arm : study.arms) {
    for (const char* const key : {kSlotsOption, "context", "chunk"}) {
      if (arm.options.contains(key))
        return arms.error(fmt::format("the study's key \"load\" beside \"{}\"", key), "none");
    }
  }
  ASSAY_TRY(const YamlValue phase_list, map.require("phases"));
  ASSAY_TRY(study.phases, parse_phases(phase_list, kRequestPhases));
  ASSAY_TRY(const YamlValue scenarios, map.require("scenarios"));
  ASSAY_TRY(study.scenarios, parse_scenarios(scenarios, study.phases));
  for (const Phase phase : study.phases) {
    if (std::ranges::any_of(study.scenarios, [&](const auto& s) { return runs_in(s, phase); })) {
      continue;
    }
    return phase_list.error("a scenario for each", fmt::format("none for {}", phase_name(phase)));
  }
  if (const auto lengths = map.find("token_lengths")) {
    ASSAY_TRY(study.token_lengths, parse_integers(*lengths, kMaxTokens));
  } else if (std::ranges::any_of(study.phases, decodes)) {
    return phase_list.error(
        fmt::format("the key \"token_lengths\" for {}", phase_name(study.phases.back())), "none");
  }
  study.batch = {1};
  if (const auto batch = map.find("batch")) {
    ASSAY_TRY(study.batch, parse_integers(*batch, kMaxBatch));
  }
  return {};
}

// The number of threads that all arms have on the processor; 0: they have no such number.
int64_t common_threads(const Study& study) {
  const int64_t threads = study.arms.front().threads;
  const bool common = std::ranges::all_of(study.arms, [&](const StudyArm& arm) {
    const std::string device = device_option(arm);
    return arm.threads == threads && (device.empty() || device == "cpu");
  });
  return common ? threads : 0;
}

Status parse_cpus(const YamlValue& value, Study& study) {
  ASSAY_TRY(const size_t index, value.one_of(Words{"together", "free"}));
  study.cpus = index == 0 ? CpuChoice::kTogether : CpuChoice::kFree;
  if (study.cpus == CpuChoice::kFree || common_threads(study) > 0) return {};
  return value.error("arms on the processor with one number of `threads`");
}

// Reads the procedure: the number of repetitions, their order, their time limits.
Status parse_procedure(const YamlMap& map, Study& study) {
  if (const auto padding = map.find("padding")) ASSAY_CHECK(parse_padding(*padding, study));
  if (const auto repetitions = map.find("repetitions")) {
    ASSAY_TRY(study.repetitions, repetitions->integer(1, kMaxRepetitions));
  }
  if (const auto warmup = map.find("warmup")) {
    ASSAY_TRY(study.warmup, warmup->integer(0, kMaxRepetitions));
  } else {
    study.warmup = default_warmup(study, study.warmup);
  }
  if (const auto processes = map.find("processes")) {
    ASSAY_CHECK(parse_processes(*processes, study));
  }
  if (const auto order = map.find("order")) {
    Words names;
    for (RunOrder each : kOrders) names.emplace_back(run_order_name(each));
    ASSAY_TRY(const size_t index, order->one_of(names));
    study.order = kOrders[index];
  }
  if (const auto cpus = map.find("cpus")) ASSAY_CHECK(parse_cpus(*cpus, study));
  if (const auto stopping = map.find("stopping")) ASSAY_CHECK(parse_stopping(*stopping, study));
  if (const auto parity = map.find("parity")) {
    Words names;
    for (ParityTime each : kParityTimes) names.emplace_back(parity_time_name(each));
    ASSAY_TRY(const size_t index, parity->one_of(names));
    study.parity = kParityTimes[index];
  }
  if (const auto timeout = map.find("timeout_s")) {
    ASSAY_TRY(study.timeout_s, timeout->positive_number(kMaxTimeoutS));
  }
  study.compile_timeout_s = study.timeout_s;
  if (const auto timeout = map.find("compile_timeout_s")) {
    ASSAY_TRY(study.compile_timeout_s, timeout->positive_number(kMaxTimeoutS));
  }
  if (const auto seed = map.find("seed")) {
    ASSAY_TRY(study.seed, seed->unsigned_integer());
  }
  if (const auto require = map.find("require")) {
    ASSAY_TRY(study.require, parse_require(*require));
  }
  study.baseline = study.arms.front().name;
  if (const auto baseline = map.find("baseline")) {
    Words names;
    for (const StudyArm& arm : study.arms) names.push_back(arm.name);
    ASSAY_TRY(const size_t index, baseline->one_of(names));
    study.baseline = names[index];
  }
  return parse_quality(map.find("quality"), study);
}

}  // namespace

std::string_view parity_time_name(ParityTime time) {
  return time == ParityTime::kAfter ? "after" : "before";
}

std::string_view padding_scope_name(PaddingScope scope) {
  switch (scope) {
    case PaddingScope::kScenario:
      return "scenario";
    case PaddingScope::kGlobal:
      return "global";
    case PaddingScope::kNone:
      break;
  }
  return "none";
}

std::string_view run_order_name(RunOrder order) {
  switch (order) {
    case RunOrder::kSequential:
      return "sequential";
    case RunOrder::kShuffled:
      return "shuffled";
    case RunOrder::kInterleaved:
      break;
  }
  return "interleaved";
}

// Every factor is bounded by the parser, so that the products fit: 64 models * 64 arms * 256
// scenarios * 64 batches * (1 + 2 * 64) < 2^34; rows of a cell: < 2^40, warm-ups of half a million
// rounds. The product is asked for once there are no more than kMaxPlanCells cells.
int64_t count_cells(const Study& study) {
  int64_t conditions = 0;  // of a model and batch
  for (const Phase phase : study.phases) {
    const auto scenarios = std::ranges::count_if(
        study.scenarios, [&](const StudyScenario& each) { return runs_in(each, phase); });
    conditions += scenarios * (decodes(phase) ? std::ssize(study.token_lengths) : 1);
  }
  return conditions *
         static_cast<int64_t>(study.models.size() * study.arms.size() * study.batch.size());
}

std::optional<int64_t> longest_generation(const Study& study, const StudyScenario& scenario) {
  std::optional<int64_t> longest;
  for (const Phase phase : study.phases) {
    if (!runs_in(scenario, phase)) continue;
    longest = longest.value_or(0);
    if (!decodes(phase)) continue;
    for (const int64_t tokens : study.token_lengths) longest = std::max(*longest, tokens);
  }
  return longest;
}

bool stops_when_decided(const Study& study) {
  return study.stopping && study.stopping->decide;
}

int64_t shared_cpus(const Study& study) {
  const bool all_share = std::ranges::all_of(study.arms, [](const StudyArm& arm) {
    return backend_traits(arm.backend).shares_processors;
  });
  const bool shared =
      study.cpus == CpuChoice::kTogether || (study.cpus == CpuChoice::kByArms && all_share);
  return shared ? common_threads(study) : 0;
}

int64_t rounds(const Study& study) {
  if (!stops_when_decided(study)) return study.processes;
  return std::max(study.processes,
                  study.stopping->max_repetitions * study.processes / study.repetitions);
}

int64_t round_begin(const Study& study, int64_t round) {
  return study.repetitions * round / study.processes;
}

int64_t count_rows(const Study& study) {
  const int64_t all = rounds(study);
  return count_cells(study) * (all * study.warmup + round_begin(study, all));
}

Result<Study> parse_study(std::string_view yaml, std::string_view object) {
  static const Words known = {
      "name",  "models",   "arms",        "phases",    "scenarios",         "token_lengths",
      "batch", "padding",  "repetitions", "warmup",    "processes",         "stopping",
      "order", "baseline", "parity",      "timeout_s", "compile_timeout_s", "seed",
      "cpus",  "require",  "load",        "quality"};
  ASSAY_TRY(const YamlNode tree, parse_yaml(yaml, object));
  const YamlValue root(tree, object, "");
  ASSAY_TRY(const YamlMap map, root.map(known));
  Study study;
  ASSAY_CHECK(parse_subjects(map, study));
  ASSAY_CHECK(parse_procedure(map, study));
  ASSAY_CHECK(check_commands(study, object));
  if (count_cells(study) > kMaxPlanCells) {
    return bad_input("{}: expected a plan of at most {} cells, found {}", object, kMaxPlanCells,
                     count_cells(study));
  }
  if (count_rows(study) > kMaxPlanRows) {
    return bad_input("{}: expected a plan of at most {} rows, found {}", object, kMaxPlanRows,
                     count_rows(study));
  }
  return study;
}

Result<Study> read_study(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path, kMaxYamlBytes));
  return parse_study(text, path.string());
}

}  // namespace assay
