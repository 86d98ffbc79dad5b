// Compiled kernels on disk, shared by every process of a user: written then renamed, so that a kill
// at any moment leaves whole files or none, and bounded in size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/descriptor.h"
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
  // Older temporary files are those of a killed writer.
  static constexpr int64_t kLeftoverAgeS = 3600;

  // $ASSAY_KERNEL_CACHE, else $XDG_CACHE_HOME/assay/kernels, else ~/.cache/assay/kernels. Empty if
  // there is no home either: open() refuses that.
  static std::filesystem::path default_folder();
  // Makes the folder, 0700. bad_input for one that others may write to, or that is neither this
  // user's nor root's (a link to it likewise): code is loaded from it. The folder that was checked
  // is the one used from then on, even if another comes to stand at that path.
  static Result<KernelCache> open(std::filesystem::path folder,
                                  uint64_t limit_bytes = kDefaultLimitBytes);

  // The file of this key, by a path that is good for this process while the cache or a copy of it
  // lives, its content checked against the hash in it; a damaged one is removed and counts as
  // absent. One that others may write to, or that is neither this user's nor root's, is refused:
  // it stays, counts as absent, and take_refusal() says so. Marks the file as used. Another process
  // of this user may remove the file at any time.
  std::optional<std::filesystem::path> find(const KernelKey& key);
  // The same, as the bytes that add() was given.
  std::optional<std::string> read(const KernelKey& key);
  // The oldest used go until the limit holds, but never the new one. Other processes that add at
  // the same time may exceed it until one of them adds again. Two writers of one key: the last
  // wins, both results are whole.
  Result<std::filesystem::path> add(const KernelKey& key, std::string_view built);
  // If two write one key, the first wins. The entry that every reader finds from now on: `built`,
  // or the one that was there.
  Result<std::string> add_first(const KernelKey& key, std::string_view built);
  void remove(const KernelKey& key);  // one that turned out to be of no use
  // One line about the entry that find() or read() refused last; empty: none since the last call.
  std::string take_refusal() { return std::exchange(refusal_, ""); }

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
  KernelCache(std::filesystem::path folder, Descriptor opened, uint64_t limit_bytes);
  // The content of the key's entry, if it is sound.
  std::optional<std::string> open_entry(const std::string& digest);
  Result<std::filesystem::path> write(const KernelKey& key, std::string_view built, bool last_wins);
  std::filesystem::path file_of(const std::string& digest) const;
  void hold_limit(const std::filesystem::path& newest, uint64_t newest_bytes);

  std::filesystem::path folder_;  // as errors name it
  std::shared_ptr<const Descriptor> opened_;
  std::filesystem::path at_;  // the folder by its descriptor
  uint64_t limit_bytes_ = 0;
  std::string refusal_;
  // Bytes of all entries at the last look and of later add()s; absent before the first add().
  std::optional<uint64_t> known_bytes_;
};

// The cache in this folder; absent if none is asked for, or if it can't be used, which leaves a
// line in `notes`.
std::optional<KernelCache> open_kernel_cache(const std::optional<std::filesystem::path>& folder,
                                             std::vector<std::string>& notes);

}  // namespace assay::engine
