// Names, bounds and checks of offered load.
#include "load/offered_load.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text/text.h"

namespace assay {
namespace {

constexpr int64_t kMostTokensOfARequest = 10'000'000;
constexpr double kMostRate = 100'000;
constexpr double kMostDuration_s = 86'400;
constexpr double kMostSchedule_s = 30 * kMostDuration_s;

std::string wrong_lengths(std::string_view name, const TokenLengths& lengths) {
  for (const int64_t value : lengths.values) {
    if (value < 1 || value > kMostTokensOfARequest) {
      return fmt::format("{}: expected 1 to {} tokens, found {}", name, kMostTokensOfARequest,
                         value);
    }
  }
  if (lengths.least < 1 || lengths.most < lengths.least || lengths.most > kMostTokensOfARequest) {
    return fmt::format("{}: expected least and most within 1 to {}, found {} and {}", name,
                       kMostTokensOfARequest, lengths.least, lengths.most);
  }
  const double deviation = lengths.deviation.value_or(0);
  if (!std::isfinite(lengths.mean.value_or(1)) || !std::isfinite(deviation) || deviation < 0) {
    return fmt::format("{}: expected a finite mean and a deviation of at least 0, found others",
                       name);
  }
  return "";
}

std::string wrong_point(const LoadPoint& point) {
  const int given = int{point.concurrency.has_value()} + int{point.rate.has_value()} +
                    int{point.speed.has_value()};
  if (given != 1)
    return fmt::format("expected one of concurrency, rate and speed, found {}", given);
  if (point.concurrency && (*point.concurrency < 1 || *point.concurrency > kMostConcurrency)) {
    return fmt::format("concurrency: expected 1 to {}, found {}", kMostConcurrency,
                       *point.concurrency);
  }
  for (const auto& rate : {point.rate, point.speed}) {
    if (!rate || (*rate > 0 && *rate <= kMostRate)) continue;
    return fmt::format("expected a rate above 0 and up to {:g}, found {:g}", kMostRate, *rate);
  }
  return "";
}

std::string wrong_trace(const OfferedLoad& load) {
  if (load.trace.empty()) return "expected a trace with requests, found none";
  if (load.trace.size() > kMostTraced) {
    return fmt::format("expected at most {} requests in a trace, found {}", kMostTraced,
                       load.trace.size());
  }
  double before_s = 0;
  for (const TracedRequest& request : load.trace) {
    const bool fits = request.at_s >= before_s && request.at_s <= 1e9 &&
                      request.prompt_tokens >= 1 && request.new_tokens >= 1 &&
                      request.prompt_tokens <= kMostTokensOfARequest &&
                      request.new_tokens <= kMostTokensOfARequest;
    if (!fits) return "expected requests by time with tokens in bounds, found others in the trace";
    before_s = request.at_s;
  }
  return "";
}

std::string wrong_schedule(const OfferedLoad& load) {
  const double seconds = schedule_seconds(load).value_or(0);
  if (seconds <= kMostSchedule_s) return "";
  return fmt::format("expected a schedule of at most {:g} s, found {:g}", kMostSchedule_s, seconds);
}

}  // namespace

std::string load_point_name(const LoadPoint& point) {
  if (point.concurrency) return fmt::format("{} at once", *point.concurrency);
  if (point.rate) return fmt::format("{} a second", *point.rate);
  return fmt::format("trace x{}", point.speed.value_or(1));
}

int64_t mean_length(const TokenLengths& lengths) {
  if (!lengths.values.empty()) {
    const double sum = std::accumulate(lengths.values.begin(), lengths.values.end(), 0.0);
    return std::llround(sum / static_cast<double>(lengths.values.size()));
  }
  if (lengths.mean)
    return std::clamp<int64_t>(std::llround(*lengths.mean), lengths.least, lengths.most);
  return lengths.least + (lengths.most - lengths.least) / 2;
}

int64_t longest_length(const TokenLengths& lengths) {
  return lengths.values.empty() ? lengths.most : *std::ranges::max_element(lengths.values);
}

std::optional<double> schedule_seconds(const OfferedLoad& load) {
  if (load.point.speed) return load.trace.back().at_s / *load.point.speed;
  if (load.duration_s) return load.duration_s;
  if (load.point.rate) return static_cast<double>(*load.requests) / *load.point.rate;
  return std::nullopt;
}

std::string wrong_load(const OfferedLoad& load) {
  if (std::string wrong = wrong_point(load.point); !wrong.empty()) return wrong;
  if (load.turns < 1 || load.turns > kMostTurns)
    return fmt::format("turns: expected 1 to {}, found {}", kMostTurns, load.turns);
  if (load.point.speed) {
    if (load.turns > 1) return "expected one turn of a trace's requests, found more";
    if (std::string wrong = wrong_trace(load); !wrong.empty()) return wrong;
    return wrong_schedule(load);
  }
  for (const auto& [name, lengths] : {std::pair("prompt_tokens", &load.prompt_tokens),
                                      std::pair("new_tokens", &load.new_tokens)}) {
    if (std::string wrong = wrong_lengths(name, *lengths); !wrong.empty()) return wrong;
  }
  if (!load.duration_s && !load.requests) return "expected duration_s or requests, found neither";
  if (load.duration_s && !(*load.duration_s > 0 && *load.duration_s <= kMostDuration_s)) {
    return fmt::format("duration_s: expected above 0 and up to {:g}, found {:g}", kMostDuration_s,
                       *load.duration_s);
  }
  if (load.point.rate && load.duration_s && !load.requests &&
      *load.point.rate * *load.duration_s > static_cast<double>(kMostLoadRequests)) {
    return fmt::format("expected at most {} requests, found {:g} a second for {:g} s",
                       kMostLoadRequests, *load.point.rate, *load.duration_s);
  }
  if (load.requests && (*load.requests < 1 || *load.requests > kMostLoadRequests)) {
    return fmt::format("requests: expected 1 to {}, found {}", kMostLoadRequests, *load.requests);
  }
  if (load.requests && *load.requests % load.turns != 0) {
    return fmt::format("requests: expected a multiple of the {} turns of a session, found {}",
                       load.turns, *load.requests);
  }
  return wrong_schedule(load);
}

}  // namespace assay
