// Fuzzes both parsers: a message that parses must survive a round trip through its own text.
#include <cstdlib>

#include "backend/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  if (const auto request = assay::parse_request(line)) {
    std::string text = assay::format_request(*request);
    text.pop_back();
    if (!assay::parse_request(text)) std::abort();
  }
  if (const auto reply = assay::parse_reply(line)) {
    std::string text = assay::format_reply(*reply);
    text.pop_back();
    if (!assay::parse_reply(text)) std::abort();
  }
  return 0;
}
