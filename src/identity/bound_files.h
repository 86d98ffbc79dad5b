// Files that a run depends on, and their changes since it began.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// A file that is bound, or a folder, which stands for the files directly in it except hidden ones.
// Links are followed.
struct BoundRoot {
  std::string of;    // its owner in messages: `model "m"`, `arm "a"`, "torch worker"
  std::string name;  // the file's; for a folder the beginning of its files' names, may be empty
  std::filesystem::path path;
  std::string sha256 = {};  // of a file that has been hashed before; empty: none was
  bool told = true;         // false: to_json() leaves it out, as it is recorded elsewhere
};

// The identity and the state of the file at a path.
struct FileIdentity {
  uint64_t bytes = 0;
  uint64_t inode = 0;
  int64_t written_ns = 0;  // time of the last write to it, since the Unix epoch
  int64_t changed_ns = 0;  // of the last change of its content, name or permissions
  std::string sha256;      // empty: it has more than kMostHashedBytes

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// One file that has changed.
struct BoundChange {
  std::string message;  // one line: the owner, the file, its former and its present state
  Json record;  // {"of", "name", "path", "before", "now"}; null before or now: there was none
};

// Not for several threads.
class BoundFiles {
 public:
  // Larger files, such as weights, are known by size, inode and times alone.
  static constexpr uint64_t kMostHashedBytes = uint64_t{64} << 20;

  // Records the present state of the files; a root with nothing at its path is left out. bad_input:
  // a file can't be read, is being written, or isn't the one that its root's sha256 says.
  static Result<BoundFiles> bind(const std::vector<BoundRoot>& roots);

  // The first file that has changed: another inode, size or time of writing, another content, a
  // file more or less in a folder. A change of permissions or links alone, which leaves the
  // content, is none if the content is known by its hash.
  std::optional<BoundChange> changed();

  // [{"of", "name", "bytes", "sha256"}], of larger files "inode", "written_at_ns" and
  // "changed_at_ns" in the place of the hash.
  Json to_json() const;

 private:
  struct File {
    std::string of;
    std::string name;
    std::filesystem::path path;
    FileIdentity identity;
  };
  struct Root {
    BoundRoot root;
    std::vector<File> files;  // by name
  };
  std::vector<Root> roots_;
};

// Checks that each file of an earlier sitting, as to_json() recorded it, is there with the same
// content now. For larger files the time of writing and the inode must agree, except for owners
// that `known` names: other code compares their content. bad_input that has both identities.
Status check_bound_alike(const Json& before, const Json& now,
                         const std::vector<std::string>& known);

}  // namespace assay
