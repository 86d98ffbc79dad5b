// Who a running server is, asked before anything is measured.
#pragma once

#include <string>

#include "backend/http/dialect.h"
#include "backend/http/http_options.h"

namespace assay {

struct AskedServer {
  const Dialect* dialect = nullptr;
  HttpEndpoint endpoint;
  ServerFacts facts;
};

// Finds the API by itself where the options name none. Failures of the options have the class
// invalid_options or no_api_key.
HttpResult<AskedServer> ask_who(HttpLoop& loop, const HttpOptions& options);

// An action against a failure, one line; empty: none is known.
std::string fix_of(const HttpFailure& failure, const HttpOptions& options);

}  // namespace assay
