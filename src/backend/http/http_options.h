// Options of an http arm at load, as its keys and the harness have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/http/http_loop.h"
#include "backend/http/server_process.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

struct HttpOptions {
  std::string api;  // empty: asked of the server
  std::string url;  // empty: told by the server that is started
  std::string model;
  std::string api_key_env;  // the variable with the key; empty: none
  std::string ca_file;
  std::optional<ServerSpec> start;
  bool chat = false;
  int64_t cached_prefix = 1;  // tokens that every prompt begins with, such as one for the beginning
  double timeout_s = 0;       // of a repetition; 0: none was given
};

// bad_input that names the option.
Result<HttpOptions> http_options(const Json& options);

// The arm's key, empty without one. bad_input if its variable isn't set, or can't be a key.
Result<std::string> api_key_of(const HttpOptions& options);
// The endpoint at this address with the arm's key and certificates. Fails as api_key_of().
Result<HttpEndpoint> endpoint_of(const HttpOptions& options, ServerUrl url);

// Limits for one generation: the whole ends a little before the harness' own limit, so that the
// class of the failure is known, and silence within the body after half of that.
HttpLimits generation_limits(const HttpOptions& options);

}  // namespace assay
