// Any bytes as a trace: an error or a trace that reads back as it was, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "routing/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const auto trace = parse_trace({reinterpret_cast<const char*>(data), size}, "fuzz.csv");
  if (!trace) return 0;
  const auto again = parse_trace(trace_to_csv(*trace), "again.csv");
  if (!again || again->size() != trace->size()) std::abort();
  return 0;
}
