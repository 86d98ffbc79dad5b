// HTTP/1.1 exchanges on one event loop: one at a time, or a thousand streams side by side.
//
// Connections are kept and used again; one that the server has closed meanwhile is noticed before
// it is used. Nothing is sent twice, and no redirect is followed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backend/http/http_failure.h"
#include "backend/http/name_lookup.h"
#include "backend/http/server_url.h"
#include "base/result.h"

namespace assay {

struct HttpEndpoint {
  ServerUrl url;
  std::string api_key = {};  // sent as "Authorization: Bearer"; empty: none
  std::string ca_file = {};  // certificates to trust in place of the system's; empty: the system's
};

struct HttpRequest {
  std::string method = "POST";  // GET or POST
  std::string path;             // behind the endpoint's prefix
  std::string body = {};        // JSON; empty: none
  // On a connection of its own, made for it: one that is kept may be closed by its server at the
  // very moment in which it is used.
  bool fresh = false;
  std::string id = {};  // X-Request-Id, by which a server's log names it; empty: none
};

struct HttpLimits {
  double total_s = 120;                // of the exchange
  double silence_s = 0;                // within the body, without a byte; 0: no limit
  double connect_s = 10;               // for the look-up of the name, and for the connection
  uint32_t header_bytes = 64u << 10;   // of an answer
  uint64_t body_bytes = 256ull << 20;  // of an answer, decoded
};

// One request and its answer. The loop calls from its own thread; times are monotonic_now_ns().
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  // The loop begins to work on it.
  virtual void begun(int64_t) {}
  // The connection stands, and the request is about to be written.
  virtual void connected(int64_t) {}
  // The request has been written whole.
  virtual void sent(int64_t) {}
  // The answer's status line and headers are there, whatever the status.
  virtual void head(int, int64_t) {}
  // Decoded bytes of the body. A failure ends the exchange, whose connection is closed.
  virtual HttpResult<void> body(std::string_view bytes, int64_t at_ns) = 0;
  // The last call, and exactly one: the answer is whole, or a failure says what is wrong.
  virtual void end(HttpResult<void> result, int64_t at_ns) = 0;
};

class HttpLoop {
 public:
  explicit HttpLoop(NameLookUp look_up = look_up_name);
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // Begins at the next run(). A status of 300 and above is a failure, with the beginning of the
  // body in its message, and isn't given to body(). The exchange lives until its end().
  void start(const HttpEndpoint& endpoint, HttpRequest request, const HttpLimits& limits,
             std::shared_ptr<HttpExchange> exchange);
  // Works until every exchange has ended.
  void run();
  // Works until the time of monotonic_now_ns(), or until every exchange has ended if that is
  // earlier.
  void run_until(int64_t deadline_ns);
  int64_t open_exchanges() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

// The whole answer to one request.
struct HttpAnswer {
  int status = 0;
  std::string body;
};
// Blocks until the end. `most_bytes`: a longer body is a failure.
HttpResult<HttpAnswer> ask(HttpLoop& loop, const HttpEndpoint& endpoint, HttpRequest request,
                           HttpLimits limits, uint64_t most_bytes = 16u << 20);

}  // namespace assay
