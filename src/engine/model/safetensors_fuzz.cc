// Any bytes as a safetensors file: entries of an accepted one lie within it and don't overlap.
#include <cstdlib>

#include "engine/model/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::engine;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto entries = parse_safetensors_header(bytes, size, "fuzz");
  if (!entries) {
    if (entries.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : *entries) {
    if (entry.begin > entry.end || entry.end > size) std::abort();
    if (end != 0 && entry.begin != end) std::abort();
    end = entry.end;
    uint64_t sum = 0;
    for (uint64_t i = entry.begin; i < entry.end; ++i) sum += data[i];  // an over-read shows here
    if (sum > 255 * (entry.end - entry.begin)) std::abort();
  }
  return 0;
}
