// Files of packed weights: written in large pieces, so that the page cache holds them in large
// pages, which a process maps at once.
#include "engine/device/cpu/weight_cache.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/files/file_io.h"
#include "base/text/text.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr KeptKind kKind{.suffix = ".weights",
                         .one = "packed weights",
                         .many = "packed weights",
                         .trust = "models are computed with it"};
constexpr std::string_view kMark = "\nassay-weights-1 ";
constexpr size_t kMostTrailer = 256;

// "\nassay-weights-1 DIGEST BYTES LABEL\n"
std::string trailer_of(const WeightFileKey& key) {
  std::string line = fmt::format("{}{} {} {}\n", kMark, key.digest, key.bytes, key.label);
  assert(line.size() <= kMostTrailer && std::ranges::count(line, ' ') == 3);
  return line;
}

std::string read_at(int fd, uint64_t at, size_t bytes) {
  std::string found(bytes, '\0');
  const ssize_t n = ::pread(fd, found.data(), found.size(), static_cast<off_t>(at));
  found.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return found;
}

std::unexpected<Error> no_room(const fs::path& path, uint64_t bytes, const std::string& found) {
  return environment_error("{}: expected room for {} of packed weights, found {}", path.string(),
                           format_bytes(static_cast<double>(bytes)), found);
}

std::unexpected<Error> not_written(const fs::path& path, int error) {
  return environment_error("{}: expected to write packed weights there, found: {}", path.string(),
                           std::strerror(error));
}

}  // namespace

// Whole huge pages leave, unless everything has to: the page cache then has such pages too.
Result<std::byte*> WeightFile::next(size_t bytes) {
  if (used_ + bytes > memory_.size_bytes()) {
    ASSAY_CHECK(write(used_ / HugeMemory::kPageBytes * HugeMemory::kPageBytes));
  }
  if (used_ + bytes > memory_.size_bytes()) {
    ASSAY_TRY(HugeMemory larger, HugeMemory::allocate(HugeMemory::kPageBytes + bytes));
    if (used_ > 0) std::memcpy(larger.data(), memory_.data(), used_);
    memory_ = std::move(larger);
  }
  std::byte* const at = memory_.data() + used_;
  used_ += bytes;
  return at;
}

Status WeightFile::skip_to(uint64_t at) {
  const auto gap = static_cast<size_t>(at - written_ - used_);
  if (gap == 0) return {};
  ASSAY_TRY(std::byte* const zeros, next(gap));
  std::memset(zeros, 0, gap);
  return {};
}

Status WeightFile::write(size_t bytes) {
  const auto at = static_cast<off_t>(written_);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::pwrite(draft_.descriptor(), memory_.data() + done, bytes - done,
                               at + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return not_written(shown_, n < 0 ? errno : EIO);
    done += static_cast<size_t>(n);
  }
  // Begins to bring them to the device, for which keep() waits.
  ::sync_file_range(draft_.descriptor(), at, static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
  written_ += bytes;
  used_ -= bytes;
  if (used_ > 0) std::memmove(memory_.data(), memory_.data() + bytes, used_);
  return {};
}

Result<WeightCache> WeightCache::open(fs::path folder, uint64_t limit_bytes) {
  ASSAY_TRY(KeptFiles files, KeptFiles::open(std::move(folder), kKind, limit_bytes));
  files.drop_abandoned();
  return WeightCache(std::move(files));
}

std::optional<MappedFile> WeightCache::find(const WeightFileKey& key) {
  const Descriptor file = files_.find(key.digest);
  if (!file.ok()) return std::nullopt;
  auto mapped = MappedFile::of(file.get(), files_.shown(key.digest));
  if (!mapped) return std::nullopt;  // no fault of the file
  const std::string trailer = trailer_of(key);
  if (mapped->bytes().size() != key.bytes + trailer.size() ||
      read_at(file.get(), key.bytes, trailer.size()) != trailer) {
    files_.remove(key.digest);
    return std::nullopt;
  }
  files_.mark_used(key.digest);
  return *std::move(mapped);
}

Result<WeightFile> WeightCache::begin(const WeightFileKey& key) const {
  const fs::path shown = files_.shown(key.digest);
  if (key.bytes > files_.limit_bytes()) {
    return no_room(shown, key.bytes,
                   "a limit of " + format_bytes(static_cast<double>(files_.limit_bytes())));
  }
  ASSAY_TRY(KeptDraft draft, files_.draft(key.digest));
  struct statvfs disk {};
  if (::fstatvfs(draft.descriptor(), &disk) == 0) {
    const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free / 2 < key.bytes) {
      return no_room(shown, key.bytes,
                     format_bytes(static_cast<double>(free)) + " free, of which half may be taken");
    }
  }
  // Not every file system can set the room aside, and then writing finds its end.
  if (::fallocate(draft.descriptor(), 0, 0, static_cast<off_t>(key.bytes)) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    return not_written(shown, errno);
  }
  return WeightFile(std::move(draft), shown);
}

Result<MappedFile> WeightCache::keep(WeightFile file, const WeightFileKey& key) {
  assert(file.written_ + file.used_ == key.bytes);
  const std::string trailer = trailer_of(key);
  ASSAY_TRY(std::byte* const end, file.next(trailer.size()));
  std::memcpy(end, trailer.data(), trailer.size());
  ASSAY_CHECK(file.write(file.used_));
  const int fd = file.draft_.descriptor();
  if (::fsync(fd) != 0) return not_written(file.shown_, errno);
  ASSAY_TRY(MappedFile mapped, MappedFile::of(fd, file.shown_));
  ASSAY_CHECK(files_.keep(std::move(file.draft_), key.digest, file.written_, true));
  return mapped;
}

Result<std::vector<WeightCache::Entry>> WeightCache::entries() const {
  ASSAY_TRY(const std::vector<KeptFiles::Found> files, files_.list());
  std::vector<Entry> entries;
  for (const KeptFiles::Found& file : files) {
    Entry entry{file.digest, "", file.bytes, file.used.tv_sec};
    const Descriptor opened(
        ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const uint64_t tail = std::min<uint64_t>(file.bytes, kMostTrailer);
    const std::string end = opened.ok() ? read_at(opened.get(), file.bytes - tail, tail) : "";
    const size_t at = end.rfind(kMark);
    if (at != std::string::npos && end.ends_with('\n')) {
      const std::vector<std::string> words = split(end.substr(at + 1, end.size() - at - 2), ' ');
      if (words.size() == 4 && words[1] == file.digest) entry.label = words[3];
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace assay::engine
