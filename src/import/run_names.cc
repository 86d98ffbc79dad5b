// Gives runs that differ different names.
#include "import/run_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/text/text.h"

namespace assay {
namespace {

// Fields of which an arm has one value.
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

// A mark that may distinguish runs of one name: a field, or a setting by its name.
struct TellingMark {
  std::optional<ImportField> field;
  std::string setting = {};
};

// The setting of this name; `hint` is where another run had it, and this one likely too.
const StatedSetting* find_setting(const ImportedRun& run, const std::string& name, size_t& hint) {
  if (hint < run.settings.size() && run.settings[hint].name == name) return &run.settings[hint];
  const auto at = std::ranges::find(run.settings, name, &StatedSetting::name);
  if (at == run.settings.end()) return nullptr;
  hint = static_cast<size_t>(at - run.settings.begin());
  return &*at;
}

// Fields of arms first, then settings as they first appear.
std::vector<TellingMark> marks_of(const Imported& imported, SettingOf of) {
  std::vector<TellingMark> marks;
  if (of == SettingOf::kArm) {
    for (const ImportField field : kArmFields) marks.push_back({field});
  }
  std::set<std::string> known;
  for (const ImportedRun& run : imported.runs) {
    for (const StatedSetting& setting : run.settings) {
      if (setting.of == of && known.insert(setting.name).second) {
        marks.push_back({std::nullopt, setting.name});
      }
    }
  }
  return marks;
}

// The mark's value of each run; null: it has none.
std::vector<const std::string*> values_of(const Imported& imported, const TellingMark& mark) {
  std::vector<const std::string*> values;
  size_t hint = 0;
  for (const ImportedRun& run : imported.runs) {
    if (mark.field) {
      values.push_back(&run.facts.text(*mark.field));
    } else {
      const StatedSetting* setting = find_setting(run, mark.setting, hint);
      values.push_back(setting ? &setting->value : nullptr);
    }
  }
  return values;
}

// The mark as it stands in a name; empty: a setting that the run doesn't have.
std::string shown_mark(const ImportedRun& run, const TellingMark& mark) {
  if (mark.field) {
    const std::string& value = run.facts.text(*mark.field);
    return value.empty() ? fmt::format("unknown-{}", import_field_name(*mark.field)) : value;
  }
  size_t hint = 0;
  const StatedSetting* setting = find_setting(run, mark.setting, hint);
  if (!setting) return "";
  return (setting->mark.empty() ? setting->name + "=" : setting->mark) + setting->value;
}

// Runs that no name tells apart so far, by number.
class RunGroups {
 public:
  explicit RunGroups(const std::vector<std::string>& keys) {
    std::map<std::string, size_t> numbers;
    for (const std::string& key : keys) {
      groups_.push_back(numbers.try_emplace(key, numbers.size()).first->second);
    }
    count_ = numbers.size();
  }

  // Parts the groups whose runs have different texts; true for each run of these. An absent text is
  // one of its own.
  std::vector<bool> part(const std::vector<const std::string*>& texts) {
    static const std::string kAbsent;
    const auto text = [&](size_t run) -> const std::string& {
      return texts[run] ? *texts[run] : kAbsent;
    };
    std::vector<const std::string*> first(count_);
    std::vector<bool> mixed(count_);
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string*& seen = first[groups_[i]];
      if (!seen) seen = &text(i);
      if (*seen != text(i)) mixed[groups_[i]] = true;
    }
    std::vector<bool> parted(texts.size());
    std::map<std::pair<size_t, std::string>, size_t> parts;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!mixed[groups_[i]]) continue;
      parted[i] = true;
      const auto [at, fresh] = parts.try_emplace({groups_[i], text(i)}, count_ + parts.size());
      groups_[i] = at->second;
    }
    count_ += parts.size();
    return parted;
  }

 private:
  std::vector<size_t> groups_;  // of each run
  size_t count_ = 0;
};

// Puts behind each name the marks that tell it from others of its key: in their order, those on
// which runs differ that agree on all before it.
void tell_apart(const Imported& imported, SettingOf of, const std::vector<std::string>& keys,
                const std::vector<std::string*>& names) {
  const bool in_brackets = of == SettingOf::kModel;
  RunGroups groups(keys);
  std::vector<std::string> suffixes(names.size());
  for (const TellingMark& mark : marks_of(imported, of)) {
    const std::vector<bool> parted = groups.part(values_of(imported, mark));
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string shown = parted[i] ? shown_mark(imported.runs[i], mark) : "";
      if (shown.empty()) continue;
      suffixes[i] += (in_brackets ? (suffixes[i].empty() ? " (" : ", ") : "-") + shown;
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!suffixes[i].empty()) *names[i] += suffixes[i] + (in_brackets ? ")" : "");
  }
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

std::string scenario_of(const RunFacts& facts) {
  if (facts.knows(ImportField::kScenario)) return facts.text(ImportField::kScenario);
  const auto prompt = facts.count(ImportField::kPromptTokens);
  return prompt ? fmt::format("prompt_{}", *prompt) : "unknown";
}

void tell_arms_apart(const Imported& imported, std::vector<RunNames>& names) {
  std::vector<std::string> labels;
  std::vector<std::string*> arms;
  for (RunNames& each : names) {
    labels.push_back(each.arm);
    arms.push_back(&each.arm);
  }
  tell_apart(imported, SettingOf::kArm, labels, arms);
}

void tell_models_apart(const Imported& imported, std::vector<RunNames>& names) {
  const std::set<std::string> mixed = mixed_models(imported, names);
  std::vector<std::string> keys;
  std::vector<std::string*> models;
  for (size_t i = 0; i < names.size(); ++i) {
    if (mixed.contains(names[i].model)) {
      const std::string type = weights_of(imported.runs[i].facts);
      names[i].model += fmt::format(" ({})", type.empty() ? "unknown weights" : type);
    }
    keys.push_back(names[i].arm + "\n" + names[i].model);
    models.push_back(&names[i].model);
  }
  tell_apart(imported, SettingOf::kModel, keys, models);
}

// Tells apart loads that files call alike, over all arms.
void tell_loads_apart(const Imported& imported, std::vector<RunNames>& names) {
  std::vector<std::string> keys;
  std::vector<std::string*> scenarios;
  for (size_t i = 0; i < names.size(); ++i) {
    const RunFacts& facts = imported.runs[i].facts;
    const std::vector<std::string> condition = {
        names[i].model, names[i].scenario, facts.text(ImportField::kPhase),
        facts.text(ImportField::kBatch), facts.text(ImportField::kNewTokens)};
    keys.push_back(join(condition, "\n"));
    scenarios.push_back(&names[i].scenario);
  }
  tell_apart(imported, SettingOf::kCondition, keys, scenarios);
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
  std::vector<RunNames> names;
  for (const ImportedRun& run : imported.runs) {
    const std::string& model = run.facts.text(ImportField::kModel);
    names.push_back(
        {label_of(run, imported), model.empty() ? "unknown" : model, scenario_of(run.facts)});
  }
  tell_arms_apart(imported, names);
  tell_models_apart(imported, names);
  tell_loads_apart(imported, names);
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
