// HTTP as a server speaks it: requests read within bounds, answers that may stream, on one event
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::server {

struct FrontLimits {
  uint32_t header_bytes = 16u << 10;  // of a request
  uint64_t body_bytes = 16u << 20;    // likewise
  // Bodies of all requests together, but of those up to small_body_bytes, from their first byte
  // until they are let go; a further one gets 503.
  uint64_t bodies_bytes = 64u << 20;
  uint64_t small_body_bytes = 32u << 10;
  int64_t connections = 1024;  // at a time; a further one gets 503 and its end
  // A connection is closed where one of these passes.
  double idle_s = 75;                // that it waits for a request
  double header_s = 10;              // from a request's first byte until its headers are there
  double body_s = 60;                // until its body is there
  double write_s = 30;               // in which a client has to take some of what waits for it
  uint64_t unsent_bytes = 4u << 20;  // of an answer; a client that leaves more has gone
};

struct FrontOptions {
  std::string address = "127.0.0.1";  // an IP address. On loopback a request's Host has to be it.
  uint16_t port = 0;                  // 0: any that is free
  std::string api_key = {};           // that Authorization has to bring; empty: none
  std::vector<std::string> free_paths = {"/health"};  // for which it need not
  FrontLimits limits = {};
  // The body of an answer with this status; its path is empty where the request can't be read.
  std::function<std::string(std::string_view path, int status, const std::string& message)>
      error_body = {};
};

struct ServedRequest {
  std::string method;
  std::string path;   // decoded by nobody, without its query
  std::string query;  // behind "?"
  std::string body;
  std::shared_ptr<class BodyShare> share = {};  // of the bodies' memory: let go with the body
};

// The answer to one request: send() once, or begin(), any number of write() and end(). All calls
// come from the loop's thread; those after its end, or to a client that has gone, do nothing.
class Answer {
 public:
  virtual ~Answer() = default;
  // An answer of type text/html is a page that loads nothing but this server's own, and is framed
  // by none.
  virtual void send(int status, std::string_view type, std::string body) = 0;
  // An error_body(), with Retry-After where it is given.
  virtual void refuse(int status, const std::string& message,
                      std::optional<int> retry_after_s = {}) = 0;
  virtual void begin(std::string_view type) = 0;  // status 200
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;
  // Is called once, if the client goes or is too slow before the answer's end.
  virtual void when_gone(std::function<void()> tell) = 0;
};

// Takes a request and may answer later. An answer that is let go unfinished is cut: its client sees
// a broken stream, or status 500 where nothing has been sent.
using RequestHandler = std::function<void(ServedRequest, std::shared_ptr<Answer>)>;

class HttpFront {
 public:
  // Listens. bad_input: no IP address; environment_error: the place is taken or can't be had.
  static Result<std::unique_ptr<HttpFront>> listen(FrontOptions options, RequestHandler handler);
  ~HttpFront();
  HttpFront(const HttpFront&) = delete;
  HttpFront& operator=(const HttpFront&) = delete;

  std::string url() const;
  // Serves until stop(), or after drain() until the last answer has ended.
  void run();
  // From any thread: calls it in the loop's.
  void post(std::function<void()> work);
  // From the loop's thread: takes no further request.
  void drain();
  void stop();
  int64_t connections() const;

  struct Impl;

 private:
  explicit HttpFront(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::server
