// The table of dialects.
#include "backend/http/dialect.h"

#include <array>

#include "backend/http/dialects.h"
#include "base/add_once.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"llama_server", "ollama", "openai"};

}  // namespace

std::span<const std::string_view> dialect_names() {
  return kNames;
}

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect* const dialect :
       {&llama_server_dialect(), &ollama_dialect(), &openai_dialect()}) {
    if (dialect->name() == name) return dialect;
  }
  return nullptr;
}

HttpResult<const Dialect*> probe_dialect(HttpLoop& loop, const HttpEndpoint& endpoint) {
  std::vector<std::string> asked, said;  // APIs, and each different answer
  const Dialect* lesser = nullptr;
  for (const std::string_view name : kNames) {
    const Dialect* const dialect = find_dialect(name);
    const auto facts = dialect->facts(loop, endpoint, "");
    if (facts) {
      // Another server that speaks Ollama's API too can be asked for more by the other one.
      if (dialect != &ollama_dialect() || facts->server == kOllama) return dialect;
      lesser = dialect;
      continue;
    }
    if (lesser) break;
    const HttpFailure& failure = facts.error();
    // A server that can't be spoken to can't by another API either; nor does it take another key.
    const bool answered = failure.error_class.starts_with("http_") ||
                          failure.error_class == http_class::kMalformed ||
                          failure.error_class == "model_not_found";
    if (!answered || failure.error_class == "http_401" || failure.error_class == "http_403")
      return std::unexpected(failure);
    asked.emplace_back(name);
    add_once(said, failure.message);
  }
  if (lesser) return lesser;
  return http_failure(
      http_class::kMalformed,
      fmt::format("expected a server of an API that assay knows ({}) at {}, found none: {}",
                  join(asked, ", "), endpoint.url.text(), join(said, "; ")));
}

}  // namespace assay
