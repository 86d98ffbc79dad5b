// The load that one run offers to a server: how many requests, when, and of which lengths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/records/enum_words.h"
#include "base/records/record.h"
#include "base/result.h"

namespace assay {

// Times between two requests of an open loop.
enum class Arrivals {
  kPoisson,   // exponential, as of many users who know nothing of one another
  kConstant,  // all the same
};
template <>
struct EnumWords<Arrivals> {
  static constexpr Arrivals kAll[] = {Arrivals::kPoisson, Arrivals::kConstant};
  static std::string_view name(Arrivals arrivals) {
    return arrivals == Arrivals::kPoisson ? "poisson" : "constant";
  }
};

// One point of a load curve: exactly one member is there.
struct LoadPoint {
  // Closed loop: so many requests in flight; the next is sent as soon as one has ended.
  std::optional<int64_t> concurrency = {};
  std::optional<double> rate = {};   // open loop: requests a second, whatever becomes of them
  std::optional<double> speed = {};  // a trace's times divided by this

  friend bool operator==(const LoadPoint&, const LoadPoint&) = default;
};
// "4 at once", "2.5 a second", "trace x2".
std::string load_point_name(const LoadPoint& point);

// Numbers of tokens to draw from: evenly out of `values` where there are any; else, with a mean,
// normal and cut to [least, most]; else evenly within [least, most].
struct TokenLengths {
  std::vector<int64_t> values = {};
  std::optional<double> mean = {};
  std::optional<double> deviation = {};
  int64_t least = 1;
  int64_t most = 1;

  friend bool operator==(const TokenLengths&, const TokenLengths&) = default;
};
// The mean of what is drawn, rounded; of a normal distribution before it is cut.
int64_t mean_length(const TokenLengths& lengths);
int64_t longest_length(const TokenLengths& lengths);

// A request of a trace.
struct TracedRequest {
  double at_s = 0;  // from the trace's beginning
  int64_t prompt_tokens = 1;
  int64_t new_tokens = 1;

  friend bool operator==(const TracedRequest&, const TracedRequest&) = default;
};

struct OfferedLoad {
  LoadPoint point;
  Arrivals arrivals = Arrivals::kPoisson;
  // A run ends with the first of these; of a trace's run both are absent.
  std::optional<double> duration_s = {};  // no request is sent later
  std::optional<int64_t> requests = {};
  TokenLengths prompt_tokens = {};
  TokenLengths new_tokens = {};
  // Requests of a session: each further one asks with all before it, their answers and a prompt of
  // its own, and is due as soon as the one before it has ended. `concurrency` is of sessions;
  // `rate` stays that of requests, so that sessions begin at `rate` / `turns`.
  int64_t turns = 1;
  std::vector<TracedRequest> trace = {};  // by time; not empty for a point with `speed`
  uint64_t seed = 0;                      // lengths and arrivals follow from it

  friend bool operator==(const OfferedLoad&, const OfferedLoad&) = default;
};

// Bounds that a request has to keep to count as served well; absent: none.
struct ServiceBounds {
  std::optional<double> ttft_ms = {};     // from the scheduled time to the first token
  std::optional<double> itl_ms = {};      // mean gap between its tokens
  std::optional<double> latency_ms = {};  // from the scheduled time to the last token

  bool any() const { return ttft_ms || itl_ms || latency_ms; }
  friend bool operator==(const ServiceBounds&, const ServiceBounds&) = default;
};

// Most requests of a run: its rows stay in memory.
inline constexpr int64_t kMostLoadRequests = 1'000'000;
inline constexpr int64_t kMostConcurrency = 20'000;
inline constexpr size_t kMostTraced = 100'000;
inline constexpr int64_t kMostTurns = 1000;

// Until the last request is due, in s; absent for a closed loop whose end depends on the server.
std::optional<double> schedule_seconds(const OfferedLoad& load);

// Why no run can offer this load, "expected ..., found ..."; empty: one can.
std::string wrong_load(const OfferedLoad& load);

// Requests of a trace, by time. CSV of `assay route make-trace` (arrival_s, prompt_tokens,
// new_tokens), of the Azure traces (TIMESTAMP in seconds or as date and time, ContextTokens,
// GeneratedTokens), or JSON lines as Mooncake has them (timestamp in ms, input_length,
// output_length); further columns are left alone. bad_input names the line.
Result<std::vector<TracedRequest>> parse_load_trace(std::string_view text, std::string_view object);

template <>
struct Record<LoadPoint> {
  static constexpr auto kMembers = std::tuple(
      field_if_known("concurrency", &LoadPoint::concurrency),
      field_if_known("rate", &LoadPoint::rate), field_if_known("speed", &LoadPoint::speed));
};
template <>
struct Record<TokenLengths> {
  static constexpr auto kMembers =
      std::tuple(field("values", &TokenLengths::values), field("mean", &TokenLengths::mean),
                 field("deviation", &TokenLengths::deviation), field("least", &TokenLengths::least),
                 field("most", &TokenLengths::most));
};
template <>
struct Record<TracedRequest> {
  static constexpr bool kIsArray = true;
  static constexpr auto kMembers = std::tuple(field("at_s", &TracedRequest::at_s),
                                              field("prompt_tokens", &TracedRequest::prompt_tokens),
                                              field("new_tokens", &TracedRequest::new_tokens));
};
template <>
struct Record<OfferedLoad> {
  static constexpr auto kMembers = std::tuple(
      field("point", &OfferedLoad::point), field("arrivals", &OfferedLoad::arrivals),
      field_if_known("duration_s", &OfferedLoad::duration_s),
      field_if_known("requests", &OfferedLoad::requests),
      field("prompt_tokens", &OfferedLoad::prompt_tokens),
      field("new_tokens", &OfferedLoad::new_tokens), field_may_lack("turns", &OfferedLoad::turns),
      field("trace", &OfferedLoad::trace), field("seed", &OfferedLoad::seed));
};
template <>
struct Record<ServiceBounds> {
  static constexpr auto kMembers =
      std::tuple(field("ttft_ms", &ServiceBounds::ttft_ms), field("itl_ms", &ServiceBounds::itl_ms),
                 field("latency_ms", &ServiceBounds::latency_ms));
};

}  // namespace assay
