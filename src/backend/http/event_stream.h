// The events of a streamed body, cut out of bytes that come in pieces of any size.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "backend/http/http_failure.h"

namespace assay {

enum class StreamForm {
  kServerSentEvents,  // "data: ..." lines up to an empty one, as in the HTML standard
  kJsonLines,         // an event a line
};

class EventStream {
 public:
  EventStream(StreamForm form, size_t most_bytes) : form_(form), most_bytes_(most_bytes) {}

  // Calls with each event that these bytes complete, in order; stops at a failure, which it
  // returns. A line, or an event of several, longer than `most_bytes` is a failure.
  using OnEvent = std::function<HttpResult<void>(std::string_view event)>;
  HttpResult<void> take(std::string_view bytes, const OnEvent& on_event);
  // True if no event is begun: the stream may end here.
  bool between_events() const { return line_.empty() && data_.empty(); }

 private:
  HttpResult<void> end_line(const OnEvent& on_event);

  StreamForm form_;
  size_t most_bytes_;
  std::string line_;  // so far
  std::string data_;  // of the event so far, without its last line end
  bool has_data_ = false;
  bool after_return_ = false;  // a line feed now belongs to the last line's end
};

}  // namespace assay
