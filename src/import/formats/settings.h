// Settings: members of a file beside the fields that a reader knows, each under the file's own
// name, so that results which differ in one are never taken for like.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "import/imported.h"

namespace assay {

// Settings of one run.
inline constexpr size_t kMostSettings = 2000;

struct SettingRules {
  std::string prefix = {};  // of each name: "options."
  // True for the name, prefix and all, of a member that is no setting: a figure, or a field's
  // source. Members inside it are none either.
  std::function<bool(std::string_view)> is_other = {};
  SettingOf of = SettingOf::kArm;
  size_t samples = 0;  // a list of so many elements has a figure a sample; 0: there is no such list
};

// One line of text: `text` itself, or where it is long or has control characters an excerpt with
// the hash of the whole.
std::string setting_text(std::string_view text);

// States one setting of the run; an empty value is none.
void add_setting(ImportedRun& run, std::string_view name, std::string_view value,
                 SettingOf of = SettingOf::kArm, std::string_view mark = {});

// States every member of `object` that `rules` don't take out. An object inside has its members'
// names behind its own, with a dot between; so has each object of a list, by its member "name" or
// else its number; another list is one setting. null, "", [] and {} state nothing. bad_input that
// names `where`: more settings than a run may have.
Status add_settings(const Json& object, const SettingRules& rules, const std::string& where,
                    ImportedRun& run);

// States of each of the names that the run has no setting of that the file doesn't state it.
void expect_settings(std::initializer_list<const char*> names, ImportedRun& run);

// Counts the settings of a run that all of its settings were stated of. bad_input: more than an
// import may have.
Status count_settings(const ImportedRun& run, Imported& imported);
// Counts them and adds the run.
Status add_run(ImportedRun run, Imported& imported);

// A test for one of these names.
std::function<bool(std::string_view)> one_of(std::vector<std::string_view> names);

}  // namespace assay
