// Compiled kernels on disk, shared by every process of a user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/kept_files.h"
#include "base/result.h"

namespace assay::engine {

// Everything that a compiled kernel depends on; its SHA-256 is the file's name.
struct KernelKey {
  std::string source;
  std::string target;    // "cpu", "sm_90a": a word
  std::string compiler;  // identity: path, version, hash, and the processor that native means
  std::string flags;
  std::string digest() const;  // 64 hexadecimal digits
};

// An entry is one file: the compiler's output, then a line with key, target and the SHA-256 of all
// before it. One file, so that its rename is the commit; the line at the end, so that the dynamic
// loader, which reads no further than an object's own tables say, takes the file as it is.
//
// A value: copies work on the same folder. One of them is for one thread at a time; threads and
// processes with a copy each may do anything at once.
class KernelCache {
 public:
  static constexpr uint64_t kDefaultLimitBytes = uint64_t{512} << 20;
  static constexpr int64_t kLeftoverAgeS = KeptFiles::kLeftoverAgeS;

  // $ASSAY_KERNEL_CACHE, else $XDG_CACHE_HOME/assay/kernels, else ~/.cache/assay/kernels. Empty if
  // there is no home either: open() refuses that.
  static std::filesystem::path default_folder();
  // KeptFiles::open(): code is loaded from it.
  static Result<KernelCache> open(std::filesystem::path folder,
                                  uint64_t limit_bytes = kDefaultLimitBytes);

  // The file of this key, by a path that is good for this process while the cache or a copy of it
  // lives, its content checked against the hash in it; a damaged one is removed and counts as
  // absent. KeptFiles::find() says which are refused. Marks the file as used. Another process of
  // this user may remove the file at any time.
  std::optional<std::filesystem::path> find(const KernelKey& key);
  // The same, as the bytes that add() was given.
  std::optional<std::string> read(const KernelKey& key);
  // KeptFiles::keep(): the last of two writers wins, both results are whole.
  Result<std::filesystem::path> add(const KernelKey& key, std::string_view built);
  // If two write one key, the first wins. The entry that every reader finds from now on: `built`,
  // or the one that was there.
  Result<std::string> add_first(const KernelKey& key, std::string_view built);
  void remove(const KernelKey& key);  // one that turned out to be of no use
  // One line about the entry that find() or read() refused last; empty: none since the last call.
  std::string take_refusal() { return files_.take_refusal(); }

  struct Entry {
    std::string digest;
    std::string target;  // empty: damaged
    uint64_t bytes = 0;
    int64_t used_at_s = 0;  // Unix time of the last use
  };
  Result<std::vector<Entry>> entries() const;          // most recently used first
  Result<uint64_t> clear() { return files_.clear(); }  // bytes freed

  const std::filesystem::path& folder() const { return files_.folder(); }
  uint64_t limit_bytes() const { return files_.limit_bytes(); }

 private:
  explicit KernelCache(KeptFiles files) : files_(std::move(files)) {}
  // The content of the key's entry, if it is sound.
  std::optional<std::string> open_entry(const std::string& digest);
  Result<std::filesystem::path> write(const KernelKey& key, std::string_view built, bool last_wins);

  KeptFiles files_;
};

// The cache in this folder; absent if none is asked for, or if it can't be used, which leaves a
// line in `notes`.
std::optional<KernelCache> open_kernel_cache(const std::optional<std::filesystem::path>& folder,
                                             std::vector<std::string>& notes);

}  // namespace assay::engine
