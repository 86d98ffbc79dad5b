// The figures of one run under load, over the requests that came while it was steady.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "load/offered_load.h"
#include "load/sent_request.h"

namespace assay {

// Share of a run's schedule that is cut at its beginning (warm-up) and at its end (cool-down).
inline constexpr double kCutShare = 0.1;

// Requests scheduled in [begin, end) count. Both ends are cut by kCutShare of the schedule, and the
// window doesn't begin while the server still fills: before all of a closed loop's first
// `concurrency` requests have ended, or half of those that an open loop's first part has due.
struct LoadWindow {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  double seconds() const { return static_cast<double>(end_ns - begin_ns) / 1e9; }
  bool holds(int64_t at_ns) const { return at_ns >= begin_ns && at_ns < end_ns; }
};
// Absent: nothing is left between the cuts.
std::optional<LoadWindow> load_window(const OfferedLoad& load, std::span<const SentRequest> sent);

// A sample in ms. A quantile is there where the sample holds an observation beyond it on average:
// p99 from 100 on.
struct LoadSpread {
  int64_t count = 0;
  double mean = 0;
  std::optional<double> p50 = {};
  std::optional<double> p95 = {};
  std::optional<double> p99 = {};
  double most = 0;
};
// Absent: there are no values. They are sorted.
std::optional<LoadSpread> load_spread(std::vector<double>& values);

struct LoadRunFigures {
  LoadWindow window;
  int64_t requests = 0;                        // scheduled in the window
  int64_t ok = 0;                              // of them
  std::map<std::string, int64_t> failed = {};  // of them, by class
  double offered_per_s = 0;                    // scheduled in the window, a second
  double requests_per_s = 0;                   // ok ones whose last token came in the window
  double tokens_per_s = 0;                     // of ok requests, that came in the window
  // Times of the window's ok requests, from their scheduled times.
  std::optional<LoadSpread> latency_ms = {};
  std::optional<LoadSpread> ttft_ms = {};
  std::optional<LoadSpread> tpot_ms = {};  // from the first token to the last, for each further one
  std::optional<LoadSpread> itl_ms = {};   // between neighbouring events with tokens
  // Share of the window's requests that are ok and within all bounds, and such requests a second
  // that ended in the window; absent: there are no bounds.
  std::optional<double> within_bounds = {};
  std::optional<double> good_per_s = {};
  std::optional<LoadSpread> late_ms = {};  // from a request's scheduled time until it was sent
  // Share of the ok requests' prompt tokens that the server had in its cache; absent: it never
  // says.
  std::optional<double> cached = {};
  double in_flight = 0;        // mean over the window
  int64_t most_in_flight = 0;  // scheduled and not ended, at any time of the run
  bool queue_grows = false;    // grows_within()
};

// Absent where load_window() is, or no request is scheduled in it. An answer's events share its
// tokens evenly.
std::optional<LoadRunFigures> load_run_figures(const OfferedLoad& load, const ServiceBounds& bounds,
                                               std::span<const SentRequest> sent);

// Requests in flight (scheduled and not ended) at the middles of so many equal parts of the window.
std::vector<double> in_flight_over(const LoadWindow& window, std::span<const SentRequest> sent,
                                   size_t parts);
// True if requests come faster than the server ends them: the changes of the number in flight over
// the window's ten tenths are on average above 0 (one-sided t test at 5 %, so that the wandering
// queue of a server that only just keeps up seldom passes), the last third has at least 1.5 times
// the first third's number in flight and two requests more, and its requests take at least 1.5
// times as long (so that a trace whose rate rises is no growing queue by itself). Means over such a
// run depend on how long it was. False where a third has a length of 0 ns.
bool grows_within(const LoadWindow& window, std::span<const SentRequest> sent);

// Most by which sends may be late before a run says nothing: the larger of 10 ms and 5 % of the
// mean latency, for 99 % of its requests.
double lateness_bound_ms(const LoadRunFigures& figures);

}  // namespace assay
