// New content of a cell's files, from its writing to the commit that makes it count.
//
// It lies beside the file under a temporary name, on the device, until a commit record with its
// hash is on the device too; then publish() renames it. A kill between the two leaves the renames
// to restore_committed() (committed.h).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "artifact/manifest.h"
#include "base/files/folder.h"

namespace assay {

// Names are those in the bundle. The folder outlives this.
class CellFiles {
 public:
  explicit CellFiles(Folder& folder) : folder_(folder) {}

  Status write(const std::string& name, std::string_view content);
  // A path for another process to write the file's next content to, as long as this process lives.
  Result<std::filesystem::path> offer(const std::string& name);
  // Takes the content written to the offered path; nothing written is fine.
  Status take(const std::string& name);

  // Entries of the files that the next commit is to record.
  FileEntries pending() const;
  // After that commit: renames the files, and removes offers that weren't taken.
  Status publish();

 private:
  // Next to a file, until it is committed.
  struct Next {
    std::string temporary;
    FileDigest digest;
  };
  struct Offer {
    std::string temporary;
    Descriptor folder;
  };

  Status replace(const std::string& name, Next next);

  Folder& folder_;
  std::map<std::string, Next> next_;
  std::map<std::string, Offer> offers_;
};

}  // namespace assay
