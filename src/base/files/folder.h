// A folder opened once: everything below it is reached through its descriptor, by names relative to
// it, and no link is followed on the way. Bytes written below can't land elsewhere, whatever
// somebody has put there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/result.h"

namespace assay {

// A file open for appending. append() returns once the bytes are in the kernel; sync() once they
// are on the device. A failed append leaves the file at its former length where the system allows
// it.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  virtual Status append(std::string_view bytes) = 0;
  virtual Status sync() = 0;
};

struct FolderEntry {
  enum class Kind { kFile, kFolder, kOther };
  std::string name;  // relative to the folder, components joined by '/'
  Kind kind = Kind::kFile;
  std::string_view what;  // of kOther: "a symbolic link", "a pipe", ...
  bool is_empty = false;  // of a folder
};

// Names below are relative, of components joined by '/', none of which is empty, "." or "..". An
// error names the file by the folder's path. Writing calls are virtual, so that tests can put a
// full disk behind them; each has reached the device, names included, when it returns.
class Folder {
 public:
  // Links in `path` itself are followed: it is the user's word. Empty: the working directory.
  static Result<Folder> open(const std::filesystem::path& path);
  Folder(Folder&&) noexcept = default;
  virtual ~Folder() = default;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path path_of(std::string_view name) const;  // for messages

  // Opens a regular file for reading.
  Result<Descriptor> open_file(const std::string& name) const;
  Result<std::string> read(const std::string& name, uint64_t max_bytes = kMaxReadBytes) const;
  // True if there is anything of that name, be it a link, or if that may not be known.
  bool has(const std::string& name) const;
  // Everything below, sorted by name. bad_input: a folder can't be read, or lies too deep.
  Result<std::vector<FolderEntry>> list() const;
  // A folder below, for another process to write in: the descriptor, good as /proc/PID/fd/N.
  Result<Descriptor> open_folder(const std::string& name) const;
  // An exclusive lock on a file that is there, held as long as the descriptor; none (not ok()) if
  // somebody else holds it.
  Result<Descriptor> lock(const std::string& name) const;

  virtual Status make_folder(const std::string& name);  // with parents; one that is there is fine
  // A file that wasn't there.
  virtual Status write_new(const std::string& name, std::string_view content);
  // Replaces a file or link at `to`.
  virtual Status rename(const std::string& from, const std::string& to);
  // Makes it if it is missing. A file that has further names (hard links) is refused: it may be
  // somebody's copy.
  virtual Result<std::unique_ptr<AppendFile>> open_append(const std::string& name);
  virtual Status truncate(const std::string& name, uint64_t size_bytes);
  virtual Status remove(const std::string& name);  // a file or link; a missing one is fine

  // Writes beside the target, then renames: readers see the old content or the new one.
  Status write_atomic(const std::string& name, std::string_view content);

 protected:
  Folder(Descriptor folder, std::filesystem::path path)
      : folder_(std::move(folder)), path_(std::move(path)) {}

 private:
  Descriptor folder_;
  std::filesystem::path path_;
};

// A name beside `name` that nothing has yet and nobody can guess: "a/tmp-1234-b" for "a/b".
std::string temporary_name(const std::string& name);
// The name for which temporary_name() made `name`; empty: it isn't one of temporary_name()'s.
std::string temporary_target(const std::string& name);

// The source of folders; tests put one of their own in its place.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Status make_folder(const std::filesystem::path& path) = 0;  // with its parents
  virtual Result<std::unique_ptr<Folder>> open_folder(const std::filesystem::path& path) = 0;
};

// The machine's files; lives as long as the program.
FileSystem& disk();

}  // namespace assay
