// A folder by POSIX's *at calls, so that a full disk, a missing permission or a link is seen where
// it happens.
#include "base/files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 16;  // of list(): each level holds a descriptor
constexpr std::string_view kTemporary = "tmp-";

// Makes a new name in a folder survive a power cut. Some file systems can't: that is no error.
void sync_folder(int folder) {
  const Descriptor opened(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.ok()) ::fsync(opened.get());
}

// The folder that holds a name, and the last component by which it is called there.
struct Place {
  Descriptor owned;  // where that folder isn't the one that the walk began at
  int folder = -1;
  std::string last;
};

using Failure = std::function<std::unexpected<Error>(int error)>;

// One step down. A link is as good as no folder; the error says which it is.
Result<Descriptor> step(int folder, const std::string& component, const fs::path& path,
                        const Failure& failure) {
  Descriptor next(
      ::openat(folder, component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (next.ok()) return next;
  const int error = errno;
  struct stat info {};
  if (::fstatat(folder, component.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(info.st_mode)) {
    return bad_input("{}: expected folders only on the way there, found a symbolic link: {}",
                     path.string(), component);
  }
  return failure(error);
}

Result<Place> walk(int folder, const std::string& name, const fs::path& path,
                   const Failure& failure) {
  Place place;
  place.folder = folder;
  std::vector<std::string> components = split(name, '/');
  for (const std::string& component : components) {
    if (!component.empty() && component != "." && component != "..") continue;
    return bad_input("{}: expected a plain name below the folder, found \"{}\"", path.string(),
                     name);
  }
  place.last = std::move(components.back());
  components.pop_back();
  for (const std::string& component : components) {
    ASSAY_TRY(place.owned, step(place.folder, component, path, failure));
    place.folder = place.owned.get();
  }
  return place;
}

Result<Place> walk_to_read(int folder, const std::string& name, const fs::path& path) {
  return walk(folder, name, path, [&](int error) { return unreadable(path, error); });
}

Result<Place> walk_to_write(int folder, const std::string& name, const fs::path& path) {
  return walk(folder, name, path, [&](int error) { return unwritable(path, error); });
}

// Called after a failed open with O_NOFOLLOW, as a link has its own error.
bool is_link(const Place& place) {
  struct stat info {};
  return ::fstatat(place.folder, place.last.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(info.st_mode);
}

std::unexpected<Error> found_link(const fs::path& path) {
  return bad_input("{}: expected a regular file, found a symbolic link", path.string());
}

// Opens for appending or cutting: the very file that lies there, and only if it has no other name.
Result<Descriptor> open_own(const Place& place, int flags, const fs::path& path) {
  Descriptor file(::openat(place.folder, place.last.c_str(),
                           flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644));
  if (!file.ok()) {
    const int error = errno;
    if (is_link(place)) return found_link(path);
    return unwritable(path, error);
  }
  ASSAY_CHECK(require_regular(file.get(), path));
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && info.st_nlink > 1) {
    return bad_input("{}: expected a file of one name, found {} hard links to it", path.string(),
                     info.st_nlink);
  }
  return file;
}

class DiskAppendFile final : public AppendFile {
 public:
  DiskAppendFile(fs::path path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  Status append(std::string_view bytes) override {
    const off_t before = ::lseek(file_.get(), 0, SEEK_END);
    const Status written = write_all(file_.get(), bytes, path_);
    // A half-written row must not stay: on a full disk truncation still works. If it doesn't, the
    // error to report is still the write's.
    if (!written && before >= 0 && ::ftruncate(file_.get(), before) != 0) return written;
    return written;
  }

  Status sync() override {
    if (::fdatasync(file_.get()) != 0) return unwritable(path_);
    return {};
  }

 private:
  fs::path path_;
  Descriptor file_;
};

class Lister {
 public:
  explicit Lister(const Folder& folder) : folder_(folder) {}

  // Takes the descriptor. The number of entries.
  Result<size_t> list(Descriptor folder, const std::string& prefix, int depth);
  std::vector<FolderEntry> entries;

 private:
  Result<FolderEntry> entry(int folder, const dirent& found, const std::string& name, int depth);

  const Folder& folder_;
};

Result<size_t> Lister::list(Descriptor folder, const std::string& prefix, int depth) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(folder.get()), ::closedir);
  if (!listing) return unreadable(folder_.path_of(prefix));
  const int fd = folder.release();  // the listing's from here on
  size_t count = 0;
  while (true) {
    errno = 0;
    const dirent* found = ::readdir(listing.get());
    if (!found && errno != 0) return unreadable(folder_.path_of(prefix));
    if (!found) return count;
    const std::string_view last(found->d_name);
    if (last == "." || last == "..") continue;
    ++count;
    const std::string name = prefix.empty() ? std::string(last) : prefix + "/" + found->d_name;
    ASSAY_TRY(FolderEntry next, entry(fd, *found, name, depth));
    entries.push_back(std::move(next));
  }
}

Result<FolderEntry> Lister::entry(int folder, const dirent& found, const std::string& name,
                                  int depth) {
  const char* last = found.d_name;
  FolderEntry result{.name = name, .kind = FolderEntry::Kind::kOther, .what = {}};
  mode_t mode = DTTOIF(found.d_type);  // 0 where the file system doesn't say
  if (mode == 0) {
    struct stat info {};
    if (::fstatat(folder, last, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return unreadable(folder_.path_of(name));
    }
    mode = info.st_mode;
  }
  result.what = file_kind(mode);
  if (S_ISREG(mode)) result.kind = FolderEntry::Kind::kFile;
  if (!S_ISDIR(mode)) return result;
  result.kind = FolderEntry::Kind::kFolder;
  if (depth == kMaxDepth) {
    return bad_input("{}: expected at most {} folders within one another, found more",
                     folder_.path_of(name).string(), kMaxDepth);
  }
  Descriptor below(::openat(folder, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!below.ok()) return unreadable(folder_.path_of(name));
  ASSAY_TRY(const size_t count, list(std::move(below), name, depth + 1));
  result.is_empty = count == 0;
  return result;
}

class Disk final : public FileSystem {
 public:
  Status make_folder(const fs::path& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return unwritable(path, error.value());
    return {};
  }
  Result<std::unique_ptr<Folder>> open_folder(const fs::path& path) override {
    ASSAY_TRY(Folder folder, Folder::open(path));
    return std::make_unique<Folder>(std::move(folder));
  }
};

}  // namespace

Result<Folder> Folder::open(const fs::path& path) {
  const char* name = path.empty() ? "." : path.c_str();
  Descriptor folder(::open(name, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return unreadable(path);
  return Folder(std::move(folder), path);
}

fs::path Folder::path_of(std::string_view name) const {
  return name.empty() ? path_ : path_ / name;
}

Result<Descriptor> Folder::open_file(const std::string& name) const {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_read(folder_.get(), name, path));
  Descriptor file(::openat(place.folder, place.last.c_str(),
                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.ok()) {
    const int error = errno;
    if (is_link(place)) return found_link(path);
    return unreadable(path, error);
  }
  ASSAY_CHECK(require_regular(file.get(), path));
  return file;
}

Result<std::string> Folder::read(const std::string& name, uint64_t max_bytes) const {
  ASSAY_TRY(const Descriptor file, open_file(name));
  return read_whole(file.get(), max_bytes, path_of(name));
}

bool Folder::has(const std::string& name) const {
  const auto place = walk_to_read(folder_.get(), name, path_of(name));
  struct stat info {};
  if (!place) return false;
  if (::fstatat(place->folder, place->last.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return true;
  return errno != ENOENT;  // an entry that may not be looked at is there: its reader complains
}

Result<std::vector<FolderEntry>> Folder::list() const {
  Descriptor folder(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return unreadable(path_);
  Lister lister(*this);
  ASSAY_CHECK(lister.list(std::move(folder), "", 1));
  std::ranges::sort(lister.entries, {}, &FolderEntry::name);
  return std::move(lister.entries);
}

Result<Descriptor> Folder::open_folder(const std::string& name) const {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_read(folder_.get(), name, path));
  return step(place.folder, place.last, path, [&](int error) { return unreadable(path, error); });
}

Result<Descriptor> Folder::lock(const std::string& name) const {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_write(folder_.get(), name, path));
  ASSAY_TRY(Descriptor file, open_own(place, O_RDWR, path));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return Descriptor();
  return unwritable(path);
}

Status Folder::make_folder(const std::string& name) {
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end == 0 ? 0 : end + 1);
    const std::string part = name.substr(0, end);
    const fs::path path = path_of(part);
    ASSAY_TRY(const Place place, walk_to_write(folder_.get(), part, path));
    if (::mkdirat(place.folder, place.last.c_str(), 0777) == 0) {
      sync_folder(place.folder);
    } else if (errno != EEXIST) {
      return unwritable(path);
    } else {
      ASSAY_CHECK(
          step(place.folder, place.last, path, [&](int error) { return unwritable(path, error); }));
    }
  }
  return {};
}

Status Folder::write_new(const std::string& name, std::string_view content) {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_write(folder_.get(), name, path));
  const Descriptor file(::openat(place.folder, place.last.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.ok()) return unwritable(path);
  Status written = write_all(file.get(), content, path);
  if (written && ::fdatasync(file.get()) != 0) written = unwritable(path);
  if (!written) {
    ::unlinkat(place.folder, place.last.c_str(), 0);
    return written;
  }
  sync_folder(place.folder);
  return {};
}

Status Folder::rename(const std::string& from, const std::string& to) {
  const fs::path path = path_of(to);
  ASSAY_TRY(const Place source, walk_to_write(folder_.get(), from, path));
  ASSAY_TRY(const Place target, walk_to_write(folder_.get(), to, path));
  if (::renameat(source.folder, source.last.c_str(), target.folder, target.last.c_str()) != 0) {
    return unwritable(path);
  }
  sync_folder(target.folder);
  return {};
}

Result<std::unique_ptr<AppendFile>> Folder::open_append(const std::string& name) {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_write(folder_.get(), name, path));
  ASSAY_TRY(Descriptor file, open_own(place, O_WRONLY | O_CREAT | O_APPEND, path));
  sync_folder(place.folder);
  return std::make_unique<DiskAppendFile>(path, std::move(file));
}

Status Folder::truncate(const std::string& name, uint64_t size_bytes) {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_write(folder_.get(), name, path));
  ASSAY_TRY(const Descriptor file, open_own(place, O_WRONLY, path));
  if (::ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0) return unwritable(path);
  return {};
}

Status Folder::remove(const std::string& name) {
  const fs::path path = path_of(name);
  ASSAY_TRY(const Place place, walk_to_write(folder_.get(), name, path));
  if (::unlinkat(place.folder, place.last.c_str(), 0) != 0 && errno != ENOENT) {
    return unwritable(path);
  }
  return {};
}

Status Folder::write_atomic(const std::string& name, std::string_view content) {
  const std::string temporary = temporary_name(name);
  Status written = write_new(temporary, content);
  if (written) written = rename(temporary, name);
  if (written) return written;
  Error error = std::move(written).error();
  // If it can't be removed either, the first error is the one to tell.
  static_cast<void>(remove(temporary));  // NOLINT(bugprone-unused-return-value)
  // The temporary's name means nothing to the caller.
  const std::string unknown = path_of(temporary).string();
  if (error.message.starts_with(unknown)) {
    error.message.replace(0, unknown.size(), path_of(name).string());
  }
  return std::unexpected(std::move(error));
}

std::string temporary_name(const std::string& name) {
  uint64_t random = 0;
  // Without entropy (a very old kernel, early boot) the clock has to do: O_EXCL protects.
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    random = static_cast<uint64_t>(monotonic_now_ns());
  }
  const size_t last = name.rfind('/') + 1;  // 0 where there is no folder
  return fmt::format("{}{}{}-{}", name.substr(0, last), kTemporary, random, name.substr(last));
}

std::string temporary_target(const std::string& name) {
  const size_t last = name.rfind('/') + 1;
  if (!name.substr(last).starts_with(kTemporary)) return {};
  const size_t digits = last + kTemporary.size();
  const size_t end = name.find_first_not_of("0123456789", digits);
  if (end == std::string::npos || end == digits || name[end] != '-') return {};
  return name.substr(0, last) + name.substr(end + 1);
}

FileSystem& disk() {
  static Disk the_disk;
  return the_disk;
}

}  // namespace assay
