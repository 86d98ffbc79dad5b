// Requests as lines of CSV and back.
#include "load/sent_request.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "base/tables/csv.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr int64_t kMostNs = int64_t{400} * 86'400 * 1'000'000'000;  // 400 days
constexpr int64_t kMostTokensCounted = 1'000'000'000;
constexpr std::string_view kStatuses[] = {"ok", "error", "timeout", "crash", "false_success"};
constexpr std::string_view kHeader =
    "cell_id,run,number,scheduled_ns,sent_ns,first_token_ns,last_token_ns,end_ns,prompt_tokens,"
    "new_tokens,tokens,cached_tokens,status,error_class\n";
constexpr std::string_view kTimesHeader = "cell_id,run,number,token_us\n";

std::string number_or_nothing(const std::optional<int64_t>& value) {
  return value ? fmt::format("{}", *value) : "";
}

// Reads the fields of one line, one after the other.
class Fields {
 public:
  Fields(const std::vector<std::string_view>& fields, std::string where)
      : fields_(fields), where_(std::move(where)) {}

  std::string_view text() { return fields_[next_++]; }
  Status number(int64_t& into, int64_t least = 0, int64_t most = kMostNs) {
    const std::string_view field = text();
    const char* const end = field.data() + field.size();
    const auto [stop, error] = std::from_chars(field.data(), end, into);
    if (error == std::errc() && stop == end && into >= least && into <= most) return {};
    return bad_input("{} column {}: expected {} to {}, found {}", where_, next_, least, most,
                     quoted_excerpt(field));
  }
  Status number(std::optional<int64_t>& into, int64_t most = kMostNs) {
    if (fields_[next_].empty()) {
      ++next_;
      return {};
    }
    return number(into.emplace(), 0, most);
  }

 private:
  const std::vector<std::string_view>& fields_;
  std::string where_;
  size_t next_ = 0;
};

// Calls `take` with the fields of each line behind the header.
template <typename Take>
Status for_each_line(std::string_view text, std::string_view header, std::string_view object,
                     const Take& take) {
  if (!text.starts_with(header)) {
    return bad_input("{}: expected the columns {}, found others", object,
                     header.substr(0, header.size() - 1));
  }
  text.remove_prefix(header.size());
  const auto columns = static_cast<size_t>(std::ranges::count(header, ',')) + 1;
  CsvReader reader(text, std::string(object), ',', columns);
  std::vector<std::string_view> fields;
  while (!reader.done()) {
    ASSAY_CHECK(reader.next(fields));
    const std::string where = fmt::format("{} line {}", object, reader.line() + 1);
    if (fields.size() != columns) {
      return bad_input("{}: expected {}, found {}", where,
                       counted(static_cast<int64_t>(columns), "column"), fields.size());
    }
    ASSAY_CHECK(take(Fields(fields, where), where));
  }
  return {};
}

Result<LoadedRequest> request_of(Fields fields, const std::string& where) {
  LoadedRequest one;
  SentRequest& request = one.request;
  one.cell_id = fields.text();
  ASSAY_CHECK(fields.number(one.run, -kMostTokensCounted, kMostTokensCounted));
  ASSAY_CHECK(fields.number(request.number));
  ASSAY_CHECK(fields.number(request.scheduled_ns));
  ASSAY_CHECK(fields.number(request.sent_ns));
  ASSAY_CHECK(fields.number(request.first_token_ns));
  ASSAY_CHECK(fields.number(request.last_token_ns));
  ASSAY_CHECK(fields.number(request.end_ns));
  ASSAY_CHECK(fields.number(request.prompt_tokens, 0, kMostTokensCounted));
  ASSAY_CHECK(fields.number(request.new_tokens, 0, kMostTokensCounted));
  ASSAY_CHECK(fields.number(request.tokens, kMostTokensCounted));
  ASSAY_CHECK(fields.number(request.cached_tokens, kMostTokensCounted));
  request.status = fields.text();
  request.error_class = fields.text();
  if (const std::string wrong = wrong_request(request); !wrong.empty())
    return bad_input("{}: {}", where, wrong);
  return one;
}

Status read_times(std::string_view text, const std::string& where, std::vector<int64_t>& into) {
  int64_t before = 0;
  for (const std::string& word : split(text, ' ')) {
    int64_t at = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, at);
    if (error != std::errc() || stop != end || at < before || at > kMostNs / 1000) {
      return bad_input("{}: expected times that don't go back, found {}", where,
                       quoted_excerpt(word));
    }
    into.push_back(before = at);
  }
  return {};
}

}  // namespace

std::string wrong_request(const SentRequest& request) {
  const int64_t first = request.first_token_ns.value_or(request.sent_ns);
  const int64_t last = request.last_token_ns.value_or(first);
  const bool in_order = 0 <= request.scheduled_ns && request.scheduled_ns <= request.sent_ns &&
                        request.sent_ns <= first && first <= last && last <= request.end_ns &&
                        request.end_ns <= kMostNs;
  for (const int64_t count : {request.number, request.prompt_tokens, request.new_tokens,
                              request.tokens.value_or(0), request.cached_tokens.value_or(0)}) {
    if (count < 0 || count > kMostTokensCounted)
      return fmt::format("expected counts of 0 to {}, found {}", kMostTokensCounted, count);
  }
  int64_t before_us = 0;
  for (const int64_t at_us : request.token_us) {
    if (at_us < before_us || at_us > kMostNs / 1000)
      return "expected times of tokens that don't go back, found others";
    before_us = at_us;
  }
  if (!in_order) return "expected scheduled, sent, tokens and end in that order, found another";
  if (std::ranges::find(kStatuses, request.status) == std::end(kStatuses)) {
    return fmt::format("expected a status, found {}", quoted_excerpt(request.status));
  }
  if (request.ok() != request.error_class.empty())
    return "expected a class for what isn't ok, and for nothing else, found otherwise";
  if (!request.ok()) return "";
  const bool whole = request.first_token_ns && request.last_token_ns &&
                     request.tokens == request.new_tokens && request.new_tokens > 0;
  return whole ? ""
               : "expected an ok request to have the tokens asked for and their times, found "
                 "otherwise";
}

std::string requests_header() {
  return std::string(kHeader);
}

std::string token_times_header() {
  return std::string(kTimesHeader);
}

std::string request_line(const std::string& cell_id, int64_t run, const SentRequest& request) {
  return csv_line({cell_id, fmt::format("{}", run), fmt::format("{}", request.number),
                   fmt::format("{}", request.scheduled_ns), fmt::format("{}", request.sent_ns),
                   number_or_nothing(request.first_token_ns),
                   number_or_nothing(request.last_token_ns), fmt::format("{}", request.end_ns),
                   fmt::format("{}", request.prompt_tokens), fmt::format("{}", request.new_tokens),
                   number_or_nothing(request.tokens), number_or_nothing(request.cached_tokens),
                   request.status, request.error_class});
}

std::string token_times_line(const std::string& cell_id, int64_t run, const SentRequest& request) {
  if (request.token_us.empty()) return "";
  return csv_line({cell_id, fmt::format("{}", run), fmt::format("{}", request.number),
                   fmt::format("{}", fmt::join(request.token_us, " "))});
}

Result<std::vector<LoadedRequest>> parse_requests(std::string_view requests, std::string_view times,
                                                  std::string_view object) {
  std::vector<LoadedRequest> all;
  std::map<std::tuple<std::string, int64_t, int64_t>, size_t> places;
  const auto take_request = [&](Fields fields, const std::string& where) -> Status {
    ASSAY_TRY(LoadedRequest one, request_of(fields, where));
    const bool fresh =
        places.try_emplace({one.cell_id, one.run, one.request.number}, all.size()).second;
    if (!fresh) return bad_input("{}: expected each request once, found one again", where);
    all.push_back(std::move(one));
    return {};
  };
  const auto take_times = [&](Fields fields, const std::string& where) -> Status {
    const std::string cell_id(fields.text());
    int64_t run = 0, number = 0;
    ASSAY_CHECK(fields.number(run, -kMostTokensCounted, kMostTokensCounted));
    ASSAY_CHECK(fields.number(number));
    const auto at = places.find({cell_id, run, number});
    if (at == places.end() || !all[at->second].request.token_us.empty())
      return bad_input("{}: expected the times of a request, once, found others", where);
    return read_times(fields.text(), where, all[at->second].request.token_us);
  };
  ASSAY_CHECK(for_each_line(requests, kHeader, object, take_request));
  if (!times.empty()) ASSAY_CHECK(for_each_line(times, kTimesHeader, object, take_times));
  return all;
}

}  // namespace assay
