// Sends the requests of one run on their schedule, and hears each of them out.
#pragma once

#include <functional>
#include <optional>

#include "backend/http/dialect.h"
#include "backend/http/generation.h"
#include "backend/http/http_loop.h"
#include "backend/message.h"
#include "load/offered_load.h"
#include "load/request_source.h"
#include "load/sent_request.h"

namespace assay {

// All that a session has said before a turn.
struct Conversation {
  HttpPrompt prompt;   // of the turn before this one
  std::string answer;  // to it
  int64_t tokens = 0;  // of both, as the server counted them or, where it didn't, as asked for
};

struct LoadTarget {
  const HttpEndpoint& endpoint;
  const Dialect& dialect;
  HttpLimits limits;  // of each request
  // The generation that asks for this request. Called before its time, so that the work of making
  // a prompt isn't in its latency; in a closed loop, and of a later turn, between two requests.
  // Null: a session's first turn.
  std::function<Generation(const PlannedRequest&, const Conversation*)> make;
  // Says why an answer that came whole is wrong; absent: it is right.
  std::function<std::optional<ErrorReply>(const Generated&, const PlannedRequest&,
                                          const Conversation*)>
      check;
  // Takes each request when it has ended.
  std::function<void(SentRequest)> take;
};

// Blocks until every request has ended and was taken. Each has a connection of its own, which
// belongs to its latency, and the header X-Request-Id "SEED-NUMBER". A session ends with a turn
// that failed.
void send_load(HttpLoop& loop, const LoadTarget& target, const OfferedLoad& load);

// The row's view of a failure: outcome and class.
ErrorReply reply_of(const HttpFailure& failure);

}  // namespace assay
