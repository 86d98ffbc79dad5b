// Committed files: checked by their hashes first, changed afterwards.
#include "artifact/committed.h"

#include <algorithm>

#include "artifact/metrics_file.h"
#include "artifact/sittings.h"

namespace assay {
namespace {

Status check_grown(const Folder& folder, const CommitLog& log, const std::string& name,
                   Beyond beyond) {
  const std::string path = folder.path_of(name).string();
  const uint64_t committed = log.committed_bytes(name);
  if (!folder.has(name)) return bad_input("{}: expected {} bytes, found no file", path, committed);
  ASSAY_TRY(const std::string content, folder.read(name, max_metrics_bytes()));
  ASSAY_CHECK(check_committed_bytes(log, name, content, path));
  if (beyond == Beyond::kRefused && content.size() != committed) {
    return bad_input("{}: expected {} bytes as committed, found {}", path, committed,
                     content.size());
  }
  return {};
}

Status check_replaced(const Folder& folder, const std::string& name, const FileDigest& committed) {
  const std::string path = folder.path_of(name).string();
  if (!folder.has(name)) return bad_input("{}: expected the committed file, found none", path);
  ASSAY_TRY(const FileDigest found, hash_file(folder, name, committed.size_bytes));
  if (found == committed) return {};
  return bad_input("{}: expected {} bytes with sha256 {} as committed, found {} with {}", path,
                   committed.size_bytes, committed.sha256, found.size_bytes,
                   found.sha256.empty() ? "another" : found.sha256);
}

// A commit's files are renamed after its record; a kill may have come between.
Status settle_temporary(Folder& folder, const CommitLog& log, const std::string& name) {
  const std::string target = temporary_target(name);
  const auto committed = log.replaced.find(target);
  if (committed == log.replaced.end()) return folder.remove(name);
  ASSAY_TRY(const FileDigest found, hash_file(folder, name, committed->second.size_bytes));
  if (found != committed->second) return folder.remove(name);
  return folder.rename(name, target);
}

// True if `name` is one of the files that a run makes and commits; it may be left uncommitted.
bool is_a_runs(const std::string& name) {
  const bool of_cell = name.starts_with("cells/") &&
                       (name.ends_with("/evidence.json") || name.ends_with("/parity.json") ||
                        name.ends_with("/stderr.log") || name.ends_with("/trace.json.gz"));
  return of_cell || sitting_number(name) || is_of_rows(name);
}

std::unexpected<Error> foreign(const Folder& folder, const std::string& name) {
  return bad_input("{}: expected only files of its run, found {}", folder.path().string(), name);
}

}  // namespace

Status check_committed(const Folder& folder, const CommitLog& log, Beyond beyond) {
  for (const auto& [name, end] : log.ends) {
    ASSAY_CHECK(check_grown(folder, log, name, beyond));
  }
  for (const auto& [name, digest] : log.replaced) {
    ASSAY_CHECK(check_replaced(folder, name, digest));
  }
  return {};
}

Status restore_committed(Folder& folder, const CommitLog& log, const FileEntries& fixed,
                         uint64_t commits_bytes) {
  ASSAY_TRY(const std::vector<std::string> present, list_bundle_files(folder));
  for (const std::string& name : present) {
    if (!temporary_target(name).empty()) ASSAY_CHECK(settle_temporary(folder, log, name));
  }
  ASSAY_CHECK(check_committed(folder, log, Beyond::kAllowed));
  for (const std::string& name : present) {
    if (!temporary_target(name).empty() || name == kCommitsName || fixed.contains(name) ||
        log.replaced.contains(name)) {
      continue;
    }
    const uint64_t committed = log.committed_bytes(name);
    if (committed > 0) {
      ASSAY_CHECK(folder.truncate(name, committed));
    } else if (is_a_runs(name)) {
      ASSAY_CHECK(folder.remove(name));
    } else {
      return foreign(folder, name);
    }
  }
  if (commits_bytes > log.size_bytes) ASSAY_CHECK(folder.truncate(kCommitsName, log.size_bytes));
  return {};
}

Result<std::vector<std::string>> list_unborn(const Folder& folder) {
  ASSAY_TRY(const std::vector<std::string> present, list_bundle_files(folder));
  std::vector<std::string> temporaries;
  for (const std::string& name : present) {
    const bool known = name == kStudyName || name == kEnvironmentName ||
                       (name == kCommitsName && folder.read(name, 0));
    if (!temporary_target(name).empty()) {
      temporaries.push_back(name);
    } else if (!known) {
      return bad_input("{}: expected a bundle to resume, found {} and no {}",
                       folder.path().string(), name, kManifestName);
    }
  }
  return temporaries;
}

}  // namespace assay
