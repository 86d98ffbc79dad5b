// Traces of requests.
#include "routing/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/files/files.h"
#include "base/files/hash.h"
#include "base/random.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "stats/distributions/standard_normal.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 4> kTraceColumns = {"arrival_s", "prompt_tokens",
                                                           "new_tokens", "batch"};
constexpr int64_t kMostTraceTokens = 100'000'000;

using ColumnPlaces = std::array<size_t, kTraceColumns.size()>;

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<ColumnPlaces> column_places(const std::vector<std::string>& header,
                                   std::string_view object) {
  ColumnPlaces places{};
  for (size_t c = 0; c < kTraceColumns.size(); ++c) {
    const auto at = std::ranges::find(header, kTraceColumns[c]);
    const auto count = std::ranges::count(header, kTraceColumns[c]);
    if (header.size() != kTraceColumns.size() || count != 1) {
      return bad_input(
          "{} line 1: expected the columns arrival_s, prompt_tokens, new_tokens and batch, found "
          "{}",
          object, quoted_excerpt(join(header, ",")));
    }
    places[c] = static_cast<size_t>(at - header.begin());
  }
  return places;
}

Result<TraceRequest> request_of(const std::vector<std::string>& fields, const ColumnPlaces& places,
                                const std::string& where) {
  if (fields.size() != kTraceColumns.size()) {
    return bad_input("{}: expected 4 fields, found {}", where, fields.size());
  }
  TraceRequest request;
  const std::string& arrival = fields[places[0]];
  const auto seconds = whole_number<double>(arrival);
  if (!seconds || !(*seconds >= 0 && *seconds <= kMostArrivalSeconds)) {
    return bad_input("{}: arrival_s: expected seconds from 0 to {:.0e}, found {}", where,
                     kMostArrivalSeconds, quoted_excerpt(arrival));
  }
  request.arrival_s = *seconds;
  for (const auto& [column, least, value] :
       {std::tuple<size_t, int64_t, int64_t*>{1, 1, &request.prompt_tokens},
        {2, 0, &request.new_tokens},
        {3, 1, &request.batch}}) {
    const std::string& text = fields[places[column]];
    const auto number = whole_number<int64_t>(text);
    if (!number || *number < least || *number > kMostTraceTokens) {
      return bad_input("{}: {}: expected an integer from {} to {}, found {}", where,
                       kTraceColumns[column], least, kMostTraceTokens, quoted_excerpt(text));
    }
    *value = *number;
  }
  return request;
}

int64_t log_normal_length(double median, double sigma, int64_t least, int64_t most,
                          Random& random) {
  const double drawn = median * std::exp(sigma * stats::standard_normal(random));
  return std::clamp<int64_t>(std::llround(std::min(drawn, static_cast<double>(most))), least, most);
}

double exponential(double rate, Random& random) {
  return -std::log1p(-random.uniform()) / rate;
}

}  // namespace

Result<std::vector<TraceRequest>> parse_trace(std::string_view text, std::string_view object) {
  CsvReader reader(text, std::string(object), ',', kTraceColumns.size() + 1);
  if (reader.done()) return bad_input("{}: expected a header, found nothing", object);
  ASSAY_TRY(const std::vector<std::string> header, reader.next());
  ASSAY_TRY(const ColumnPlaces places, column_places(header, object));
  std::vector<TraceRequest> trace;
  while (!reader.done()) {
    ASSAY_TRY(const std::vector<std::string> fields, reader.next());
    const std::string where = fmt::format("{} line {}", object, reader.line());
    ASSAY_TRY(const TraceRequest request, request_of(fields, places, where));
    if (!trace.empty() && request.arrival_s < trace.back().arrival_s) {
      return bad_input("{}: arrival_s: expected {} or later, as the request before, found {}",
                       where, trace.back().arrival_s, request.arrival_s);
    }
    if (trace.size() == kMostRequests) {
      return bad_input("{}: expected at most {} requests, found more", where, kMostRequests);
    }
    trace.push_back(request);
  }
  if (trace.empty()) return bad_input("{}: expected a request, found none", object);
  return trace;
}

Result<std::vector<TraceRequest>> read_request_trace(const std::filesystem::path& path) {
  ASSAY_TRY(const std::string text, read_file(path));
  return parse_trace(text, path.string());
}

std::string trace_to_csv(const std::vector<TraceRequest>& trace) {
  std::string out = fmt::format("{}\n", kTraceHeader);
  for (const TraceRequest& request : trace) {
    out += fmt::format("{:.6f},{},{},{}\n", request.arrival_s, request.prompt_tokens,
                       request.new_tokens, request.batch);
  }
  return out;
}

std::string trace_hash(const std::vector<TraceRequest>& trace) {
  return sha256_hex(trace_to_csv(trace)).substr(0, 16);
}

std::vector<TraceRequest> make_trace(const TraceRecipe& recipe) {
  constexpr double kWithinBurst = 20;  // times the rate
  Random random(recipe.seed);
  std::vector<TraceRequest> trace;
  const double burst = std::max(1.0, recipe.burst);
  // The time that a burst takes is no pause between bursts: the average stays as asked for.
  const double inside = (burst - 1) / (recipe.rate_per_s * kWithinBurst);
  const double pause = std::max(1e-9, burst / recipe.rate_per_s - inside);
  double now = 0;
  for (int64_t i = 0; i < recipe.requests; ++i) {
    const bool goes_on = i > 0 && random.uniform() < 1 - 1 / burst;
    now += goes_on ? exponential(recipe.rate_per_s * kWithinBurst, random)
                   : exponential(1 / pause, random);
    TraceRequest request;
    request.arrival_s = std::round(now * 1e6) / 1e6;  // as the file has it
    request.prompt_tokens = log_normal_length(recipe.prompt_median, recipe.prompt_sigma,
                                              recipe.shortest, recipe.longest, random);
    request.new_tokens =
        log_normal_length(recipe.new_median, recipe.new_sigma, 0, kMostTraceTokens, random);
    request.batch = recipe.batches[random.below(recipe.batches.size())];
    trace.push_back(request);
  }
  return trace;
}

}  // namespace assay
