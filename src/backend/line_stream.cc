// Blocking line input and whole writes.
#include "backend/line_stream.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace assay {

Result<std::optional<std::string>> LineStream::read_line() {
  size_t searched = 0;
  while (true) {
    if (const size_t end = buffer_.find('\n', searched); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    searched = buffer_.size();
    if (searched > max_line_bytes_) {
      return environment_error("request stream: expected lines of at most {} bytes",
                               max_line_bytes_);
    }
    std::array<char, 65536> chunk;
    const ssize_t got = ::read(read_fd_, chunk.data(), chunk.size());
    if (got == 0) return std::nullopt;
    if (got < 0 && errno != EINTR) {
      return environment_error("request stream: {}", std::strerror(errno));
    }
    if (got > 0) buffer_.append(chunk.data(), static_cast<size_t>(got));
  }
}

Status LineStream::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(write_fd_, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) {
      return environment_error("reply stream: {}", std::strerror(errno));
    }
    if (wrote > 0) text.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

}  // namespace assay
