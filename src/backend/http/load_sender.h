// Sends the requests of one run on their schedule, and hears each of them out.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backend/http/dialect.h"
#include "backend/http/generation.h"
#include "backend/http/http_loop.h"
#include "backend/message.h"
#include "load/offered_load.h"
#include "load/request_source.h"
#include "load/sent_request.h"

namespace assay {

struct LoadTarget {
  const HttpEndpoint& endpoint;
  const Dialect& dialect;
  HttpLimits limits;  // of each request
  // The generation that asks for this request. Called before its time, so that the work of making
  // a prompt isn't in its latency; in a closed loop between two requests.
  std::function<Generation(const PlannedRequest&)> make;
  // Says why an answer that came whole is wrong; absent: it is right.
  std::function<std::optional<ErrorReply>(const Generated&, const PlannedRequest&)> check;
};

// Blocks until every request has ended; each is there once, by its number. Each has a connection of
// its own, which belongs to its latency.
std::vector<SentRequest> send_load(HttpLoop& loop, const LoadTarget& target,
                                   const OfferedLoad& load);

// The row's view of a failure: outcome and class.
ErrorReply reply_of(const HttpFailure& failure);

}  // namespace assay
