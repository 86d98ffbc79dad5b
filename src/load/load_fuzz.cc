// Files of requests and traces from anywhere: nothing may crash, and what is read can be summed up.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "load/load_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t half = bytes.find("\n\n");
  const std::string_view times =
      half == std::string_view::npos ? std::string_view() : bytes.substr(half + 2);
  (void)parse_load_trace(bytes, "trace");
  const auto requests = parse_requests(bytes.substr(0, half + 1), times, "requests");
  if (!requests) return 0;
  std::vector<SentRequest> sent;
  for (const LoadedRequest& one : *requests) sent.push_back(one.request);
  OfferedLoad load;
  load.point.rate = 1;
  load.duration_s = 10;
  (void)load_run_figures(load, {.ttft_ms = 1}, sent);
  load.point = {.concurrency = 3};
  (void)load_run_figures(load, {}, sent);
  return 0;
}
