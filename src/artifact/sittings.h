// The sittings of a bundle on disk: environment-N.json of each resume that went on to measure.
//
// Its text is the environment as that sitting found it, in front of it a member `sitting`:
// {number, started_at, started_at_ns, units_before, rows_before}. It is listed in the manifest's
// `files` before a row of the sitting is committed. The first sitting is environment.json and the
// manifest's started_at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "base/files/folder.h"

namespace assay {

// "environment-2.json".
std::string sitting_name(int64_t number);
// Absent: the path isn't such a name, of a number from 2 on.
std::optional<int64_t> sitting_number(std::string_view path);

Json sitting_to_json(int64_t number, const Sitting& sitting);

// All of them, the first included, in order. bad_input that names the file: one is missing or no
// JSON, its member `sitting` has another number than its place, its started_at isn't the time that
// its started_at_ns is, or the state committed before it isn't one of `log`'s commits, or lies
// before that of the sitting before it.
Result<std::vector<Sitting>> read_sittings(const Folder& folder, const Json& manifest,
                                           const CommitLog& log);

}  // namespace assay
