// Whole lines over a pair of descriptors, for the worker's side of the protocol.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

class LineStream {
 public:
  // The descriptors stay the caller's.
  LineStream(int read_fd, int write_fd, size_t max_line_bytes)
      : read_fd_(read_fd), write_fd_(write_fd), max_line_bytes_(max_line_bytes) {}

  // Blocks. Absent at the end of the stream; a last line that the peer didn't end is dropped.
  // environment_error for a read error and for a line that is too long.
  Result<std::optional<std::string>> read_line();
  // Blocks until all of `text` is written; ends no line by itself. environment_error: a write
  // error, such as a peer that is gone (the program ignores SIGPIPE).
  Status write(std::string_view text);

 private:
  int read_fd_;
  int write_fd_;
  size_t max_line_bytes_;
  std::string buffer_;
};

}  // namespace assay
