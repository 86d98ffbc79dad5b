// Options of the commands that ask a running server, and the first questions to it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "backend/http/dialect.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay::cli {

struct ServerOptions {
  std::string url;  // empty: no server was named
  std::string api;
  std::string model;
  std::string api_key_env;
  std::string tls_ca;
  bool chat = false;

  // The same as keys of an arm of backend http.
  Json arm_keys() const;
};

// Declares --server and what needs it; returns --server. Without `chooses_model` there is no
// --model.
CLI::Option* add_server_options(CLI::App& command, ServerOptions& server, bool chooses_model);

struct KnownServer {
  std::string api;
  ServerFacts facts;
};
// Asks the server who it is. Errors say in one line what can be done: bad_input for a wrong
// address, model, API or key, environment_error if no server answers.
Result<KnownServer> ask_server(const ServerOptions& server);

}  // namespace assay::cli
