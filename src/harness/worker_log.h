// What a worker prints, kept whole: one worker serves many cells, and each cell's stderr.log gets
// the part that was printed while it was measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"

namespace assay {

class WorkerLog {
 public:
  // A file without a name in the system's folder for temporary files, so that nothing stays behind
  // if we are killed; environment_error if there is no room.
  static Result<WorkerLog> create();

  // Where the worker's output_file can open it, as long as this object lives.
  std::filesystem::path path() const;
  // Hands over, piece by piece, what was printed since the last call; an error of `take` ends it.
  Status move_to(const std::function<Status(std::string_view)>& take);
  bool has_more() const;
  int descriptor() const { return file_.get(); }

 private:
  explicit WorkerLog(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
  uint64_t moved_bytes_ = 0;
};

}  // namespace assay
