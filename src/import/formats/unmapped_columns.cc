// Values of columns, arm by arm.
#include "import/formats/unmapped_columns.h"

#include <algorithm>

#include "import/formats/settings.h"

namespace assay {

UnmappedColumns::UnmappedColumns(const std::vector<std::string>& header,
                                 const std::vector<size_t>& mapped) {
  for (size_t i = 0; i < header.size() && columns_.size() < kMostSettings; ++i) {
    if (header[i].empty() || std::ranges::find(mapped, i) != mapped.end()) continue;
    columns_.push_back({header[i], i});
  }
}

void UnmappedColumns::add_row(const std::string& arm, std::span<const std::string_view> fields) {
  Seen& seen = arms_[arm];
  if (seen.rows++ == 0) {
    for (const Column& column : columns_) seen.values.emplace_back(fields[column.place]);
    seen.differ.resize(columns_.size());
    return;
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!seen.differ[i] && fields[columns_[i].place] != seen.values[i]) seen.differ[i] = true;
  }
}

void UnmappedColumns::state(const std::string& arm, ImportedRun& run) const {
  const auto seen = arms_.find(arm);
  if (seen == arms_.end()) return;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (is_setting(seen->second, i)) add_setting(run, columns_[i].name, seen->second.values[i]);
  }
}

std::vector<std::string> UnmappedColumns::unused() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const bool used =
        std::ranges::all_of(arms_, [&](const auto& arm) { return is_setting(arm.second, i); });
    if (!used) names.push_back(columns_[i].name);
  }
  return names;
}

}  // namespace assay
