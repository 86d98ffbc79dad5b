// Questions in the order in which their answers can be wrong.
#include "backend/http/known_server.h"

#include "base/text/text.h"

namespace assay {

HttpResult<AskedServer> ask_who(HttpLoop& loop, const HttpOptions& options) {
  auto url = parse_server_url(options.url);
  if (!url) return http_failure("invalid_options", url.error().message);
  auto endpoint = endpoint_of(options, *std::move(url));
  if (!endpoint) return http_failure("no_api_key", endpoint.error().message);
  AskedServer asked;
  asked.endpoint = *std::move(endpoint);
  asked.dialect = find_dialect(options.api);
  if (asked.dialect == nullptr) {
    const auto probed = probe_dialect(loop, asked.endpoint);
    if (!probed) return std::unexpected(probed.error());
    asked.dialect = *probed;
  }
  auto facts = asked.dialect->facts(loop, asked.endpoint, options.model);
  if (!facts) return std::unexpected(std::move(facts).error());
  asked.facts = *std::move(facts);
  return asked;
}

std::string fix_of(const HttpFailure& failure, const HttpOptions& options) {
  const std::string& found = failure.error_class;
  if (found == http_class::kRefused || found == http_class::kUnreachable ||
      found == http_class::kHostNotFound) {
    return "start the server, or name its address (url, --server)";
  }
  if (found == "http_401" || found == "http_403") {
    return options.api_key_env.empty()
               ? "name the variable that holds the server's key (api_key_env, --api-key-env)"
               : fmt::format("put the server's key into the variable {}", options.api_key_env);
  }
  if (found == "model_not_found") return "name one of these (model, --model)";
  if (found == http_class::kTls) {
    return "name a file of certificates to trust (tls_ca, --tls-ca), or http:// if it speaks no "
           "TLS "
           "(url, --server)";
  }
  if (found == http_class::kReset && !options.url.starts_with("https:"))
    return "name https:// if it speaks TLS (url, --server)";
  if (found == http_class::kMalformed || found == "http_404") {
    return options.api.empty() ? "name the address of a server's API (url, --server)"
                               : "leave the API out, so that it is found (api, --api)";
  }
  return "";
}

}  // namespace assay
