// Requests that a server answers to nobody who asks from elsewhere than it may, or without its key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http_front.h"

namespace assay::server {

// The reason why a request isn't served.
struct Refusal {
  int status = 400;  // 0: its client has gone, and is told nothing
  std::string message = {};
  std::optional<int> retry_after_s = {};
};

// A request's parts by which it is known who asks; empty where it hasn't got them.
struct RequestSender {
  unsigned version = 11;  // 10 times HTTP's
  std::string_view path, host, origin, fetch_site, authorization;
};

// Absent: the request may be served.
std::optional<Refusal> wrong_sender(const RequestSender& sender, const FrontOptions& options);

}  // namespace assay::server
