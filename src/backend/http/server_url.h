// The address of a server: "http://127.0.0.1:8080", "https://host/prefix".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

struct ServerUrl {
  bool tls = false;
  std::string host;  // a name, or a number without the brackets of IPv6
  std::string port;
  std::string prefix;  // "/api" that stands before every path; empty: none

  // As a reader types it, without a port that follows from the scheme.
  std::string text() const;
  // The value of a Host header.
  std::string host_header() const;
  friend bool operator==(const ServerUrl&, const ServerUrl&) = default;
};

// A path's last part /v1, which clients of OpenAI's API want to have there, is left out: it begins
// the questions' own paths. bad_input unless it is http:// or https://, a host, and maybe a port
// and a path. A name and password, a query and a fragment are refused: they would stand in every
// report.
Result<ServerUrl> parse_server_url(std::string_view text);

}  // namespace assay
