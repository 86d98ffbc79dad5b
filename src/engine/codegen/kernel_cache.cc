// Entries of compiled kernels: their keys and trailers.
#include "engine/codegen/kernel_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "base/files/cache_folder.h"
#include "base/files/file_io.h"
#include "base/files/hash.h"
#include "base/text/text.h"

namespace assay::engine {
namespace {

namespace fs = std::filesystem;

constexpr KeptKind kKind{.suffix = ".kernel",
                         .one = "a kernel",
                         .many = "compiled kernels",
                         .trust = "code is loaded from it"};
constexpr std::string_view kMark = "\nassay-kernel-1 ";
constexpr size_t kDigestDigits = KeptFiles::kDigestDigits;
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

// The last bytes of a file; for a listing, which doesn't hash everything.
std::string read_end(const fs::path& path, uint64_t bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string end(std::min<uint64_t>(bytes, kMaxTrailer), '\0');
  const auto at = static_cast<off_t>(bytes - end.size());
  const ssize_t n = file.ok() ? ::pread(file.get(), end.data(), end.size(), at) : -1;
  end.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return end;
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
  ASSAY_TRY(KeptFiles files, KeptFiles::open(std::move(folder), kKind, limit_bytes));
  return KernelCache(std::move(files));
}

// The content comes by one descriptor, so that the checked bytes are the returned ones.
std::optional<std::string> KernelCache::open_entry(const std::string& digest) {
  const Descriptor file = files_.find(digest);
  if (!file.ok()) return std::nullopt;
  auto content = read_whole(file.get(), kDefaultLimitBytes, files_.shown(digest));
  if (!content) return std::nullopt;
  const std::optional<Trailer> trailer = check(*content, digest);
  if (!trailer) {
    files_.remove(digest);
    return std::nullopt;
  }
  files_.mark_used(digest);
  content->resize(trailer->payload_bytes);
  return *std::move(content);
}

std::optional<fs::path> KernelCache::find(const KernelKey& key) {
  const std::string digest = key.digest();
  if (!open_entry(digest)) return std::nullopt;
  return files_.path(digest);
}

std::optional<std::string> KernelCache::read(const KernelKey& key) {
  return open_entry(key.digest());
}

// Not synchronised to the device: a file damaged by a power cut fails its hash and is built again.
Result<fs::path> KernelCache::write(const KernelKey& key, std::string_view built, bool last_wins) {
  assert(!key.target.empty() && key.target.find_first_of(" \n") == std::string::npos);
  const std::string digest = key.digest();
  std::string trailer = trailer_start(digest, key.target);
  Sha256 hash;
  hash.update(built);
  hash.update(trailer);
  trailer += hash.finish_hex() + '\n';
  fs::path shown = files_.shown(digest);
  ASSAY_TRY(KeptDraft draft, files_.draft(digest));
  for (const std::string_view part : {built, std::string_view(trailer)}) {
    const Status written = write_all(draft.descriptor(), part, shown);
    if (!written) return environment_error("{}", written.error().message);
  }
  ASSAY_CHECK(files_.keep(std::move(draft), digest, built.size() + trailer.size(), last_wins));
  return shown;
}

Result<fs::path> KernelCache::add(const KernelKey& key, std::string_view built) {
  return write(key, built, true);
}

Result<std::string> KernelCache::add_first(const KernelKey& key, std::string_view built) {
  ASSAY_TRY(const fs::path path, write(key, built, false));
  if (auto first = read(key)) return *std::move(first);
  if (files_.has_refused()) {
    ASSAY_CHECK(write(key, built, true));
    return std::string(built);
  }
  return environment_error("{}: expected an entry to stay, found none", path.string());
}

void KernelCache::remove(const KernelKey& key) {
  files_.remove(key.digest());
}

Result<std::vector<KernelCache::Entry>> KernelCache::entries() const {
  ASSAY_TRY(const std::vector<KeptFiles::Found> files, files_.list());
  std::vector<Entry> entries;
  for (const KeptFiles::Found& file : files) {
    Entry entry{file.digest, "", file.bytes, file.used.tv_sec};
    const auto trailer = parse_trailer(read_end(file.path, file.bytes), entry.digest);
    if (trailer) entry.target = trailer->target;
    entries.push_back(std::move(entry));
  }
  return entries;
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
