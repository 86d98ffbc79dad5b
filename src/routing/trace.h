// A trace of requests: read from a file, or made from a seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

// A batch that arrives as one request.
struct TraceRequest {
  double arrival_s = 0;       // from 0 on, never before the request above it
  int64_t prompt_tokens = 1;  // of each row of the batch
  int64_t new_tokens = 0;     // 0: the prompt alone
  int64_t batch = 1;
  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

inline constexpr size_t kMostRequests = 1'000'000;
inline constexpr double kMostArrivalSeconds = 1e9;

// CSV with the columns arrival_s, prompt_tokens, new_tokens and batch, in any order. bad_input,
// with the line: another header, a number that isn't one or is out of range, a request that arrives
// before the one above it, none at all or more than kMostRequests.
Result<std::vector<TraceRequest>> parse_trace(std::string_view text, std::string_view object);
Result<std::vector<TraceRequest>> read_request_trace(const std::filesystem::path& path);
// The line with which trace_to_csv() begins.
inline constexpr std::string_view kTraceHeader = "arrival_s,prompt_tokens,new_tokens,batch";
std::string trace_to_csv(const std::vector<TraceRequest>& trace);

// First 16 hex digits of the SHA-256 of trace_to_csv().
std::string trace_hash(const std::vector<TraceRequest>& trace);

struct TraceRecipe {
  int64_t requests = 1000;
  double rate_per_s = 10;  // requests a second, on average
  // Bursts of this many requests on average (geometric) that begin as a Poisson process and whose
  // requests follow one another at 20 times the rate; 1: every request arrives by itself (Poisson).
  double burst = 1;
  // Log-normal lengths, rounded and kept within the bounds; sigma 0: all the same.
  double prompt_median = 80;
  double prompt_sigma = 0.8;
  int64_t shortest = 1;
  int64_t longest = 4096;
  double new_median = 64;
  double new_sigma = 0;
  std::vector<int64_t> batches = {1};  // each as likely as the others
  uint64_t seed = 42;
};

// The same recipe gives the same trace on every machine.
std::vector<TraceRequest> make_trace(const TraceRecipe& recipe);

}  // namespace assay
