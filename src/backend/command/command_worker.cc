// Runs the command for each request.
#include "backend/command/command_worker.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "backend/command/command_options.h"
#include "backend/command/figures.h"
#include "backend/command/git.h"
#include "base/clock.h"
#include "base/process/thread_pool.h"
#include "base/text/text.h"
#include "study/arm_options.h"

namespace assay {
namespace {

// Writes to the log of this process; a failed write loses the text, as in any program.
void write_log(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

std::unexpected<ErrorReply> refused(std::string error_class, const std::string& what) {
  return std::unexpected(ErrorReply{
      std::move(error_class), fmt::format("a command {}: its output holds figures alone", what)});
}

ErrorReply reply_of(const NoFigures& none) {
  ErrorReply reply{none.error_class, none.message};
  reply.outcome = none.outcome;
  return reply;
}

// The last invocation of the prepared cell, and the number of its samples given out.
struct Printed {
  InvocationSpec spec;
  Invocation invocation;
  std::vector<Figures> figures;
  AskedTokens asked;
  size_t next = 0;
};

class CommandWorker final : public Worker {
 public:
  CommandWorker(std::string version, Spawner& spawner)
      : version_(std::move(version)), spawner_(spawner) {}

  HelloReply describe() override {
    HelloReply hello;
    hello.worker = "assay-command";
    hello.version = version_;
    hello.capabilities = {{"tokenize", false}, {"device_events", false}};
    return hello;
  }

  WorkerResult<LoadedReply> load(const LoadRequest& request) override {
    auto options = command_options(request.options);
    if (!options) {
      return std::unexpected(ErrorReply{"invalid_options", options.error().message});
    }
    load_ = request;
    options_ = std::move(options).value();
    LoadedReply loaded;
    loaded.dtype = request.dtype;
    return loaded;
  }

  WorkerResult<PreparedReply> prepare(const PrepareRequest&) override {
    printed_.reset();
    return PreparedReply{};
  }

  WorkerResult<SampleReply> measure(const WireShape& shape, const WirePrompt& prompt,
                                    int64_t) override {
    if (!printed_) {
      if (const auto ran = run(shape, prompt); !ran) return std::unexpected(ran.error());
    }
    if (printed_->next == printed_->figures.size()) {
      return std::unexpected(ErrorReply{
          "too_few_samples", fmt::format("expected more than the {} that the command printed",
                                         counted(std::ssize(printed_->figures), "sample"))});
    }
    const bool first = printed_->next == 0;
    auto sample = sample_of(printed_->figures[printed_->next++], printed_->asked);
    if (!sample) return std::unexpected(reply_of(sample.error()));
    sample->started_at_ns = printed_->invocation.started_at_ns;
    if (first) sample->peak_rss_bytes = printed_->invocation.end.peak_rss_bytes;
    sample->recalled = !first;
    return *std::move(sample);
  }

  WorkerResult<ParityReply> parity(const ParityRequest&) override {
    return refused(kNoIds, "shows no tokens");
  }

  WorkerResult<TokenizedReply> tokenize(const TokenizeRequest&) override {
    return refused("Unsupported", "tokenizes nothing");
  }

  WorkerResult<EvidenceReply> evidence(const EvidenceRequest& request) override {
    Json json;
    json["phase"] = phase_name(request.phase);
    json["requested"] = {{"mode", load_.mode},
                         {"cache", load_.cache},
                         {"dtype", load_.dtype},
                         {"dynamic", load_.dynamic},
                         {"options", load_.options}};
    json["fallback"] = false;
    const bool compiles = mode_compiles(load_.mode);
    json["compiler_real"] = compiles ? "unproven" : "not_applicable";
    json["reasons"] = {compiles ? fmt::format("the study calls the mode \"{}\", and what a command "
                                              "prints is no evidence of a compiler",
                                              load_.mode)
                                : std::string("the arm names no mode that asks for a compiler")};
    json["actual"] = Json::object();
    if (printed_) json["actual"]["invocation"] = invocation_json(*printed_);
    if (!options_->checkout.folder.empty()) json["actual"]["checkout"] = checkout_json();
    return EvidenceReply{std::move(json)};
  }

 private:
  std::expected<void, ErrorReply> run(const WireShape& shape, const WirePrompt& prompt) {
    const int64_t padded = prompt.padded_len();
    const int64_t tokens = padded - (prompt.pad.empty() ? 0 : prompt.pad.front());
    Printed printed;
    printed.asked = {shape.phase, shape.batch, tokens, shape.new_tokens};
    printed.spec = fill_command(*options_, values_of(printed.asked));
    printed.spec.echo = write_log;
    auto invocation = invoke(spawner_, printed.spec);
    if (!invocation) {
      return std::unexpected(ErrorReply{"spawn_error", invocation.error().message});
    }
    printed.invocation = *std::move(invocation);
    if (const auto failure = failure_of(printed.invocation)) {
      ErrorReply reply = reply_of(*failure);
      reply.out_of_memory = ran_out_of_memory(printed.invocation, *failure);
      if (reply.out_of_memory) reply.outcome.clear();
      keep_failed(std::move(printed));
      return std::unexpected(std::move(reply));
    }
    auto figures = read_figures(options_->patterns, printed.invocation);
    if (!figures) {
      keep_failed(std::move(printed));
      return std::unexpected(reply_of(figures.error()));
    }
    printed.figures = *std::move(figures);
    if (std::ssize(printed.figures) < options_->samples) {
      const auto found = std::ssize(printed.figures);
      keep_failed(std::move(printed));
      return std::unexpected(
          ErrorReply{"too_few_samples", fmt::format("expected {} of each invocation (the arm's "
                                                    "samples), found {}",
                                                    counted(options_->samples, "sample"), found)});
    }
    printed_ = std::move(printed);
    return {};
  }

  // Keeps a failed invocation for the evidence; it has no samples to give out.
  void keep_failed(Printed printed) {
    printed.next = printed.figures.size();
    printed_ = std::move(printed);
  }

  // A path that is there is told whole: the command may start in another folder.
  std::string model_value() const {
    std::error_code error;
    if (!std::filesystem::exists(load_.model, error)) return load_.model;
    const auto whole = std::filesystem::absolute(load_.model, error);
    return error ? load_.model : whole.lexically_normal().string();
  }

  std::map<std::string, std::string> values_of(const AskedTokens& asked) const {
    return {{"model", model_value()},
            {"dtype", load_.dtype},
            {"mode", load_.mode},
            {"cache", load_.cache},
            {"dynamic", load_.dynamic},
            {"threads", std::to_string(load_.threads > 0 ? load_.threads
                                                         : static_cast<int64_t>(available_cpus()))},
            {"phase", std::string(phase_name(asked.phase))},
            {"batch", std::to_string(asked.batch)},
            {"prompt_tokens", std::to_string(asked.prompt_tokens)},
            {"new_tokens", std::to_string(asked.new_tokens)}};
  }

  Json invocation_json(const Printed& printed) const {
    Json json = {{"argv", printed.spec.argv},
                 {"folder", printed.spec.folder.string()},
                 {"end", printed.invocation.end.text()},
                 {"seconds", printed.invocation.seconds},
                 {"peak_rss_bytes", printed.invocation.end.peak_rss_bytes},
                 {"samples_expected", options_->samples},
                 {"samples_printed", printed.figures.size()},
                 {"samples_taken", printed.next}};
    json["samples"] = Json::array();
    constexpr size_t kShown = 1000;
    for (size_t i = 0; i < std::min(printed.figures.size(), kShown); ++i) {
      json["samples"].push_back(printed.figures[i]);
    }
    return json;
  }

  // The revision as it is after the command has run in it.
  Json checkout_json() const {
    const CheckedOut& checkout = options_->checkout;
    Json json = {{"folder", checkout.folder}, {"sha", checkout.sha}};
    const auto status =
        run_git(spawner_, checkout.folder, {"status", "--porcelain", "--untracked-files=no"});
    if (status) json["files_changed"] = !status->empty();
    return json;
  }

  std::string version_;
  Spawner& spawner_;
  LoadRequest load_;
  std::optional<CommandOptions> options_;  // since load()
  std::optional<Printed> printed_;         // by the prepared cell's command
};

}  // namespace

std::unique_ptr<Worker> make_command_worker(std::string version, Spawner& spawner) {
  return std::make_unique<CommandWorker>(std::move(version), spawner);
}

}  // namespace assay
