// One request of a run under load: its times and what became of it. load/requests.csv of a bundle
// has a line for each, and load/token_times.csv the times of its tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/record.h"
#include "base/result.h"

namespace assay {

// Times are nanoseconds from the run's beginning, by the client's clock.
struct SentRequest {
  int64_t number = 0;        // PlannedRequest's
  int64_t scheduled_ns = 0;  // a closed loop's request is due as soon as one before it has ended
  int64_t sent_ns = 0;       // handed to the network; from `scheduled_ns` on it is late
  std::optional<int64_t> first_token_ns = {};
  std::optional<int64_t> last_token_ns = {};
  int64_t end_ns = 0;  // the answer's end, or the failure
  // Asked for; an ok request has exactly these. A session's later turn has as many as the server
  // counts, or as all before it and its own were asked for.
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;                     // likewise
  std::optional<int64_t> tokens = {};         // new ones, as the server counts
  std::optional<int64_t> cached_tokens = {};  // of the prompt, not computed anew
  std::string status = "ok";                  // ok | error | timeout | crash | false_success
  std::string error_class = {};               // empty: ok
  // When each event that brought tokens came: microseconds from `scheduled_ns`.
  std::vector<int64_t> token_us = {};

  bool ok() const { return status == "ok"; }
  friend bool operator==(const SentRequest&, const SentRequest&) = default;
};

// A request of a bundle, with the run that it belongs to.
struct LoadedRequest {
  std::string cell_id;
  int64_t run = 0;  // repetition of the row in load/metrics.csv
  SentRequest request;
};

// Column names of load/requests.csv, and the line of a request, with its end.
std::string requests_header();
std::string request_line(const std::string& cell_id, int64_t run, const SentRequest& request);
// load/token_times.csv: "cell_id,run,number,token_us"; the times are separated by blanks. A request
// without tokens has no line.
std::string token_times_header();
std::string token_times_line(const std::string& cell_id, int64_t run, const SentRequest& request);

// The requests of both files, in their order. bad_input with the line: another header, a number out
// of bounds, times that go back, token times of no request. `times`: empty where the file isn't
// there.
Result<std::vector<LoadedRequest>> parse_requests(std::string_view requests, std::string_view times,
                                                  std::string_view object);

template <>
struct Record<SentRequest> {
  static constexpr auto kMembers = std::tuple(
      field("number", &SentRequest::number), field("scheduled_ns", &SentRequest::scheduled_ns),
      field("sent_ns", &SentRequest::sent_ns),
      field("first_token_ns", &SentRequest::first_token_ns),
      field("last_token_ns", &SentRequest::last_token_ns), field("end_ns", &SentRequest::end_ns),
      field("prompt_tokens", &SentRequest::prompt_tokens),
      field("new_tokens", &SentRequest::new_tokens), field("tokens", &SentRequest::tokens),
      field("cached_tokens", &SentRequest::cached_tokens), field("status", &SentRequest::status),
      field("error_class", &SentRequest::error_class), field("token_us", &SentRequest::token_us));
};
// Why a request can't be one, "expected ..., found ..."; empty: it can.
std::string wrong_request(const SentRequest& request);

}  // namespace assay
