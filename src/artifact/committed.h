// The files of a bundle as its commits have them: held against them, and taken back to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "base/folder.h"

namespace assay {

// What may follow the committed bytes of a file that grows.
enum class Beyond { kAllowed, kRefused };

// Whether every committed file is there with its committed bytes; the error names the first that
// isn't.
Status check_committed(const Folder& folder, const CommitLog& log, Beyond beyond);

// Takes an unfinished bundle back to its last commit: ends the renames that a kill stopped, removes
// temporaries and what no commit and not `fixed` (the manifest's files) knows of the names that a
// run writes, cuts off what follows the committed bytes, also in commits.jsonl, whose length is
// `commits_bytes`. bad_input: a committed byte isn't there any more, or a file that no run
// makes.
Status restore_committed(Folder& folder, const CommitLog& log, const FileEntries& fixed,
                         uint64_t commits_bytes);

// The temporaries in a folder without a manifest, of which a run was killed while it made the
// bundle. bad_input where anything lies there that it doesn't leave.
Result<std::vector<std::string>> list_unborn(const Folder& folder);

}  // namespace assay
