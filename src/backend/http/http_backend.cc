// Facts about a server before it is measured: who it is if it runs, or the program that starts it.
#include "backend/http/http_backend.h"

#include <map>

#include "backend/hashed_file.h"
#include "backend/http/http_options.h"
#include "backend/http/known_server.h"
#include "backend/http/server_facts_json.h"
#include "base/process/executable.h"
#include "base/text/text.h"

namespace assay {
namespace {

class HttpBackend final : public Backend {
 public:
  HttpBackend(std::filesystem::path program, std::filesystem::path image)
      : program_(std::move(program)), image_(std::move(image)) {}

  Status check_arm(const StudyArm& arm) const override {
    auto options = http_options(arm.options);
    if (!options) return with_context(fmt::format("arm \"{}\"", arm.name), options.error());
    if (options->url.empty() || options->start) return {};
    if (auto url = parse_server_url(options->url); !url) {
      return with_context(fmt::format("arm \"{}\"", arm.name), url.error());
    }
    return {};
  }

  WorkerCommand worker_command(const StudyArm&) const override {
    return {{program_.string(), "worker", "http"}, {}, {}, image_};
  }

  ArmReadiness readiness(const StudyArm& arm) override {
    const std::string key = to_json_line(arm.options);
    const auto known = readiness_.find(key);
    if (known != readiness_.end()) return known->second;
    return readiness_.emplace(key, find_out(arm)).first->second;
  }

  Json load_options(const StudyArm& arm, const StudyModel&, uint64_t) const override {
    return arm.options;
  }

  // Only the server knows its model.
  Result<ModelFacts> inspect(const StudyModel&, std::span<const std::string>) const override {
    return ModelFacts{};
  }

  std::optional<ReadLimit> read_limit(const StudyArm&, uint64_t) override { return std::nullopt; }

 private:
  static ArmReadiness find_out(const StudyArm& arm) {
    const auto options = http_options(arm.options);
    if (!options) return impossible_arm("invalid_options", options.error().message, "");
    return options->start ? of_program(*options) : of_server(*options);
  }

  // A server that is started for the arm tells who it is once it runs, in the cells' evidence.
  static ArmReadiness of_program(const HttpOptions& options) {
    ArmReadiness readiness;
    const std::string& name = options.start->argv.front();
    const auto program = find_executable(name, options.start->folder);
    if (!program) {
      return impossible_arm(
          "no_program",
          fmt::format("expected a program {} that can be run, found none", quoted_excerpt(name)),
          "the key start begins with a program in PATH or with its path");
    }
    readiness.program = hashed_file(*program);
    readiness.facts = {{"start", options.start->argv}};
    readiness.framework_build = fmt::format("server {}", program->filename().string());
    return readiness;
  }

  static ArmReadiness of_server(const HttpOptions& options) {
    HttpLoop loop;
    const auto asked = ask_who(loop, options);
    if (!asked) {
      return impossible_arm(asked.error().error_class, asked.error().message,
                            fix_of(asked.error(), options));
    }
    const ServerFacts& facts = asked->facts;
    ArmReadiness readiness;
    readiness.facts = server_facts_json(facts);
    readiness.facts["api"] = asked->dialect->name();
    readiness.facts["url"] = asked->endpoint.url.text();
    const std::string server =
        facts.server.empty() ? std::string(asked->dialect->name()) : facts.server;
    readiness.framework_build = facts.version.empty() ? server : server + " " + facts.version;
    return readiness;
  }

  std::filesystem::path program_, image_;
  std::map<std::string, ArmReadiness> readiness_;  // by the arm's options
};

}  // namespace

std::unique_ptr<Backend> make_http_backend(std::filesystem::path program,
                                           std::filesystem::path image) {
  return std::make_unique<HttpBackend>(std::move(program), std::move(image));
}

}  // namespace assay
