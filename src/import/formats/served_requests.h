// Requests to a server, as runs of the phases that they are judged by.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "import/imported.h"

namespace assay {

// When a request was due, sent, answered: seconds of any clock. A tool that keeps no schedule has
// due_s = sent_s.
struct ServedTimes {
  double due_s = 0;
  double sent_s = 0;
  double end_s = 0;
};

struct ServedRequest {
  ImportedSample whole;              // with ttft_ms where the answer was streamed
  std::optional<double> token_ms;    // mean time of a token after the first (TPOT)
  std::vector<double> gaps_ms = {};  // between the tokens, one each (ITL); empty: not known
  std::optional<ServedTimes> times = {};
};

// Sets token_ms by the request's latency, first token and number of tokens, if it has two tokens.
void put_token_time(ServedRequest& request);

// Adds runs of one load, which states everything but its phase: e2e_kv of whole requests, and in
// scenarios of their own prefill up to the first token ("NAME-ttft"), and kv_decode with one new
// token for token_ms ("NAME-tpot") and for gaps_ms ("NAME-itl"). A phase that no request has a time
// of has no run; a lost request is lost in each, and so is one of no token. More than kMostGaps
// gaps are left out. Where `point` is given and every request has its times, also a run of phase
// load with the requests as rows; of fewer than kLeastRequestsOfALoad requests none, since hardly
// any would be left between its warm-up and its end.
inline constexpr size_t kLeastRequestsOfALoad = 30;
inline constexpr size_t kMostGaps = 500'000;
Status add_served(const ImportedRun& load, const std::vector<ServedRequest>& requests,
                  Imported& imported, std::optional<LoadPoint> point = std::nullopt);

// The note on such runs.
inline constexpr const char* kServedNote =
    "requests overlap and wait for one another, so their times are those under the load that the "
    "scenario names: in prefill up to the first token with the wait before it (-ttft), in "
    "kv_decode "
    "of a token after the first (-tpot), and of each gap between two tokens (-itl)";

}  // namespace assay
