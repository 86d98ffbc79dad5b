// Names of kept files and of drafts, who may write to them, and which of them go.
#include "base/files/kept_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDraft = "assay-tmp-";
constexpr std::string_view kUnique = "XXXXXX";  // as mkostemp() fills in

bool is_kept(std::string_view name, std::string_view suffix) {
  return name.size() == KeptFiles::kDigestDigits + suffix.size() && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789abcdef") == KeptFiles::kDigestDigits;
}

// True for a name that draft() makes, and nobody else.
bool is_draft(std::string_view name) {
  return name.size() == kDraft.size() + kUnique.size() && name.starts_with(kDraft) &&
         std::ranges::all_of(name.substr(kDraft.size()), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0;
         });
}

bool older(const KeptFiles::Found& a, const KeptFiles::Found& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

uint64_t total_bytes(const std::vector<KeptFiles::Found>& files) {
  uint64_t bytes = 0;
  for (const KeptFiles::Found& file : files) bytes += file.bytes;
  return bytes;
}

// The reason why what lies there might be another user's; empty: it is this user's or root's, and
// nobody else may write to it.
std::string why_foreign(const struct stat& info, std::string_view trust) {
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return fmt::format("of this user ({}), found user {}'s", trust, info.st_uid);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("that others can't write to ({}), found mode {:o}", trust,
                       info.st_mode & 07777);
  }
  return "";
}

std::unexpected<Error> not_kept(const fs::path& path, std::string_view one, int error) {
  return environment_error("{}: expected to write {} there, found: {}", path.string(), one,
                           std::strerror(error));
}

// mkdtemp's permissions for the last folder, the process's own for those above it.
Status make_private_folder(const fs::path& folder, std::string_view many) {
  std::error_code error;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return environment_error("{}: expected to make the folder of {}, found: {}", folder.string(),
                           many, std::strerror(errno));
}

}  // namespace

KeptDraft::~KeptDraft() {
  if (file_.ok() && !path_.empty()) ::unlink(path_.c_str());
}

Result<KeptFiles> KeptFiles::open(fs::path folder, KeptKind kind, uint64_t limit_bytes) {
  std::error_code error;
  folder = folder.empty() ? folder : fs::absolute(folder, error).lexically_normal();
  if (folder.has_relative_path() && !folder.has_filename()) folder = folder.parent_path();
  if (folder.empty() || error) {
    return bad_input("kernel cache: expected a folder, found none; set ASSAY_KERNEL_CACHE");
  }
  ASSAY_CHECK(make_private_folder(folder, kind.many));
  struct stat link {};
  struct stat info {};
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.ok() || ::fstat(opened.get(), &info) != 0 || ::lstat(folder.c_str(), &link) != 0) {
    return bad_input("{}: expected a folder for {}, found something else", folder.string(),
                     kind.many);
  }
  std::string foreign = why_foreign(info, kind.trust);
  if (foreign.empty() && S_ISLNK(link.st_mode)) {
    link.st_mode = 0;  // a link's says nothing
    foreign = why_foreign(link, kind.trust);
  }
  if (!foreign.empty()) return bad_input("{}: expected a folder {}", folder.string(), foreign);
  return KeptFiles(std::move(folder), std::move(opened), kind, limit_bytes);
}

KeptFiles::KeptFiles(fs::path folder, Descriptor opened, KeptKind kind, uint64_t limit_bytes)
    : kind_(kind),
      folder_(std::move(folder)),
      opened_(std::make_shared<const Descriptor>(std::move(opened))),
      at_(fmt::format("/proc/self/fd/{}", opened_->get())),
      limit_bytes_(limit_bytes) {}

fs::path KeptFiles::path(std::string_view digest) const {
  return at_ / fmt::format("{}{}", digest, kind_.suffix);
}

fs::path KeptFiles::shown(std::string_view digest) const {
  return folder_ / path(digest).filename();
}

Descriptor KeptFiles::find(std::string_view digest) {
  Descriptor file(::open(path(digest).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!file.ok() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const std::string foreign = why_foreign(info, kind_.trust);
  if (foreign.empty()) return file;
  refusal_ = fmt::format("kernel cache: {} is not used: expected a file {}", shown(digest).string(),
                         foreign);
  return {};
}

void KeptFiles::mark_used(std::string_view digest) const {
  ::utimensat(AT_FDCWD, path(digest).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void KeptFiles::remove(std::string_view digest) const {
  ::unlink(path(digest).c_str());
}

Result<KeptDraft> KeptFiles::draft(std::string_view digest) const {
  std::string path = at_ / fmt::format("{}{}", kDraft, kUnique);
  Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.ok()) return not_kept(shown(digest), kind_.one, errno);
  ::flock(file.get(), LOCK_EX | LOCK_NB);  // as long as somebody writes it
  return KeptDraft(std::move(file), std::move(path));
}

Status KeptFiles::keep(KeptDraft draft, std::string_view digest, uint64_t bytes, bool last_wins) {
  const fs::path name = path(digest);
  if (last_wins) {
    if (::rename(draft.path_.c_str(), name.c_str()) != 0) {
      return not_kept(shown(digest), kind_.one, errno);
    }
    draft.path_.clear();
  } else if (::link(draft.path_.c_str(), name.c_str()) != 0 && errno != EEXIST) {
    return not_kept(shown(digest), kind_.one, errno);
  }
  hold_limit(name, bytes);
  return {};
}

Result<std::vector<KeptFiles::Found>> KeptFiles::files(bool drafts) const {
  std::vector<Found> found;
  std::error_code error;
  fs::directory_iterator entries(at_, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    struct stat info {};
    if (!(drafts ? is_draft(name) : is_kept(name, kind_.suffix)) ||
        ::lstat(entries->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      continue;
    }
    found.push_back({name.substr(0, kDigestDigits), entries->path(),
                     static_cast<uint64_t>(info.st_size), info.st_mtim});
  }
  if (error) {
    return environment_error("{}: expected a readable folder, found: {}", folder_.string(),
                             error.message());
  }
  return found;
}

void KeptFiles::drop_abandoned() const {
  constexpr time_t kBegunS = 10;  // a draft may be there a moment before its lock
  const auto drafts = files(true);
  if (!drafts) return;
  for (const Found& draft : *drafts) {
    if (::time(nullptr) - draft.used.tv_sec < kBegunS) continue;
    const Descriptor file(
        ::open(draft.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.ok() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(draft.path.c_str());
  }
}

// A look at the folder costs as much as it has files: only at the first keep(), and when the known
// bytes exceed the limit.
void KeptFiles::hold_limit(const fs::path& newest, uint64_t newest_bytes) {
  if (known_bytes_ && *known_bytes_ + newest_bytes <= limit_bytes_) {
    *known_bytes_ += newest_bytes;
    return;
  }
  auto drafts = files(true);
  auto kept = files(false);
  if (!drafts || !kept) return;  // the next keep() tries again
  for (const Found& file : *drafts) {
    if (::time(nullptr) - file.used.tv_sec > kLeftoverAgeS) ::unlink(file.path.c_str());
  }
  uint64_t bytes = total_bytes(*kept);
  std::ranges::sort(*kept, older);
  for (const Found& file : *kept) {
    if (bytes <= limit_bytes_) break;
    if (file.path == newest || ::unlink(file.path.c_str()) != 0) continue;
    bytes -= file.bytes;
  }
  known_bytes_ = bytes;
}

Result<std::vector<KeptFiles::Found>> KeptFiles::list() const {
  ASSAY_TRY(std::vector<Found> kept, files(false));
  std::ranges::sort(kept, [](const Found& a, const Found& b) { return older(b, a); });
  return kept;
}

Result<uint64_t> KeptFiles::clear() {
  uint64_t freed = 0;
  for (const bool drafts : {false, true}) {
    ASSAY_TRY(const std::vector<Found> all, files(drafts));
    for (const Found& file : all) {
      if (::unlink(file.path.c_str()) == 0) {
        freed += file.bytes;
      } else if (errno != ENOENT) {
        return environment_error("{}: expected to remove it, found: {}",
                                 (folder_ / file.path.filename()).string(), std::strerror(errno));
      }
    }
  }
  known_bytes_.reset();
  return freed;
}

}  // namespace assay
