// Traces of requests in the formats of public load generators.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <sstream>

#include "base/records/lenient_json.h"
#include "base/tables/csv.h"
#include "base/text/text.h"
#include "load/offered_load.h"

namespace assay {
namespace {

constexpr std::string_view kTime[] = {"arrival_s", "TIMESTAMP", "timestamp"};
constexpr std::string_view kPrompt[] = {"prompt_tokens", "ContextTokens", "input_length"};
constexpr std::string_view kNew[] = {"new_tokens", "GeneratedTokens", "output_length"};

// Seconds of "2023-11-16 18:17:03.9799600", or of a plain number.
std::optional<double> seconds_of(std::string_view text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc() && stop == end && std::isfinite(seconds)) return seconds;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%*1[ T]%2d:%2d:%lf", &year, &month, &day, &hour,
                  &minute, &second) != 6) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || !std::isfinite(second)) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86'400 + hour * 3600 + minute * 60 + second;
}

std::optional<int64_t> tokens_of(std::string_view text) {
  int64_t tokens = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, tokens);
  return error == std::errc() && stop == end ? std::optional(tokens) : std::nullopt;
}

Result<size_t> column_of(const std::vector<std::string>& header,
                         std::span<const std::string_view> names, std::string_view object) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (std::ranges::find(names, header[i]) != names.end()) return i;
  }
  return bad_input("{}: expected a column {} or {}, found neither", object, names[0], names[1]);
}

Result<std::vector<TracedRequest>> parse_csv(std::string_view text, std::string_view object) {
  CsvReader reader(text, std::string(object), ',', 1000);
  ASSAY_TRY(const std::vector<std::string> header, reader.next());
  ASSAY_TRY(const size_t time, column_of(header, kTime, object));
  ASSAY_TRY(const size_t prompt, column_of(header, kPrompt, object));
  ASSAY_TRY(const size_t fresh, column_of(header, kNew, object));
  std::vector<TracedRequest> requests;
  std::vector<std::string_view> fields;
  while (!reader.done() && requests.size() <= kMostTraced) {
    ASSAY_CHECK(reader.next(fields));
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != header.size()) {
      return bad_input("{} line {}: expected {}, found {}", object, reader.line(),
                       counted(std::ssize(header), "column"), fields.size());
    }
    const auto at_s = seconds_of(fields[time]);
    const auto prompt_tokens = tokens_of(fields[prompt]), new_tokens = tokens_of(fields[fresh]);
    if (!at_s || !prompt_tokens || !new_tokens) {
      return bad_input("{} line {}: expected a time and two numbers of tokens, found {}, {}, {}",
                       object, reader.line(), quoted_excerpt(fields[time]),
                       quoted_excerpt(fields[prompt]), quoted_excerpt(fields[fresh]));
    }
    requests.push_back({*at_s, *prompt_tokens, *new_tokens});
  }
  return requests;
}

Result<std::vector<TracedRequest>> parse_lines(std::string_view text, std::string_view object) {
  std::vector<TracedRequest> requests;
  int64_t number = 0;
  while (!text.empty() && requests.size() <= kMostTraced) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = fmt::format("{} line {}", object, number);
    ASSAY_TRY(const Json json, parse_json(line, where));
    const auto at_ms = number_member(json, "timestamp");
    const auto prompt = whole_member(json, "input_length"),
               fresh = whole_member(json, "output_length");
    if (!at_ms || !prompt || !fresh) {
      return bad_input("{}: expected timestamp, input_length and output_length, found others",
                       where);
    }
    requests.push_back({*at_ms / 1e3, *prompt, *fresh});
  }
  return requests;
}

}  // namespace

Result<std::vector<TracedRequest>> parse_load_trace(std::string_view text,
                                                    std::string_view object) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return bad_input("{}: expected a trace, found nothing", object);
  ASSAY_TRY(auto requests,
            text[first] == '{' ? parse_lines(text, object) : parse_csv(text, object));
  // A prompt alone still gets its first token.
  for (TracedRequest& request : requests) {
    request.new_tokens = std::max<int64_t>(request.new_tokens, 1);
  }
  std::ranges::stable_sort(requests, {}, &TracedRequest::at_s);
  const double begin_s = requests.empty() ? 0 : requests.front().at_s;
  for (TracedRequest& request : requests) request.at_s -= begin_s;
  OfferedLoad load;
  load.point.speed = 1;
  load.trace = requests;
  if (const std::string wrong = wrong_load(load); !wrong.empty())
    return bad_input("{}: {}", object, wrong);
  return requests;
}

}  // namespace assay
