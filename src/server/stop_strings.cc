#include "server/stop_strings.h"

#include <algorithm>
#include <utility>

namespace assay::server {

std::string StopStrings::push(std::string_view text) {
  if (found_) return "";
  held_ += text;
  size_t first = std::string::npos, possible = held_.size();
  for (const std::string& stop : stops_) {
    if (stop.empty()) continue;
    first = std::min(first, held_.find(stop));
    // The longest end of the text that begins the string.
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > 0; --length) {
      if (!std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) continue;
      possible = std::min(possible, held_.size() - length);
      break;
    }
  }
  found_ = first != std::string::npos;
  std::string certain = held_.substr(0, found_ ? first : possible);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() {
  return found_ ? "" : std::exchange(held_, "");
}

}  // namespace assay::server
