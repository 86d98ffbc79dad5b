// The folder of compiled kernels: names, trailers, and the choice of entries to remove.
#include "engine/codegen/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/files/cache_folder.h"
#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/text/text.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kernel";
constexpr std::string_view kTemporary = "assay-tmp-";
constexpr std::string_view kUnique = "XXXXXX";  // as mkostemp() fills in
constexpr std::string_view kMark = "\nassay-kernel-1 ";
constexpr size_t kDigestDigits = 64;
constexpr size_t kMaxTrailer = 256;

// "\nassay-kernel-1 DIGEST TARGET SHA256\n"
struct Trailer {
  std::string target;
  size_t payload_bytes = 0;
};

std::string trailer_start(std::string_view digest, std::string_view target) {
  return fmt::format("{}{} {} ", kMark, digest, target);
}

// The trailer of an entry's content, or of its end alone; nothing if it isn't one of this digest.
std::optional<Trailer> parse_trailer(std::string_view content, std::string_view digest) {
  const std::string_view end =
      content.substr(content.size() - std::min(content.size(), kMaxTrailer));
  const size_t at = end.rfind(kMark);
  if (at == std::string_view::npos || !end.ends_with('\n')) return std::nullopt;
  const std::string_view line = end.substr(at + 1, end.size() - at - 2);
  const std::vector<std::string> words = split(line, ' ');
  if (words.size() != 4 || words[1] != digest || words[3].size() != kDigestDigits) {
    return std::nullopt;
  }
  return Trailer{words[2], content.size() - end.size() + at};
}

// The whole of an entry, checked.
std::optional<Trailer> check(std::string_view content, std::string_view digest) {
  const std::optional<Trailer> trailer = parse_trailer(content, digest);
  if (!trailer) return std::nullopt;
  const size_t hash_at = content.size() - 1 - kDigestDigits;
  if (sha256_hex(content.substr(0, hash_at)) != content.substr(hash_at, kDigestDigits)) {
    return std::nullopt;
  }
  return trailer;
}

bool is_entry(std::string_view name) {
  return name.size() == kDigestDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of("0123456789abcdef") == kDigestDigits;
}

// True for a name that write_and_rename() makes, and nobody else.
bool is_temporary(std::string_view name) {
  return name.size() == kTemporary.size() + kUnique.size() && name.starts_with(kTemporary) &&
         std::ranges::all_of(name.substr(kTemporary.size()), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0;
         });
}

// A file of the cache folder, entry or temporary.
struct Found {
  fs::path path;
  uint64_t bytes = 0;
  timespec used{};  // the time of change: find() sets it
};

bool older(const Found& a, const Found& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

struct Listing {
  std::vector<Found> entries;
  std::vector<Found> temporary;
};

// Regular files alone: a folder or a link is nobody's kernel, whatever its name. A file that others
// remove meanwhile is left out.
Result<Listing> list(const fs::path& folder, const fs::path& shown) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator files(folder, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    const std::string name = files->path().filename();
    const bool entry = is_entry(name);
    struct stat info {};
    if ((!entry && !is_temporary(name)) || ::lstat(files->path().c_str(), &info) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    (entry ? listing.entries : listing.temporary)
        .push_back({files->path(), static_cast<uint64_t>(info.st_size), info.st_mtim});
  }
  if (error) {
    return environment_error("{}: expected a readable folder, found: {}", shown.string(),
                             error.message());
  }
  return listing;
}

uint64_t total_bytes(const std::vector<Found>& files) {
  uint64_t bytes = 0;
  for (const Found& file : files) bytes += file.bytes;
  return bytes;
}

// Why code that lies there might be another user's; empty: it is this user's or root's, and nobody
// else may write to it.
std::string why_foreign(const struct stat& info) {
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return fmt::format("of this user (code is loaded from it), found user {}'s", info.st_uid);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("that others can't write to (code is loaded from it), found mode {:o}",
                       info.st_mode & 07777);
  }
  return "";
}

// An entry's content by one descriptor, so that the checked bytes are the returned ones. Only a
// regular file is taken, and none that why_foreign() names a reason against.
std::optional<std::string> read_entry(const fs::path& path, std::string& foreign) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!file.ok() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  foreign = why_foreign(info);
  if (!foreign.empty()) return std::nullopt;
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (got < content.size()) {
    const ssize_t n = ::read(file.get(), content.data() + got, content.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    got += static_cast<size_t>(n);
  }
  return content;
}

// The last bytes of a file; for a listing, which doesn't hash everything.
std::string read_end(const fs::path& path, uint64_t bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string end(std::min<uint64_t>(bytes, kMaxTrailer), '\0');
  const auto at = static_cast<off_t>(bytes - end.size());
  const ssize_t n = file.ok() ? ::pread(file.get(), end.data(), end.size(), at) : -1;
  end.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return end;
}

std::unexpected<Error> unwritable(const fs::path& path, int error) {
  return environment_error("{}: expected to write a kernel there, found: {}", path.string(),
                           std::strerror(error));
}

Status write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return unwritable(path, n < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

// Not synchronised to the device: a file damaged by a power cut fails its hash and is built again.
// `last_wins`: replaces a file that is there; else that stays. Errors name `shown`.
Status write_and_rename(const fs::path& path, const fs::path& shown, std::string_view payload,
                        std::string_view trailer, bool last_wins) {
  std::string temporary = path.parent_path() / fmt::format("{}{}", kTemporary, kUnique);
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.ok()) return unwritable(shown, errno);
  Status written = write_all(file.get(), payload, shown);
  if (written) written = write_all(file.get(), trailer, shown);
  if (written && last_wins) {
    if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
    written = unwritable(shown, errno);
  } else if (written && ::link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    written = unwritable(shown, errno);
  }
  ::unlink(temporary.c_str());
  return written;
}

// mkdtemp's permissions for the last folder, the process's own for those above it.
Status make_private_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return environment_error("{}: expected to make the folder of compiled kernels, found: {}",
                           folder.string(), std::strerror(errno));
}

}  // namespace

std::string KernelKey::digest() const {
  Sha256 hash;
  for (const std::string* part : {&source, &target, &compiler, &flags}) {
    hash.update(fmt::format("{} ", part->size()));  // so that no two keys give the same bytes
    hash.update(*part);
  }
  return hash.finish_hex();
}

fs::path KernelCache::default_folder() {
  return cache_folder("ASSAY_KERNEL_CACHE", "kernels");
}

Result<KernelCache> KernelCache::open(fs::path folder, uint64_t limit_bytes) {
  std::error_code error;
  folder = folder.empty() ? folder : fs::absolute(folder, error).lexically_normal();
  if (folder.has_relative_path() && !folder.has_filename()) folder = folder.parent_path();
  if (folder.empty() || error) {
    return bad_input("kernel cache: expected a folder, found none; set ASSAY_KERNEL_CACHE");
  }
  ASSAY_CHECK(make_private_folder(folder));
  struct stat link {};
  struct stat info {};
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.ok() || ::fstat(opened.get(), &info) != 0 || ::lstat(folder.c_str(), &link) != 0) {
    return bad_input("{}: expected a folder for compiled kernels, found something else",
                     folder.string());
  }
  std::string foreign = why_foreign(info);
  if (foreign.empty() && S_ISLNK(link.st_mode)) {
    link.st_mode = 0;  // a link's says nothing
    foreign = why_foreign(link);
  }
  if (!foreign.empty()) return bad_input("{}: expected a folder {}", folder.string(), foreign);
  return KernelCache(std::move(folder), std::move(opened), limit_bytes);
}

KernelCache::KernelCache(fs::path folder, Descriptor opened, uint64_t limit_bytes)
    : folder_(std::move(folder)),
      opened_(std::make_shared<const Descriptor>(std::move(opened))),
      at_(fmt::format("/proc/self/fd/{}", opened_->get())),
      limit_bytes_(limit_bytes) {}

fs::path KernelCache::file_of(const std::string& digest) const {
  return at_ / (digest + std::string(kSuffix));
}

std::optional<std::string> KernelCache::open_entry(const std::string& digest) {
  const fs::path path = file_of(digest);
  std::string foreign;
  std::optional<std::string> content = read_entry(path, foreign);
  if (!foreign.empty()) {
    refusal_ = fmt::format("kernel cache: {} is not used: expected a file {}",
                           (folder_ / path.filename()).string(), foreign);
  }
  if (!content) return std::nullopt;
  const std::optional<Trailer> trailer = check(*content, digest);
  if (!trailer) {
    ::unlink(path.c_str());
    return std::nullopt;
  }
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  content->resize(trailer->payload_bytes);
  return content;
}

std::optional<fs::path> KernelCache::find(const KernelKey& key) {
  const std::string digest = key.digest();
  if (!open_entry(digest)) return std::nullopt;
  return file_of(digest);
}

std::optional<std::string> KernelCache::read(const KernelKey& key) {
  return open_entry(key.digest());
}

Result<fs::path> KernelCache::write(const KernelKey& key, std::string_view built, bool last_wins) {
  assert(!key.target.empty() && key.target.find_first_of(" \n") == std::string::npos);
  const std::string digest = key.digest();
  fs::path path = file_of(digest);
  std::string trailer = trailer_start(digest, key.target);
  Sha256 hash;
  hash.update(built);
  hash.update(trailer);
  trailer += hash.finish_hex() + '\n';
  fs::path shown = folder_ / path.filename();
  ASSAY_CHECK(write_and_rename(path, shown, built, trailer, last_wins));
  hold_limit(path, built.size() + trailer.size());
  return shown;
}

Result<fs::path> KernelCache::add(const KernelKey& key, std::string_view built) {
  return write(key, built, true);
}

Result<std::string> KernelCache::add_first(const KernelKey& key, std::string_view built) {
  ASSAY_TRY(const fs::path path, write(key, built, false));
  if (auto first = read(key)) return *std::move(first);
  if (!refusal_.empty()) {
    ASSAY_CHECK(write(key, built, true));
    return std::string(built);
  }
  return environment_error("{}: expected an entry to stay, found none", path.string());
}

void KernelCache::remove(const KernelKey& key) {
  ::unlink(file_of(key.digest()).c_str());
}

// A look at the folder costs as much as it has entries: only at the first add(), and when the known
// bytes exceed the limit.
void KernelCache::hold_limit(const fs::path& newest, uint64_t newest_bytes) {
  if (known_bytes_ && *known_bytes_ + newest_bytes <= limit_bytes_) {
    *known_bytes_ += newest_bytes;
    return;
  }
  Result<Listing> listing = list(at_, folder_);
  if (!listing) return;  // the next add() tries again
  for (const Found& file : listing->temporary) {
    if (::time(nullptr) - file.used.tv_sec > kLeftoverAgeS) ::unlink(file.path.c_str());
  }
  uint64_t bytes = total_bytes(listing->entries);
  std::ranges::sort(listing->entries, older);
  for (const Found& file : listing->entries) {
    if (bytes <= limit_bytes_) break;
    if (file.path == newest || ::unlink(file.path.c_str()) != 0) continue;
    bytes -= file.bytes;
  }
  known_bytes_ = bytes;
}

Result<std::vector<KernelCache::Entry>> KernelCache::entries() const {
  ASSAY_TRY(Listing listing, list(at_, folder_));
  std::ranges::sort(listing.entries, [](const Found& a, const Found& b) { return older(b, a); });
  std::vector<Entry> entries;
  for (const Found& file : listing.entries) {
    Entry entry{file.path.stem(), "", file.bytes, file.used.tv_sec};
    const auto trailer = parse_trailer(read_end(file.path, file.bytes), entry.digest);
    if (trailer) entry.target = trailer->target;
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<uint64_t> KernelCache::clear() {
  ASSAY_TRY(const Listing listing, list(at_, folder_));
  uint64_t freed = 0;
  for (const auto* files : {&listing.entries, &listing.temporary}) {
    for (const Found& file : *files) {
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

std::optional<KernelCache> open_kernel_cache(const std::optional<std::filesystem::path>& folder,
                                             std::vector<std::string>& notes) {
  if (!folder) return std::nullopt;
  auto opened = KernelCache::open(*folder);
  if (opened) return std::move(opened).value();
  notes.push_back("kernel cache: not used: " + opened.error().message);
  return std::nullopt;
}

}  // namespace assay::engine
