// Servers on the command line.
#include "cli/server_options.h"

#include "backend/http/known_server.h"
#include "base/text/text.h"
#include "cli/option_types.h"

namespace assay::cli {

Json ServerOptions::arm_keys() const {
  Json keys = {{"url", url}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) keys[key] = value;
  };
  add("api", api);
  add("model", model);
  add("api_key_env", api_key_env);
  add("tls_ca", tls_ca);
  if (chat) keys["chat"] = true;
  return keys;
}

CLI::Option* add_server_options(CLI::App& command, ServerOptions& server, bool chooses_model) {
  CLI::Option* const named =
      command.add_option("--server", server.url, "address of a running server, http://HOST:PORT")
          ->type_name("URL");
  command
      .add_option("--api", server.api,
                  "API that the server speaks: openai, ollama or llama_server (default: the first "
                  "that it answers)")
      ->check(word_of({"openai", "ollama", "llama_server"}))
      ->needs(named)
      ->type_name("API");
  if (chooses_model) {
    command.add_option("--model", server.model, "model of the server (default: its first)")
        ->needs(named)
        ->type_name("NAME");
  }
  command
      .add_option("--api-key-env", server.api_key_env,
                  "environment variable that holds the server's key")
      ->needs(named)
      ->type_name("VARIABLE");
  command
      .add_option("--tls-ca", server.tls_ca,
                  "file of certificates to trust (default: the system's)")
      ->needs(named)
      ->type_name("FILE");
  command.add_flag("--chat", server.chat, "ask by the API of conversations")->needs(named);
  return named;
}

Result<KnownServer> ask_server(const ServerOptions& server) {
  ASSAY_TRY(const HttpOptions options, http_options(server.arm_keys()));
  HttpLoop loop;
  auto asked = ask_who(loop, options);
  if (asked) return KnownServer{std::string(asked->dialect->name()), std::move(asked->facts)};
  const std::string fix = fix_of(asked.error(), options);
  const std::string line =
      fix.empty() ? asked.error().message : fmt::format("{}; {}", asked.error().message, fix);
  const std::string& found = asked.error().error_class;
  const bool absent = found == http_class::kRefused || found == http_class::kUnreachable ||
                      found == http_class::kTimeout;
  if (absent) return environment_error("{}", line);
  return bad_input("{}", line);
}

}  // namespace assay::cli
