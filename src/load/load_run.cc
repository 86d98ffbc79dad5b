// Cuts a run to its steady part and sums that up.
#include "load/load_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "stats/distributions/distributions.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

constexpr int kParts = 10;
constexpr double kGrowthLevel = 0.05;
constexpr double kLeastGrowth = 1.5;
constexpr double kLeastRise = 2;  // requests

double ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// Mean number in flight within [begin, end).
double mean_in_flight(std::span<const SentRequest> sent, int64_t begin_ns, int64_t end_ns) {
  double sum_ns = 0;
  for (const SentRequest& request : sent) {
    const int64_t from = std::max(request.scheduled_ns, begin_ns);
    const int64_t to = std::min(request.end_ns, end_ns);
    sum_ns += static_cast<double>(std::max<int64_t>(to - from, 0));
  }
  return sum_ns / static_cast<double>(end_ns - begin_ns);
}

double in_flight_at(std::span<const SentRequest> sent, int64_t at_ns) {
  return static_cast<double>(std::ranges::count_if(sent, [at_ns](const SentRequest& request) {
    return request.scheduled_ns <= at_ns && request.end_ns > at_ns;
  }));
}

// Mean time from due to end, of the requests due within [begin, end); absent if there are none.
std::optional<double> mean_stay_ns(std::span<const SentRequest> sent, int64_t begin_ns,
                                   int64_t end_ns) {
  std::vector<double> stays;
  for (const SentRequest& request : sent) {
    if (request.scheduled_ns >= begin_ns && request.scheduled_ns < end_ns)
      stays.push_back(static_cast<double>(request.end_ns - request.scheduled_ns));
  }
  return stats::mean(stays);
}

int64_t most_in_flight(std::span<const SentRequest> sent) {
  std::vector<std::pair<int64_t, int>> changes;
  for (const SentRequest& request : sent) {
    changes.emplace_back(request.scheduled_ns, 1);
    changes.emplace_back(request.end_ns, -1);
  }
  std::ranges::sort(changes);  // an end before a beginning at the same time
  int64_t now = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return most;
}

bool within(const ServiceBounds& bounds, const SentRequest& request) {
  const int64_t first = *request.first_token_ns, last = *request.last_token_ns;
  const auto keeps = [](const std::optional<double>& bound, double value) {
    return !bound || value <= *bound;
  };
  return keeps(bounds.ttft_ms, ms(first - request.scheduled_ns)) &&
         keeps(bounds.latency_ms, ms(last - request.scheduled_ns)) &&
         (*request.tokens < 2 ||
          keeps(bounds.itl_ms, ms(last - first) / static_cast<double>(*request.tokens - 1)));
}

// Tokens of the request that came in the window.
double tokens_in(const LoadWindow& window, const SentRequest& request) {
  if (request.token_us.empty()) {
    return window.holds(*request.last_token_ns) ? static_cast<double>(*request.tokens) : 0;
  }
  const auto inside = std::ranges::count_if(request.token_us, [&](int64_t at_us) {
    return window.holds(request.scheduled_ns + at_us * 1000);
  });
  return static_cast<double>(*request.tokens) * static_cast<double>(inside) /
         static_cast<double>(request.token_us.size());
}

}  // namespace

std::optional<LoadWindow> load_window(const OfferedLoad& load, std::span<const SentRequest> sent) {
  if (sent.empty()) return std::nullopt;
  int64_t last_ns = 0;
  for (const SentRequest& request : sent) last_ns = std::max(last_ns, request.scheduled_ns);
  // A run by number is over when its last request is due, one by duration at its time.
  int64_t schedule_ns = last_ns;
  if (load.duration_s && (!load.requests || std::ssize(sent) < *load.requests)) {
    schedule_ns = std::llround(*load.duration_s * 1e9);
  }
  const auto cut = static_cast<int64_t>(kCutShare * static_cast<double>(schedule_ns));
  LoadWindow window{cut, schedule_ns - cut};
  std::vector<int64_t> ends;  // of the requests that find the server empty, or filling
  for (const SentRequest& request : sent) {
    const bool first_round = load.point.concurrency && request.number % load.turns == 0 &&
                             request.number / load.turns < *load.point.concurrency;
    const bool early = load.point.concurrency ? first_round : request.scheduled_ns <= cut;
    if (early) ends.push_back(request.end_ns);
  }
  if (!ends.empty()) {
    const auto place = load.point.concurrency ? ends.size() - 1 : (ends.size() - 1) / 2;
    std::ranges::nth_element(ends, ends.begin() + static_cast<std::ptrdiff_t>(place));
    window.begin_ns = std::max(window.begin_ns, ends[place]);
  }
  if (window.begin_ns >= window.end_ns) return std::nullopt;
  return window;
}

std::optional<LoadSpread> load_spread(std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  LoadSpread spread{.count = std::ssize(values), .most = values.back()};
  spread.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(spread.count);
  spread.p50 = stats::percentile(values, 0.5);
  spread.p95 = stats::percentile(values, 0.95);
  spread.p99 = stats::percentile(values, 0.99);
  return spread;
}

std::vector<double> in_flight_over(const LoadWindow& window, std::span<const SentRequest> sent,
                                   size_t parts) {
  std::vector<double> over(parts);
  const double width =
      static_cast<double>(window.end_ns - window.begin_ns) / static_cast<double>(parts);
  for (size_t i = 0; i < parts; ++i) {
    const auto from = window.begin_ns + std::llround(width * static_cast<double>(i));
    const auto to = window.begin_ns + std::llround(width * static_cast<double>(i + 1));
    if (to > from) over[i] = mean_in_flight(sent, from, to);
  }
  return over;
}

bool grows_within(const LoadWindow& window, std::span<const SentRequest> sent) {
  const auto border = [&](double share) {
    return window.begin_ns +
           std::llround(share * static_cast<double>(window.end_ns - window.begin_ns));
  };
  const auto rises = [](double first, double last) { return last >= kLeastGrowth * first; };

  std::vector<double> changes;
  double before = in_flight_at(sent, window.begin_ns);
  for (int part = 1; part <= kParts; ++part) {
    const double after = in_flight_at(sent, border(part / static_cast<double>(kParts)));
    changes.push_back(after - std::exchange(before, after));
  }
  const auto moments = stats::moments(changes);
  if (!moments || moments->mean <= 0) return false;
  const double error = std::sqrt(moments->variance / kParts);
  if (error > 0) {
    const auto tail = stats::student_t_upper(moments->mean / error, kParts - 1);
    if (!tail || tail->p > kGrowthLevel) return false;
  }
  const int64_t first_end_ns = border(1.0 / 3), last_begin_ns = border(2.0 / 3);
  const double first = mean_in_flight(sent, window.begin_ns, first_end_ns);
  const double last = mean_in_flight(sent, last_begin_ns, window.end_ns);
  const auto early_ns = mean_stay_ns(sent, window.begin_ns, first_end_ns);
  const auto late_ns = mean_stay_ns(sent, last_begin_ns, window.end_ns);
  return rises(first, last) && last - first >= kLeastRise && early_ns && late_ns &&
         rises(*early_ns, *late_ns);
}

std::optional<LoadRunFigures> load_run_figures(const OfferedLoad& load, const ServiceBounds& bounds,
                                               std::span<const SentRequest> sent) {
  const auto window = load_window(load, sent);
  if (!window) return std::nullopt;
  LoadRunFigures figures{.window = *window};
  std::vector<double> latency, ttft, tpot, itl, late;
  int64_t good = 0, prompt_tokens = 0, cached_tokens = 0;
  bool tells_cached = false;
  double tokens = 0;
  int64_t ended = 0, good_ended = 0;
  for (const SentRequest& request : sent) {
    if (request.ok()) {
      tokens += tokens_in(*window, request);
      if (window->holds(*request.last_token_ns)) {
        ++ended;
        if (within(bounds, request)) ++good_ended;
      }
    }
    if (!window->holds(request.scheduled_ns)) continue;
    ++figures.requests;
    late.push_back(ms(request.sent_ns - request.scheduled_ns));
    if (!request.ok()) {
      ++figures.failed[request.error_class];
      continue;
    }
    ++figures.ok;
    prompt_tokens += request.prompt_tokens;
    cached_tokens += request.cached_tokens.value_or(0);
    tells_cached = tells_cached || request.cached_tokens;
    const int64_t first = *request.first_token_ns, last = *request.last_token_ns;
    latency.push_back(ms(last - request.scheduled_ns));
    ttft.push_back(ms(first - request.scheduled_ns));
    if (*request.tokens > 1)
      tpot.push_back(ms(last - first) / static_cast<double>(*request.tokens - 1));
    for (size_t i = 1; i < request.token_us.size(); ++i) {
      itl.push_back(static_cast<double>(request.token_us[i] - request.token_us[i - 1]) / 1e3);
    }
    if (within(bounds, request)) ++good;
  }
  if (figures.requests == 0) return std::nullopt;
  figures.offered_per_s = static_cast<double>(figures.requests) / window->seconds();
  figures.requests_per_s = static_cast<double>(ended) / window->seconds();
  figures.tokens_per_s = tokens / window->seconds();
  figures.latency_ms = load_spread(latency);
  figures.ttft_ms = load_spread(ttft);
  figures.tpot_ms = load_spread(tpot);
  figures.itl_ms = load_spread(itl);
  figures.late_ms = load_spread(late);
  if (bounds.any()) {
    figures.good_per_s = static_cast<double>(good_ended) / window->seconds();
    figures.within_bounds = static_cast<double>(good) / static_cast<double>(figures.requests);
  }
  if (tells_cached && prompt_tokens > 0)
    figures.cached = static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
  figures.in_flight = mean_in_flight(sent, window->begin_ns, window->end_ns);
  figures.most_in_flight = most_in_flight(sent);
  // A closed loop's queue can't grow.
  figures.queue_grows = !load.point.concurrency && grows_within(*window, sent);
  return figures;
}

double lateness_bound_ms(const LoadRunFigures& figures) {
  constexpr double kLeastBound_ms = 10;
  constexpr double kShareOfLatency = 0.05;
  return std::max(kLeastBound_ms,
                  figures.latency_ms ? kShareOfLatency * figures.latency_ms->mean : 0);
}

}  // namespace assay
