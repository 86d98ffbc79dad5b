// A streamed generation as its client sees it: when each token came, and what the server says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/http/dialect.h"
#include "backend/http/http_loop.h"

namespace assay {

// Times are monotonic_now_ns().
struct Generated {
  int64_t started_ns = 0;         // the loop began to work on it
  int64_t connected_ns = 0;       // the connection stood; 0: it never did
  int64_t sent_ns = 0;            // written whole
  std::vector<int64_t> token_ns;  // of each event that brought tokens, not of each token
  int64_t end_ns = 0;
  int64_t finish_ns = 0;  // the last event that had a token or said how it ended
  std::string text;
  std::vector<int32_t> ids;  // empty: the server sends none
  std::string finish;
  ServerFigures figures;
};

// Hears of the end, once.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // `generated` has what came before a failure too.
  virtual void ended(const Generated& generated, HttpResult<void> result) = 0;
};

// The exchange for a generation of this dialect, for HttpLoop::start(). A stream that ends without
// its last event is `stream_cut`; an error told in it `server_error`.
std::shared_ptr<HttpExchange> make_generation(const Dialect& dialect, GenerationListener& listener);

// One generation, by itself. Blocks until its end; `generated` has what came before a failure too.
HttpResult<void> generate(HttpLoop& loop, const HttpEndpoint& endpoint, const Dialect& dialect,
                          HttpRequest request, const HttpLimits& limits, Generated& generated);

}  // namespace assay
