// Names that tell apart what differs.
#include "import/run_names.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace assay {
namespace {

// What one arm has once.
constexpr std::array kArmFields = {
    ImportField::kBackend, ImportField::kCache,          ImportField::kCompileMode,
    ImportField::kDynamic, ImportField::kPadding,        ImportField::kDevice,
    ImportField::kCodeSha, ImportField::kFrameworkBuild, ImportField::kCodeGenerator};

std::string label_of(const ImportedRun& run, const Imported& imported) {
  for (const ImportField field : {ImportField::kArm, ImportField::kBackend}) {
    if (run.facts.knows(field)) return run.facts.text(field);
  }
  return imported.format;
}

// Whatever may tell a run's arm from another of its name, in the order of the name's parts.
std::vector<std::pair<std::string, std::string>> marks_of(const ImportedRun& run) {
  std::vector<std::pair<std::string, std::string>> marks;
  for (const ImportField field : kArmFields) {
    const std::string& value = run.facts.text(field);
    const std::string name(import_field_name(field));
    marks.emplace_back(name, value.empty() ? "unknown-" + name : value);
  }
  for (const auto& [name, value] : run.settings) marks.emplace_back(name, name + value);
  return marks;
}

using MarkValues = std::map<std::string, std::set<std::string>>;  // by mark

std::string arm_of(const std::string& label, const ImportedRun& run, const MarkValues& values) {
  std::string arm = label;
  for (const auto& [name, value] : marks_of(run)) {
    if (values.at(name).size() > 1) arm += "-" + value;
  }
  return arm;
}

// The type of the weights, as far as it is stated.
std::string weights_of(const RunFacts& facts) {
  const std::string& quantization = facts.text(ImportField::kQuantization);
  return quantization.empty() || quantization == "none" ? facts.text(ImportField::kDtype)
                                                        : quantization;
}

// Models that one arm has in several types of weights on one condition.
std::set<std::string> mixed_models(const Imported& imported, const std::vector<RunNames>& names) {
  using Condition = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<std::pair<std::string, Condition>, std::set<std::string>> weights;
  for (size_t i = 0; i < names.size(); ++i) {
    const RunFacts& facts = imported.runs[i].facts;
    const Condition condition{names[i].arm, facts.text(ImportField::kPhase),
                              facts.text(ImportField::kScenario), facts.text(ImportField::kBatch),
                              facts.text(ImportField::kNewTokens)};
    weights[{names[i].model, condition}].insert(weights_of(facts));
  }
  std::set<std::string> mixed;
  for (const auto& [key, types] : weights) {
    if (types.size() > 1) mixed.insert(key.first);
  }
  return mixed;
}

// Runs of letters, in small ones; a capital behind a small letter begins another word.
std::vector<std::string> words_in(std::string_view name) {
  std::vector<std::string> words(1);
  bool after_small = false;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool small = c >= 'a' && c <= 'z';
    if (!words.back().empty() && (!(upper || small) || (upper && after_small))) {
      words.emplace_back();
    }
    if (upper || small) words.back() += upper ? static_cast<char>(c - 'A' + 'a') : c;
    after_small = small;
  }
  return words;
}

}  // namespace

std::vector<RunNames> name_runs(const Imported& imported) {
  std::map<std::string, MarkValues> labels;
  for (const ImportedRun& run : imported.runs) {
    MarkValues& values = labels[label_of(run, imported)];
    for (auto& [name, value] : marks_of(run)) values[name].insert(std::move(value));
  }
  // A setting that only some runs of a name have tells them apart too.
  for (const ImportedRun& run : imported.runs) {
    MarkValues& values = labels[label_of(run, imported)];
    std::set<std::string> has;
    for (const auto& [name, value] : marks_of(run)) has.insert(name);
    for (auto& [name, found] : values) {
      if (!has.contains(name)) found.insert("");
    }
  }
  std::vector<RunNames> names;
  for (const ImportedRun& run : imported.runs) {
    const std::string label = label_of(run, imported);
    const std::string& model = run.facts.text(ImportField::kModel);
    names.push_back({arm_of(label, run, labels[label]), model.empty() ? "unknown" : model});
  }
  const std::set<std::string> mixed = mixed_models(imported, names);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!mixed.contains(names[i].model)) continue;
    const std::string type = weights_of(imported.runs[i].facts);
    names[i].model += fmt::format(" ({})", type.empty() ? "unknown weights" : type);
  }
  return names;
}

bool names_a_compiler(std::string_view name) {
  static const std::set<std::string> kClaims = {
      "compile", "compiled",     "compiler",    "compiling",     "inductor",
      "dynamo",  "torchcompile", "torchdynamo", "torchinductor", "autotune"};
  static const std::set<std::string> kDenials = {"no", "not", "non", "without", "un", "never"};
  static const std::set<std::string> kNegations = {"off", "false", "disabled", "none"};
  const std::vector<std::string> words = words_in(name);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string before = i == 0 ? "" : words[i - 1];
    const std::string behind = i + 1 == words.size() ? "" : words[i + 1];
    const bool mode = words[i] == "reduce" && behind == "overhead";
    if (!mode && !kClaims.contains(words[i])) continue;
    if (!kDenials.contains(before) && !kNegations.contains(behind)) return true;
  }
  return false;
}

}  // namespace assay
