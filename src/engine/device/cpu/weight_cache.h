// Packed weights on disk beside the compiled kernels, mapped by every process that would pack the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/kept_files.h"
#include "base/files/mapped_file.h"
#include "base/result.h"
#include "engine/memory/huge_memory.h"

namespace assay::engine {

// A file has to hold all of this to be the one that is looked for.
struct WeightFileKey {
  std::string digest;  // of everything that its bytes depend on: 64 hexadecimal digits
  std::string label;   // a word for people, which the digest covers
  uint64_t bytes = 0;  // of the weights
};

// A file that is being written, from its start to its end.
class WeightFile {
 public:
  // Memory for the file's next bytes, to be filled before the next call. An environment_error if
  // memory or the disk ends.
  Result<std::byte*> next(size_t bytes);
  Status skip_to(uint64_t at);  // zeros in between

 private:
  friend class WeightCache;
  WeightFile(KeptDraft draft, std::filesystem::path shown)
      : draft_(std::move(draft)), shown_(std::move(shown)) {}
  Status write(size_t bytes);  // of the memory, which begins with the others then

  KeptDraft draft_;
  std::filesystem::path shown_;
  uint64_t written_ = 0;
  HugeMemory memory_;
  size_t used_ = 0;  // of the memory
};

// An entry is one file: the weights, then a line with key, size and label, which has to be there to
// the letter. The weights themselves are not read over: they were on the device before the file got
// its name, and are as safe there as the checkpoint's. Copies and threads as KeptFiles has them.
class WeightCache {
 public:
  static constexpr uint64_t kDefaultLimitBytes = uint64_t{32} << 30;

  // KeptFiles::open().
  static Result<WeightCache> open(std::filesystem::path folder,
                                  uint64_t limit_bytes = kDefaultLimitBytes);

  // The file of this key, its weights first. Absent if there is none: one that is damaged is
  // removed. Marks the file as used.
  std::optional<MappedFile> find(const WeightFileKey& key);
  // An environment_error where the file would exceed the limit by itself, or take more than half of
  // the disk's free space.
  Result<WeightFile> begin(const WeightFileKey& key) const;
  // Gives the file its name, once it holds all weights. The oldest used files go until the limit
  // holds; processes that have mapped one keep it.
  Result<MappedFile> keep(WeightFile file, const WeightFileKey& key);
  std::string take_refusal() { return files_.take_refusal(); }

  struct Entry {
    std::string digest;
    std::string label;  // empty: damaged
    uint64_t bytes = 0;
    int64_t used_at_s = 0;  // Unix time of the last use
  };
  Result<std::vector<Entry>> entries() const;          // the latest used first
  Result<uint64_t> clear() { return files_.clear(); }  // bytes freed
  uint64_t limit_bytes() const { return files_.limit_bytes(); }

 private:
  explicit WeightCache(KeptFiles files) : files_(std::move(files)) {}

  KeptFiles files_;
};

}  // namespace assay::engine
