// The files of a bundle checked against its commits, and taken back to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "base/files/folder.h"

namespace assay {

// Verdict on bytes behind the committed ones in a file that grows.
enum class Beyond { kAllowed, kRefused };

// Checks that every committed file is there with its committed bytes; the error names the first
// that isn't.
Status check_committed(const Folder& folder, const CommitLog& log, Beyond beyond);

// Takes an unfinished bundle back to its last commit: completes the renames that a kill stopped,
// removes temporaries and files of a run that neither a commit nor `fixed` (the manifest's files)
// has, and cuts off the bytes behind the committed ones, also in commits.jsonl, whose length is
// `commits_bytes`. bad_input: a committed byte isn't there any more, or there is a file that no run
// makes.
Status restore_committed(Folder& folder, const CommitLog& log, const FileEntries& fixed,
                         uint64_t commits_bytes);

// The temporaries in a folder without a manifest, left by a run that was killed while it made the
// bundle. bad_input: the folder has a file that such a run doesn't leave.
Result<std::vector<std::string>> list_unborn(const Folder& folder);

}  // namespace assay
