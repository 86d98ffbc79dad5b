// analysis/plotted.json: the rows and traces of a bundle that a report draws, kept beside the
// findings, so that a report of findings alone has every figure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/findings/findings.h"
#include "analysis/findings/plotted.h"

namespace assay {

inline constexpr int kPlottedSchemaVersion = 1;

// `findings_sha256`: of the findings.json that it belongs to.
std::string plotted_text(const PlottedRows& plotted, const Findings& findings,
                         const std::string& findings_sha256);
// bad_input: another schema version, rows of other findings than these, a member that is missing,
// of another type or out of its range, groups that aren't in the order of strata and arms.
Result<PlottedRows> plotted_from_json(const Json& json, const Findings& findings,
                                      std::string_view findings_sha256, std::string_view object);

struct FindingsWithRows {
  Findings findings;
  std::optional<PlottedRows> plotted;  // absent: there is no plotted.json beside them
};
// Reads findings as read_findings() does, and plotted.json of the same folder.
Result<FindingsWithRows> read_findings_with_rows(const std::filesystem::path& path);

// FOLDER/analysis/findings.json and plotted.json. `text`: findings_text() of the findings.
Status write_findings_with_rows(const Findings& findings, const std::string& text,
                                const PlottedRows& plotted, const std::filesystem::path& folder);

}  // namespace assay
