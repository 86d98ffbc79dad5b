// Checks of single figures.
#include "import/formats/sample_parts.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/records/count_limits.h"
#include "base/records/lenient_json.h"
#include "base/text/shown_text.h"
#include "base/text/text.h"

namespace assay {
namespace {

void doubt(ImportedSample& sample, const char* error_class) {
  if (sample.status != RowStatus::kOk) return;
  sample.status = RowStatus::kFalseSuccess;
  sample.error_class = error_class;
}

// The next `digits` digits, and the character behind them if it is one of `behind`.
std::optional<int> take_digits(std::string_view& text, size_t digits, std::string_view behind) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  if (behind.empty() || text.empty()) return value;
  if (behind.find(text[0]) == std::string_view::npos) return std::nullopt;
  text.remove_prefix(1);
  return value;
}

// Minutes east of Greenwich of "Z", "+01:00" or nothing.
std::optional<int> zone_minutes(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  const int sign = text[0] == '-' ? -1 : 1;
  if (text[0] != '+' && text[0] != '-') return std::nullopt;
  text.remove_prefix(1);
  const auto hours = take_digits(text, 2, ":");
  const auto minutes = text.empty() ? std::optional(0) : take_digits(text, 2, "");
  if (!hours || !minutes || !text.empty()) return std::nullopt;
  return sign * (*hours * 60 + *minutes);
}

// The fraction behind a second, which a '.' has ended, in nanoseconds.
int64_t take_fraction(std::string_view& text) {
  int64_t fraction = 0;
  int64_t scale = 100'000'000;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    fraction += (text[0] - '0') * scale;
    scale /= 10;
    text.remove_prefix(1);
  }
  return fraction;
}

}  // namespace

void put_latency(ImportedSample& sample, double ms) {
  if (std::isfinite(ms) && ms >= 0) {
    sample.latency_ms = ms;
  } else {
    doubt(sample, kImpossibleTime);
  }
}

void put_ttft(ImportedSample& sample, double ms) {
  if (std::isfinite(ms) && ms >= 0) {
    sample.ttft_ms = ms;
  } else {
    doubt(sample, kImpossibleTime);
  }
}

void put_tokens(ImportedSample& sample, int64_t tokens) {
  if (tokens >= 0 && tokens <= kMostTokensOfACall) {
    sample.tokens = tokens;
  } else {
    doubt(sample, kImpossibleTokens);
  }
}

void fail_sample(ImportedSample& sample, RowStatus status, std::string_view error_class,
                 std::string_view message) {
  sample.status = status;
  sample.error_class = error_class.empty() ? "unknown" : excerpt(error_class);
  sample.message = message;
}

Result<std::vector<double>> json_numbers(const Json& list, std::string_view object,
                                         std::string_view key) {
  if (!list.is_array()) {
    return bad_input("{}: expected a list of numbers at \"{}\", found {}", object, key,
                     list.is_null() ? "nothing" : excerpt(to_json_line(list)));
  }
  std::vector<double> numbers;
  numbers.reserve(list.size());
  for (const Json& element : list) {
    if (!element.is_number() && !element.is_null()) {
      return bad_input("{}: expected numbers at \"{}\", found {}", object, key,
                       excerpt(to_json_line(element)));
    }
    numbers.push_back(element.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                        : element.get<double>());
  }
  return numbers;
}

Status check_entries(const Json& list, std::string_view key, size_t expected,
                     std::string_view beside, std::string_view object) {
  if (!list.is_array() || list.size() == expected) return {};
  return bad_input("{}: expected {} at \"{}\" as at \"{}\", found {}", object,
                   counted(static_cast<int64_t>(expected), "entry", "entries"), key, beside,
                   list.size());
}

Result<std::span<const Json>> documents_of(const SourceText& source) {
  if (!source.documents.empty()) return std::span(source.documents);
  return bad_input("{}: expected JSON, found {}", source.path,
                   quoted_excerpt(source.text.substr(0, 60)));
}

std::string short_name(std::string_view text) {
  constexpr size_t kLongestShown = 160;
  return shown_line(text, kLongestShown);
}

Status state_members(const Json& object, const std::string& where, RunFacts& facts) {
  if (!object.is_object()) return {};
  for (const auto& [key, value] : object.items()) {
    const auto field = parse_import_field(key);
    if (!field || value.is_structured()) continue;
    ASSAY_CHECK(facts.state(*field, shown_text(value), where));
  }
  return {};
}

Status state_fields(std::initializer_list<StatedField> fields, const std::string& where,
                    RunFacts& facts) {
  for (const StatedField& each : fields) {
    ASSAY_CHECK(facts.state(each.field, each.value, where));
  }
  return {};
}

std::string class_of_message(std::string_view message) {
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) {
    message.remove_suffix(1);
  }
  const size_t line = message.rfind('\n');
  if (line != std::string_view::npos) message.remove_prefix(line + 1);
  std::string_view name = message.substr(0, message.find(':'));
  if (name.find(' ') != std::string_view::npos) return excerpt(message);
  return excerpt(name.substr(name.rfind('.') + 1));
}

std::string plain_text(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (value.is_structured()) return "";
  return shown_text(value);
}

std::optional<int64_t> utc_ns(std::string_view text) {
  const bool compact = text.size() == 15 && text[8] == '-';
  const auto year = take_digits(text, 4, compact ? "" : "-");
  const auto month = year ? take_digits(text, 2, compact ? "" : "-") : std::nullopt;
  const auto day = month ? take_digits(text, 2, compact ? "-" : "T ") : std::nullopt;
  const auto hour = day ? take_digits(text, 2, compact ? "" : ":") : std::nullopt;
  const auto minute = hour ? take_digits(text, 2, compact ? "" : ":") : std::nullopt;
  const auto second = minute ? take_digits(text, 2, "") : std::nullopt;
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  int64_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_fraction(text);
  }
  const auto zone = zone_minutes(text);
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!zone || !date.ok() || *year < 1971 || *year > 2200) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = ((days * 24 + *hour) * 60 + *minute - *zone) * 60 + *second;
  return seconds * 1'000'000'000 + fraction;
}

Result<std::optional<int64_t>> stated_time(std::string_view text, const std::string& object) {
  if (text.empty()) return std::optional<int64_t>();
  if (const auto ns = utc_ns(text)) return ns;
  return bad_input("{}: expected a time such as 2026-11-25T09:55:10Z, found {}", object,
                   quoted_excerpt(text));
}

std::string folder_of(const SourceText& source) {
  return std::filesystem::path(source.path).parent_path().string();
}

std::string part_name(const SourceText& source, std::string_view what, size_t index) {
  return fmt::format("{}: {} {}", source.path, what, index);
}

}  // namespace assay
