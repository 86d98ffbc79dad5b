// A user's private folder of files that the program would otherwise make again: written then
// renamed, so that a kill at any moment leaves whole files or none, and bounded in size.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/descriptor.h"
#include "base/result.h"

namespace assay {

// Files of one kind. Several kinds may share a folder.
struct KeptKind {
  std::string_view suffix;  // of their names, behind 64 hexadecimal digits
  std::string_view one;     // "a kernel": for errors
  std::string_view many;    // "compiled kernels"
  std::string_view trust;   // why nobody else may write to them: "code is loaded from it"
};

// A file that is being written beside those of the folder, under a name of its own. It goes with
// the object.
class KeptDraft {
 public:
  KeptDraft(KeptDraft&&) = default;
  KeptDraft& operator=(KeptDraft&&) = delete;
  ~KeptDraft();
  int descriptor() const { return file_.get(); }  // open for reading and writing

 private:
  friend class KeptFiles;
  KeptDraft(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Descriptor file_;
  std::string path_;
};

// A value: copies work on the same folder. One of them is for one thread at a time; threads and
// processes with a copy each may do anything at once.
class KeptFiles {
 public:
  static constexpr size_t kDigestDigits = 64;
  // Older drafts are those of a killed writer.
  static constexpr int64_t kLeftoverAgeS = 3600;

  // Makes the folder, 0700. bad_input for one that others may write to, or that is neither this
  // user's nor root's (a link to it likewise). The folder that was checked is the one used from
  // then on, even if another comes to stand at that path.
  static Result<KeptFiles> open(std::filesystem::path folder, KeptKind kind, uint64_t limit_bytes);

  // The file of a digest by a path that is good for this process while the object or a copy of it
  // lives, and as errors name it.
  std::filesystem::path path(std::string_view digest) const;
  std::filesystem::path shown(std::string_view digest) const;

  // The regular file of this digest, for reading; else one that isn't open. One that others may
  // write to, or that is neither this user's nor root's, is refused: it stays, counts as absent,
  // and take_refusal() says so. Another process of this user may remove the file at any time.
  Descriptor find(std::string_view digest);
  // One line about the file that find() refused last; empty: none since the last call.
  std::string take_refusal() { return std::exchange(refusal_, ""); }
  bool has_refused() const { return !refusal_.empty(); }
  void mark_used(std::string_view digest) const;
  void remove(std::string_view digest) const;
  // Removes drafts that nobody writes any more: a process was ended that had begun one.
  void drop_abandoned() const;

  // An environment_error if the folder takes no file.
  Result<KeptDraft> draft(std::string_view digest) const;
  // Gives a draft of so many bytes its name: if two write one digest, the last wins, or the first.
  // The oldest used files go until the limit holds, but never the new one. Other processes that
  // keep files at the same time may exceed it until one of them keeps a file again.
  Status keep(KeptDraft draft, std::string_view digest, uint64_t bytes, bool last_wins);

  struct Found {
    std::string digest;
    std::filesystem::path path;
    uint64_t bytes = 0;
    timespec used{};  // by mark_used(), or when it was kept
  };
  Result<std::vector<Found>> list() const;  // the latest used first
  // Bytes freed. Drafts of any kind go too, which a writer at this moment reports as a failure.
  Result<uint64_t> clear();

  const std::filesystem::path& folder() const { return folder_; }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  KeptFiles(std::filesystem::path folder, Descriptor opened, KeptKind kind, uint64_t limit_bytes);
  // Regular files of this kind, or drafts: a folder or a link is nobody's, whatever its name. A
  // file that others remove meanwhile is left out.
  Result<std::vector<Found>> files(bool drafts) const;
  void hold_limit(const std::filesystem::path& newest, uint64_t newest_bytes);

  KeptKind kind_;
  std::filesystem::path folder_;  // as errors name it
  std::shared_ptr<const Descriptor> opened_;
  std::filesystem::path at_;  // the folder by its descriptor
  uint64_t limit_bytes_ = 0;
  std::string refusal_;
  // Bytes of all files at the last look and of those kept since; absent before the first keep().
  std::optional<uint64_t> known_bytes_;
};

}  // namespace assay
