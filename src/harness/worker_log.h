// What a worker prints, kept whole: one worker serves many cells, and each cell's stderr.log gets
// the part that was printed while it was measured.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/result.h"

namespace assay {

class WorkerLog {
 public:
  // A new file in the system's folder for temporary files; environment_error if there is no room.
  static Result<WorkerLog> create();
  WorkerLog(WorkerLog&& other) noexcept;
  WorkerLog& operator=(WorkerLog&&) noexcept;
  ~WorkerLog();

  const std::filesystem::path& path() const { return path_; }
  // The worker holds the file open: its name can go, so that nothing stays behind if we are killed.
  void forget_name();
  // Appends to `out` what was printed since the last call.
  Status move_to(AppendFile& out);
  bool has_more() const;

 private:
  WorkerLog(Descriptor file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Descriptor file_;
  std::filesystem::path path_;  // empty once forgotten
  uint64_t moved_bytes_ = 0;
};

}  // namespace assay
