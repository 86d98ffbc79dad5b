// Members of JSON objects to names and values.
#include "import/formats/settings.h"

#include <algorithm>

#include "base/files/hash.h"
#include "base/records/lenient_json.h"
#include "base/text/shown_text.h"
#include "import/formats/sample_parts.h"

namespace assay {
namespace {

class SettingReader {
 public:
  SettingReader(const SettingRules& rules, const std::string& where, ImportedRun& run)
      : rules_(rules), where_(where), run_(run) {}

  Status read_members(const Json& object, const std::string& prefix) {
    if (!object.is_object()) return {};
    for (const auto& [key, value] : object.items()) ASSAY_CHECK(read(prefix + key, value));
    return {};
  }

 private:
  Status read(const std::string& name, const Json& value) {
    if (rules_.is_other && rules_.is_other(name)) return {};
    if (value.is_object()) return read_members(value, name + ".");
    if (value.is_array()) return read_list(name, value);
    return put(name, shown_text(value));
  }

  Status read_list(const std::string& name, const Json& list) {
    if (list.empty() || is_of_samples(list)) return {};
    if (!std::ranges::all_of(list, [](const Json& element) { return element.is_object(); })) {
      return put(name, to_json_line(list));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string own = text_member(list[i], "name");
      ASSAY_CHECK(
          read(fmt::format("{}.{}", name, own.empty() ? fmt::format("{}", i) : own), list[i]));
    }
    return {};
  }

  // One element may be a setting's only one, unless it is a number.
  bool is_of_samples(const Json& list) const {
    return list.size() == rules_.samples && (list.size() > 1 || list[0].is_number());
  }

  Status put(const std::string& name, const std::string& value) {
    if (run_.settings.size() >= kMostSettings) {
      return bad_input("{}: expected at most {} settings, found more", where_, kMostSettings);
    }
    add_setting(run_, name, value, rules_.of);
    return {};
  }

  const SettingRules& rules_;
  const std::string& where_;
  ImportedRun& run_;
};

}  // namespace

std::string setting_text(std::string_view text) {
  constexpr size_t kLongest = 120;
  constexpr size_t kShown = 60;
  if (text.size() <= kLongest && shown_line(text, kLongest) == text) return std::string(text);
  return fmt::format("{} (sha256 {})", shown_line(text, kShown), sha256_hex(text).substr(0, 16));
}

void add_setting(ImportedRun& run, std::string_view name, std::string_view value, SettingOf of,
                 std::string_view mark) {
  if (value.empty()) return;
  StatedSetting setting{setting_text(name), setting_text(value), std::string(mark), of};
  // {"a.b": 1, "a": {"b": 2}} has one name twice.
  const auto same = std::ranges::find(run.settings, setting.name, &StatedSetting::name);
  if (same == run.settings.end()) {
    run.settings.push_back(std::move(setting));
  } else {
    same->value = setting_text(same->value + ", " + setting.value);
  }
}

Status add_settings(const Json& object, const SettingRules& rules, const std::string& where,
                    ImportedRun& run) {
  return SettingReader(rules, where, run).read_members(object, rules.prefix);
}

void expect_settings(std::initializer_list<const char*> names, ImportedRun& run) {
  for (const char* name : names) {
    if (std::ranges::find(run.settings, name, &StatedSetting::name) == run.settings.end()) {
      run.unstated.emplace_back(name);
    }
  }
}

Status count_settings(const ImportedRun& run, Imported& imported) {
  imported.settings += run.settings.size();
  if (imported.settings <= kMostImportSettings) return {};
  return bad_input("{}: expected at most {} settings in all, found more", run.source,
                   kMostImportSettings);
}

Status add_run(ImportedRun run, Imported& imported) {
  ASSAY_CHECK(count_settings(run, imported));
  imported.runs.push_back(std::move(run));
  return {};
}

std::function<bool(std::string_view)> one_of(std::vector<std::string_view> names) {
  return [names = std::move(names)](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
}

}  // namespace assay
