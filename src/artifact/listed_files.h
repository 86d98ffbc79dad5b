// A bundle's files, checked against its manifest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "base/files/folder.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// Reads files of a bundle, each once and each against the length and the hash that the manifest
// lists. The manifest of a bundle whose run hasn't ended lists the study and the environments
// alone; the commits have the entries of the others. Refers to `folder`. May be used by several
// threads at once.
class ListedFiles {
 public:
  ListedFiles(const Folder& folder, FileEntries entries, bool complete)
      : folder_(folder), entries_(std::move(entries)), complete_(complete) {}

  const FileEntries& entries() const { return entries_; }
  bool complete() const { return complete_; }

  // The file's text. bad_input: it is missing, it isn't what the manifest says, or a sealed
  // bundle's manifest doesn't list it.
  Result<std::string> read(const std::string& name, uint64_t max_bytes = kMaxReadBytes) const;
  Result<Json> read_json(const std::string& name) const;
  // The same check for text that has been read already.
  Status check_text(const std::string& name, std::string_view text) const;
  // The same check for a file whose text nobody needs: it is hashed in pieces.
  Status check(const std::string& name) const;

 private:
  std::string path(const std::string& name) const { return folder_.path_of(name).string(); }
  // The manifest's entry of the file; null: none has to be there, as the run hasn't ended.
  Result<const FileDigest*> entry(const std::string& name) const;
  // The error of a file that couldn't be read: that it is missing, where it is and is listed.
  std::unexpected<Error> unread(const std::string& name, Error error) const;

  const Folder& folder_;
  FileEntries entries_;
  bool complete_;
};

// "evidence.json" or "parity.json" where the file of that name in the bundle is a cell's; else
// empty.
std::string record_of_cell(const std::string& name);

// Differences between the files that a sealed bundle's manifest lists and those that its commits
// record: errors "manifest.json: expected ..., found ...". `schema_version` is the bundle's;
// commits record the files of cells from version 3 on.
std::vector<Error> commit_disagreements(const FileEntries& listed, const CommitLog& log,
                                        int64_t schema_version);

}  // namespace assay
