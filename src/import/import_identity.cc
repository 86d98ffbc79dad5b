// Header, identity and environment of an imported bundle.
#include "import/import_identity.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text/text.h"

namespace assay {
namespace {

using Field = ImportField;

constexpr int kImportSchema = 1;  // of environment.json's member `imported`

// Axes that all arms may share.
constexpr std::array kSharedAxes = {Field::kDevice, Field::kCodeGenerator, Field::kFrameworkBuild,
                                    Field::kCodeSha};

using AxisValues = std::map<std::string, std::string>;  // by axis; absent: unknown

// The axes of each arm. Runs of one arm agree on them (run_names.h), or name none.
std::map<std::string, AxisValues> axes_by_arm(const Imported& imported) {
  std::map<std::string, AxisValues> arms;
  const std::vector<RunNames> names = name_runs(imported);
  for (size_t i = 0; i < names.size(); ++i) {
    AxisValues& axes = arms[names[i].arm];
    for (const Field field : kSharedAxes) {
      const std::string& value = imported.runs[i].facts.text(field);
      if (!value.empty()) axes[std::string(import_field_name(field))] = value;
    }
  }
  return arms;
}

// The value that every arm has.
std::optional<std::string> shared_value(const std::map<std::string, AxisValues>& arms,
                                        const std::string& axis) {
  std::optional<std::string> shared;
  for (const auto& [arm, axes] : arms) {
    const auto at = axes.find(axis);
    if (at == axes.end() || (shared && *shared != at->second)) return std::nullopt;
    shared = at->second;
  }
  return shared;
}

// Settings by the thing that they set. Runs of one name agree on each (run_names.h), except for a
// model that two arms have in two types.
struct SettingsByName {
  std::map<std::string, AxisValues> arms;
  std::map<std::string, std::map<std::string, AxisValues>> conditions;  // by arm and scenario
  std::map<std::string, AxisValues> models;

  void add(const StatedSetting& setting, const RunNames& names) {
    if (setting.of == SettingOf::kArm) {
      arms[names.arm][setting.name] = setting.value;
    } else if (setting.of == SettingOf::kCondition) {
      conditions[names.arm][names.scenario][setting.name] = setting.value;
    } else {
      of_models_[names.model][setting.name].insert(setting.value);
      models[names.model][setting.name] =
          fmt::format("{}", fmt::join(of_models_[names.model][setting.name], ", "));
    }
  }

 private:
  std::map<std::string, std::map<std::string, std::set<std::string>>> of_models_;
};

SettingsByName settings_by_name(const Imported& imported) {
  SettingsByName settings;
  const std::vector<RunNames> names = name_runs(imported);
  for (size_t i = 0; i < names.size(); ++i) {
    if (imported.runs[i].samples.empty()) continue;  // its arm may be none
    settings.arms[names[i].arm];
    for (const StatedSetting& each : imported.runs[i].settings) settings.add(each, names[i]);
  }
  return settings;
}

// Puts settings into the identity; those that all arms have alike stand once, beside the arms.
void put_settings(const Imported& imported, Json& identity) {
  const SettingsByName settings = settings_by_name(imported);
  if (settings.arms.empty()) return;
  Json shared = Json::object();
  for (const auto& [name, value] : settings.arms.begin()->second) {
    if (shared_value(settings.arms, name)) shared[name] = value;
  }
  for (const auto& [arm, own] : settings.arms) {
    Json left = Json::object();
    for (const auto& [name, value] : own) {
      if (!shared.contains(name)) left[name] = value;
    }
    if (!left.empty()) identity["arms"][arm]["settings"] = std::move(left);
  }
  for (const auto& [arm, loads] : settings.conditions) identity["arms"][arm]["loads"] = loads;
  if (!shared.empty()) identity["settings"] = std::move(shared);
  if (!settings.models.empty()) identity["models"] = settings.models;
}

const ImportedCell& first_cell(const ImportedRows& made, const std::string& arm) {
  return *std::ranges::find(made.cells, arm, [](const ImportedCell& cell) -> const std::string& {
    return cell.names.arm;
  });
}

void put_known(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

Json identity_of(const Imported& imported, const ImportedRows& made) {
  const auto arms = axes_by_arm(imported);
  Json identity = Json::object();
  for (const Field field : kSharedAxes) {
    const std::string axis(import_field_name(field));
    if (const auto value = shared_value(arms, axis)) identity[axis] = *value;
  }
  identity["imported_from"] = imported.format;
  std::set<std::string> unknown;
  Json of_arms = Json::object();
  for (const std::string& arm : made.arms) {
    const ImportedCell& cell = first_cell(made, arm);
    Json& axes = of_arms[arm] = Json::object();
    put_known(axes, "cache", cell.cache);
    put_known(axes, "compile_mode", cell.compile_mode);
    put_known(axes, "dynamic", cell.dynamic);
    for (const auto& [axis, value] : arms.at(arm)) {
      if (!identity.contains(axis)) axes[axis] = value;
    }
    axes["unknown"] = made.unknown.at(arm);
    unknown.insert(made.unknown.at(arm).begin(), made.unknown.at(arm).end());
  }
  identity["unknown"] = unknown;
  identity["arms"] = std::move(of_arms);
  put_settings(imported, identity);
  return identity;
}

std::optional<int64_t> earliest(const Imported& imported) {
  std::optional<int64_t> first;
  for (const ImportedRun& run : imported.runs) {
    for (const ImportedSample& sample : run.samples) {
      if (sample.started_at_ns && (!first || *sample.started_at_ns < *first)) {
        first = sample.started_at_ns;
      }
    }
  }
  return first;
}

std::vector<std::string> warnings_of(const Imported& imported, const ImportedRows& made,
                                     const Json& identity, bool dated) {
  std::vector<std::string> warnings;
  const std::set<std::string> unknown = identity["unknown"];
  warnings.push_back(
      fmt::format("imported from {} of {}: only the hashes of the files vouch for these rows",
                  counted(std::ssize(imported.files), "file"), imported.format));
  if (!unknown.empty()) {
    warnings.push_back(fmt::format("the imported files don't state {}", fmt::join(unknown, ", ")));
  }
  std::set<std::string> named;
  for (const ImportedCell& cell : made.cells) {
    if (cell.named_compiled) named.insert(cell.names.arm);
  }
  if (!named.empty()) {
    warnings.push_back(
        fmt::format("the compiler of {} is unproven: only the names of the arms claim it",
                    fmt::join(named, ", ")));
  }
  if (made.means > 0) {
    warnings.push_back(
        fmt::format("{} the mean of several samples that the files don't have, so the spread "
                    "within a run is unknown",
                    made.means == 1 ? "1 row is" : fmt::format("{} rows are each", made.means)));
  }
  for (const auto& [arm, runs] : made.empty_runs) {
    warnings.push_back(fmt::format("the files have {} of {} without a sample, and so without rows",
                                   counted(runs, "run"), quoted_excerpt(arm)));
  }
  if (!dated) {
    warnings.emplace_back(
        "the imported files have no date, so the bundle has the day of the import");
  }
  warnings.insert(warnings.end(), imported.notes.begin(), imported.notes.end());
  return warnings;
}

Json files_of(const Imported& imported) {
  Json files = Json::array();
  for (const ImportedFile& file : imported.files) {
    files.push_back(
        {{"name", file.name}, {"bytes", file.digest.size_bytes}, {"sha256", file.digest.sha256}});
  }
  return files;
}

Json environment_of(const Imported& imported, const ImportedRows& made, const Json& identity,
                    const ImportOptions& options, bool dated) {
  Json about = {{"schema", kImportSchema},
                {"by", "assay " + options.assay_version},
                {"imported_at", options.now_ns},
                {"format", imported.format}};
  if (!imported.tool.empty()) about["tool"] = imported.tool;
  about["files"] = files_of(imported);
  about["unknown"] = identity["unknown"];
  about["stand_ins"] = made.stand_ins;
  about["asserted"] = imported.asserted;
  about["cold_first_samples"] = made.cold;
  about["means"] = made.means;
  if (!imported.mapping.empty()) about["mapping"] = imported.mapping;
  if (!imported.machine.empty()) about["said"] = imported.machine;
  return {{"schema", 1},
          {"imported", std::move(about)},
          {"warnings", warnings_of(imported, made, identity, dated)}};
}

// The baseline that options or mapping name; else the first arm that claims no compiler, else the
// first.
std::string baseline_of(const Imported& imported, const ImportedRows& made,
                        const ImportOptions& options) {
  if (!options.baseline.empty()) return options.baseline;
  if (!imported.baseline.empty()) return imported.baseline;
  for (const std::string& arm : made.arms) {
    const std::string& mode = first_cell(made, arm).compile_mode;
    if (mode.empty() || mode == "eager") return arm;
  }
  return made.arms.front();
}

Json study_of(const Imported& imported, const ImportedRows& made, const ImportOptions& options) {
  const std::string baseline = baseline_of(imported, made, options);
  Json study = {{"name", !options.name.empty()    ? options.name
                         : !imported.name.empty() ? imported.name
                                                  : imported.format},
                {"baseline", baseline}};
  if (!imported.order.empty()) study["order"] = imported.order;
  std::vector<std::string> names = made.arms;
  std::ranges::stable_partition(names, [&](const std::string& arm) { return arm == baseline; });
  for (const std::string& name : names) {
    const ImportedCell& cell = first_cell(made, name);
    study["arms"].push_back({{"name", name},
                             {"backend", cell.backend},
                             {"mode", cell.compile_mode},
                             {"cache", cell.cache},
                             {"dynamic", cell.dynamic}});
  }
  for (const auto& [scenario, offered] : made.offered)
    study["load"]["offered"][scenario] = record_to_json(offered);
  if (!made.offered.empty()) study["load"]["slo"] = record_to_json(ServiceBounds());
  return study;
}

}  // namespace

Status check_baseline(const Imported& imported, const ImportedRows& made,
                      const ImportOptions& options) {
  const std::string baseline = baseline_of(imported, made, options);
  if (std::ranges::find(made.arms, baseline) != made.arms.end()) return {};
  constexpr size_t kShownArms = 20;
  std::vector<std::string> shown = made.arms;
  if (shown.size() > kShownArms) shown.resize(kShownArms);
  return bad_input("baseline: expected an arm ({}{}), found {}{}", join(shown, ", "),
                   shown.size() < made.arms.size() ? ", ..." : "", quoted_excerpt(baseline),
                   nearest_hint(baseline, made.arms));
}

BundleHeader import_header(const Imported& imported, const ImportedRows& made,
                           const ImportOptions& options) {
  const auto started = earliest(imported);
  BundleHeader header;
  header.identity = identity_of(imported, made);
  header.environment =
      environment_of(imported, made, header.identity, options, started.has_value());
  header.study = study_of(imported, made, options);
  header.started_at_ns = started.value_or(options.now_ns);
  header.assay_version = options.assay_version;
  const Json plan = {{"imported", imported.format},
                     {"files", files_of(imported)},
                     {"mapping", imported.mapping},
                     {"asserted", imported.asserted},
                     {"study", header.study}};
  header.plan_hash = sha256_hex(to_json_text(plan));
  header.study_yaml =
      "# No study: `assay import` made this bundle of other tools' files, as\n"
      "# environment.json says. JSON is YAML.\n" +
      to_json_text(plan);
  return header;
}

}  // namespace assay
