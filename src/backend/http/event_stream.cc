// Lines end with CR, LF or both, as the standard of server-sent events has them.
#include "backend/http/event_stream.h"

#include <fmt/format.h>

#include <utility>

namespace assay {

HttpResult<void> EventStream::take(std::string_view bytes, const OnEvent& on_event) {
  while (!bytes.empty()) {
    if (after_return_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    const size_t end = bytes.find_first_of(form_ == StreamForm::kJsonLines ? "\n" : "\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + data_.size() + part.size() > most_bytes_) {
      return http_failure(
          http_class::kTooLong,
          fmt::format("expected events of at most {} bytes, found more", most_bytes_));
    }
    line_ += part;
    if (end == std::string_view::npos) return {};
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (auto ended = end_line(on_event); !ended) return ended;
  }
  return {};
}

HttpResult<void> EventStream::end_line(const OnEvent& on_event) {
  const std::string line = std::exchange(line_, {});
  if (form_ == StreamForm::kJsonLines) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return {};
    return on_event(line);
  }
  if (line.empty()) {
    const std::string event = std::exchange(data_, {});
    return std::exchange(has_data_, false) ? on_event(event) : HttpResult<void>();
  }
  constexpr std::string_view kData = "data:";
  // Others are comments, an event's name or number.
  if (!line.starts_with(kData)) return {};
  std::string_view value = std::string_view(line).substr(kData.size());
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
  return {};
}

}  // namespace assay
