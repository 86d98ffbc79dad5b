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
  std::string target;    // "cpu", "sm_90a"
  std::string compiler;  // identity: path, version, hash, and the processor that native means
  std::string flags;
  std::string digest() const;  // 64 hexadecimal digits
};

class KernelCache {
 public:
  static constexpr uint64_t kDefaultLimitBytes = uint64_t{512} << 20;

  // $ASSAY_KERNEL_CACHE, else $XDG_CACHE_HOME/assay/kernels, else ~/.cache/assay/kernels.
  static std::filesystem::path default_folder();
  // Makes the folder, 0700. A folder that others may write to is refused: code is loaded from it.
  static Result<KernelCache> open(std::filesystem::path folder,
                                  uint64_t limit_bytes = kDefaultLimitBytes);

  // The file of this key, its content checked against the hash beside it; a damaged one is removed
  // and counts as absent. Marks it as used.
  std::optional<std::filesystem::path> find(const KernelKey& key);
  // Takes over `built` (by rename where it can); the oldest used go until the limit holds, but
  // never the new one. Two writers of one key: the last wins, both results are whole.
  Result<std::filesystem::path> add(const KernelKey& key, const std::filesystem::path& built);

  struct Entry {
    std::string digest;
    std::string target;
    uint64_t bytes = 0;
    int64_t used_at_s = 0;  // Unix time of the last use
  };
  Result<std::vector<Entry>> entries() const;  // most recently used first
  Result<uint64_t> clear();                    // bytes freed; left-overs of killed writers too

  const std::filesystem::path& folder() const { return folder_; }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  KernelCache(std::filesystem::path folder, uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}
  std::filesystem::path folder_;
  uint64_t limit_bytes_ = 0;
};

}  // namespace assay::engine
