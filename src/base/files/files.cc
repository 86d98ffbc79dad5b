// Files by path. Writing goes through the folder that the file is in.
#include "base/files/files.h"

#include <fcntl.h>

#include "base/files/file_io.h"
#include "base/files/folder.h"

namespace assay {

namespace fs = std::filesystem;

Result<Descriptor> open_regular(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.ok()) return unreadable(path);
  ASSAY_CHECK(require_regular(file.get(), path));
  return file;
}

Result<std::string> read_file(const fs::path& path, uint64_t max_bytes) {
  ASSAY_TRY(const Descriptor file, open_regular(path));
  return read_whole(file.get(), max_bytes, path);
}

Status write_file(const fs::path& path, std::string_view content) {
  const fs::path parent = path.parent_path();
  const Descriptor there(
      ::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!there.ok()) return unwritable(path);
  if (!path.has_filename()) return unwritable(path, EISDIR);
  ASSAY_TRY(Folder folder, Folder::open(parent));
  return folder.write_atomic(path.filename().string(), content);
}

}  // namespace assay
