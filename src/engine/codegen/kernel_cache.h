// Compiled kernels on disk, shared by every process of a user: written then renamed, so that a kill
// at any moment leaves whole files or none, and bounded in size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::engine {

// What a compiled kernel depends on; its SHA-256 is the file's name.
struct KernelKey {
  std::string source;
  std::string target;    // "cpu", "sm_90a": a word
  std::string compiler;  // identity: path, version, hash, and the processor that native means
  std::string flags;
  std::string digest() const;  // 64 hexadecimal digits
};

// An entry is one file: what the compiler made, then a line with key, target and the SHA-256 of all
// before it. One file, so that its rename is the commit; at the end, so that the dynamic loader,
// which reads no further than an object's own tables say, takes the file as it is.
//
// A value: copies work on the same folder. One of them is for one thread at a time; threads and
// processes with a copy each may do anything at once.
class KernelCache {
 public:
  static constexpr uint64_t kDefaultLimitBytes = uint64_t{512} << 20;
  // Older temporary files are those of a killed writer.
  static constexpr int64_t kLeftoverAgeS = 3600;

  // $ASSAY_KERNEL_CACHE, else $XDG_CACHE_HOME/assay/kernels, else ~/.cache/assay/kernels. Empty
  // where there is no home either: open() refuses that.
  static std::filesystem::path default_folder();
  // Makes the folder, 0700. bad_input for one that others may write to or that isn't this user's:
  // code is loaded from it.
  static Result<KernelCache> open(std::filesystem::path folder,
                                  uint64_t limit_bytes = kDefaultLimitBytes);

  // The file of this key, its content checked against the hash in it; a damaged one is removed and
  // counts as absent. Marks it as used. Another process may remove the file at any time.
  std::optional<std::filesystem::path> find(const KernelKey& key);
  // The same, as the bytes that add() was given.
  std::optional<std::string> read(const KernelKey& key);
  // The oldest used go until the limit holds, but never the new one. Other processes that add at
  // the same time may exceed it until one of them adds again. Two writers of one key: the last
  // wins, both results are whole.
  Result<std::filesystem::path> add(const KernelKey& key, std::string_view built);
  // Of two writers the first wins: what every reader finds from now on, `built` or what is there.
  Result<std::string> add_first(const KernelKey& key, std::string_view built);
  void remove(const KernelKey& key);  // one that turned out to be of no use

  struct Entry {
    std::string digest;
    std::string target;  // empty: damaged
    uint64_t bytes = 0;
    int64_t used_at_s = 0;  // Unix time of the last use
  };
  Result<std::vector<Entry>> entries() const;  // most recently used first
  // Bytes freed. Temporary files go too, which a writer at this moment reports as a failed add().
  Result<uint64_t> clear();

  const std::filesystem::path& folder() const { return folder_; }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  KernelCache(std::filesystem::path folder, uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}
  Result<std::filesystem::path> write(const KernelKey& key, std::string_view built, bool last_wins);
  std::filesystem::path file_of(const std::string& digest) const;
  void hold_limit(const std::filesystem::path& newest, uint64_t newest_bytes);

  std::filesystem::path folder_;
  uint64_t limit_bytes_ = 0;
  // All entries at the last look, and what was added here since; absent before the first add().
  std::optional<uint64_t> known_bytes_;
};

// The cache in this folder; absent where none is asked for, or it can't be used, which leaves a
// line in `notes`.
std::optional<KernelCache> open_kernel_cache(const std::optional<std::filesystem::path>& folder,
                                             std::vector<std::string>& notes);

}  // namespace assay::engine
