// The output of a worker's process. One worker serves many cells, and each cell's stderr.log gets
// the part that was printed while the cell was measured: whole, unless the worker floods it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/files/descriptor.h"
#include "base/result.h"

namespace assay {

class WorkerLog {
 public:
  // A longer part loses its middle: the first and the last half of so many bytes are kept, because
  // they show a program's begin and the cause of its end.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 20;

  // A file without a name in the system's folder for temporary files, so that nothing stays behind
  // if we are killed; environment_error if there is no room.
  static Result<WorkerLog> create();

  // A path by which the worker's output_file can be opened, as long as this object lives.
  std::filesystem::path path() const;
  // Gives back the file's space beyond a few times kMostBytes: to be called now and then while the
  // worker runs.
  void bound();
  // Hands over, piece by piece, the output since the last call: whole, or the two halves of
  // `most_bytes` (at most kMostBytes) with a line between them that says how many bytes are missing
  // there. Returns that number. An error of `take` ends it.
  Result<uint64_t> move_to(const std::function<Status(std::string_view)>& take,
                           uint64_t most_bytes = kMostBytes);
  bool has_more() const;
  int descriptor() const { return file_.get(); }

 private:
  explicit WorkerLog(Descriptor file) : file_(std::move(file)) {}
  uint64_t size_bytes() const;
  void forget(uint64_t begin, uint64_t end);
  Status copy(uint64_t begin, uint64_t end, const std::function<Status(std::string_view)>& take);

  Descriptor file_;
  uint64_t moved_bytes_ = 0;
  uint64_t tail_ = 0;  // end of the middle that the unmoved part has lost; 0: it is whole
};

}  // namespace assay
