// Asks a server once a repetition, and believes no answer whose counts don't fit.
#include "backend/http/http_worker.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "backend/http/dialect.h"
#include "backend/http/generation.h"
#include "backend/http/http_options.h"
#include "backend/http/http_prompts.h"
#include "backend/http/known_server.h"
#include "backend/http/load_sender.h"
#include "backend/http/server_facts_json.h"
#include "base/clock.h"
#include "base/text/text.h"
#include "study/arm_options.h"

namespace assay {
namespace {

constexpr size_t kMostKeptTimes = 200'000;  // of events, in the evidence of a cell

std::unexpected<ErrorReply> untrue(std::string error_class, std::string message) {
  ErrorReply reply{std::move(error_class), std::move(message)};
  reply.outcome = "false_success";
  return std::unexpected(std::move(reply));
}

std::unexpected<ErrorReply> unsupported(std::string message) {
  return std::unexpected(ErrorReply{"Unsupported", std::move(message)});
}

std::unexpected<ErrorReply> no_ids(std::string message) {
  return std::unexpected(ErrorReply{kNoIds, std::move(message)});
}

double ms_between(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e6;
}

class HttpWorker final : public Worker {
 public:
  HttpWorker(std::string version, Spawner& spawner)
      : version_(std::move(version)),
        spawner_(spawner),
        prompts_(static_cast<uint64_t>(system_clock().wall_ns()) ^
                 (static_cast<uint64_t>(::getpid()) << 40)) {}

  HelloReply describe() override {
    HelloReply hello;
    hello.worker = "assay-http";
    hello.version = version_;
    hello.capabilities = {{"tokenize", true}, {"device_events", false}};
    return hello;
  }

  WorkerResult<LoadedReply> load(const LoadRequest& request) override {
    load_ = request;
    auto options = http_options(request.options);
    if (!options) return std::unexpected(ErrorReply{"invalid_options", options.error().message});
    options_ = *std::move(options);
    const int64_t begun_ns = monotonic_now_ns();
    if (auto connected = connect(); !connected)
      return std::unexpected(std::move(connected).error());
    LoadedReply loaded;
    if (takes_ids()) {
      loaded.vocab_size = *facts_.vocab_size;
      loaded.special_ids.assign(facts_.special_ids.begin(), facts_.special_ids.end());
    }
    loaded.max_positions = facts_.context_tokens;
    if (facts_.weight_bytes) loaded.weight_bytes = static_cast<int64_t>(*facts_.weight_bytes);
    read_precision(loaded);
    loaded.seconds = ms_between(begun_ns, monotonic_now_ns()) / 1e3;
    return loaded;
  }

  WorkerResult<PreparedReply> prepare(const PrepareRequest& request) override {
    requests_ = Json::array();
    kept_times_ = 0;
    if (request.shape.batch != 1) {
      return unsupported(
          fmt::format("an http arm sends one request at a time: expected batch 1, found {}",
                      request.shape.batch));
    }
    if (!takes_ids()) {
      if (auto known = learn_overhead(); !known) return std::unexpected(std::move(known).error());
    }
    return PreparedReply{};
  }

  WorkerResult<SampleReply> measure(const WireShape& shape, const WirePrompt& prompt,
                                    int64_t repetition) override {
    const std::vector<int32_t> ids = unpadded(prompt);
    HttpPrompt own;
    const auto tokens = static_cast<int64_t>(ids.size());
    if (takes_ids()) {
      own.ids = prompts_.unique_ids(ids, *facts_.vocab_size, facts_.special_ids);
    } else {
      if (tokens <= *overhead_) {
        return unsupported(fmt::format(
            "expected a prompt of more than the {} tokens that the server adds, found {}",
            *overhead_, tokens));
      }
      own.text = prompts_.words(tokens - *overhead_);
    }
    // The first token belongs to the prompt's phase, and each step gives one more.
    const int64_t asked = shape.phase == Phase::kPrefill ? 1 : shape.new_tokens + 1;
    SampleReply sample;
    sample.started_at_ns = system_clock().wall_ns();
    Generated generated;
    const auto ended = run(std::move(own), asked, generated);
    note(repetition, generated);
    if (!ended) return std::unexpected(std::move(ended).error());
    if (auto wrong = check(generated, tokens, asked, options_.cached_prefix))
      return std::unexpected(*std::move(wrong));
    return figures(shape, generated, repetition, std::move(sample));
  }

  WorkerResult<OfferedReply> offer(const OfferRequest& request, const TakeRequest& take) override {
    const bool sessions = request.load.turns > 1;
    if (sessions) {
      if (auto known = learn_overhead(); !known) return std::unexpected(std::move(known).error());
    }
    bool all_ok = true;
    const LoadTarget target{
        .endpoint = endpoint_,
        .dialect = *dialect_,
        .limits = generation_limits(options_),
        .make =
            [&](const PlannedRequest& planned, const Conversation* before) {
              return Generation{facts_.model,
                                before     ? continued_prompt(*before, planned.prompt_tokens)
                                : sessions ? text_prompt(planned.prompt_tokens)
                                           : drawn_prompt(planned.prompt_tokens),
                                planned.new_tokens, options_.chat, facts_.server};
            },
        .check = [&](const Generated& generated, const PlannedRequest& planned,
                     const Conversation* before) { return check_turn(generated, planned, before); },
        .take =
            [&](SentRequest sent) {
              all_ok = all_ok && sent.ok();
              take(std::move(sent));
            }};
    OfferedReply offered;
    offered.started_at_ns = system_clock().wall_ns();
    ++runs_;
    send_load(loop_, target, request.load);
    if (!all_ok) wait_for_death();
    if (auto died = death()) return std::unexpected(*std::move(died));
    return offered;
  }

  WorkerResult<ParityReply> parity(const ParityRequest& request) override {
    if (!takes_ids())
      return no_ids("the server takes no ids, so that its tokens can't be compared");
    if (request.shape.batch != 1) return no_ids("an http arm sends one request at a time");
    const int64_t asked = request.shape.new_tokens;
    // Asked to go on, a server never chooses an id that ends texts: its tokens would be others from
    // there on.
    auto question = dialect_->show_ids(
        {facts_.model, {unpadded(request.prompt)}, asked, options_.chat, facts_.server});
    if (!question) return no_ids("the server shows no ids of its tokens");
    question->fresh = true;
    const auto answer = ask(loop_, endpoint_, *std::move(question), generation_limits(options_));
    if (auto ended = ended_well(answer); !ended) return std::unexpected(std::move(ended).error());
    const auto piece = dialect_->read(answer->body);
    if (!piece) return std::unexpected(reply_of(piece.error()));
    if (piece->ids.empty()) return no_ids("the server shows no ids of its tokens");
    const auto found = std::ssize(piece->ids);
    ParityReply reply{{piece->ids}};
    if (found < asked && piece->finish == "eos") {
      reply.ends.push_back(piece->ids.back());
    } else if (found != asked) {
      return untrue("other_token_count", fmt::format("expected {} ids, found {}", asked, found));
    }
    return reply;
  }

  WorkerResult<TokenizedReply> tokenize(const TokenizeRequest& request) override {
    auto ids = dialect_->tokenize(loop_, endpoint_, facts_.model, request.text);
    if (!ids) return std::unexpected(reply_of(ids.error()));
    if (!*ids) return unsupported("the server has no question for the tokens of a text");
    return TokenizedReply{**std::move(ids)};
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
    json["reasons"] = {compiles ? "a server shows nothing of a compiler"
                                : "the arm names no mode that asks for a compiler"};
    json["actual"] = {{"api", dialect_->name()},
                      {"url", endpoint_.url.text()},
                      {"server", server_facts_json(facts_)},
                      {"prompts", takes_ids() ? "ids" : "words"},
                      {"unique_prefix_tokens", takes_ids() ? kUniqueIds : kUniqueWords},
                      {"started", server_ != nullptr},
                      {"requests", requests_}};
    if (runs_ > 0) json["actual"]["runs_under_load"] = runs_;
    if (overhead_) json["actual"]["tokens_added_by_server"] = *overhead_;
    if (server_) json["actual"]["start_seconds"] = server_->start_seconds();
    return EvidenceReply{std::move(json)};
  }

 private:
  bool takes_ids() const {
    return dialect_->takes_ids(options_.chat) && facts_.vocab_size.has_value();
  }

  std::expected<void, ErrorReply> connect() {
    std::string url = options_.url;
    if (options_.start) {
      const auto key = api_key_of(options_);
      if (!key) return std::unexpected(ErrorReply{"no_api_key", key.error().message});
      options_.start->api_key = *key;
      auto started = start_server(spawner_, loop_, *options_.start);
      if (!started) return std::unexpected(reply_of(started.error()));
      server_ = *std::move(started);
      url = server_->url().text();
    }
    HttpOptions running = options_;
    running.url = url;
    auto asked = ask_who(loop_, running);
    if (!asked) return std::unexpected(reply_of(asked.error()));
    dialect_ = asked->dialect;
    endpoint_ = std::move(asked->endpoint);
    facts_ = std::move(asked->facts);
    return {};
  }

  // "F16" is a type; "Q4_1" is a quantisation of one that nobody tells. A server that says nothing
  // leaves both empty: the study's word is no answer of the server's.
  void read_precision(LoadedReply& loaded) const {
    static const std::map<std::string, std::string> types = {
        {"F32", "fp32"}, {"all F32", "fp32"}, {"F16", "fp16"}, {"BF16", "bf16"}};
    const std::string said = facts_.quantization.substr(0, facts_.quantization.find(" (guessed)"));
    const auto type = types.find(said);
    (type == types.end() ? loaded.quantization : loaded.dtype) =
        type == types.end() ? said : type->second;
  }

  static std::vector<int32_t> unpadded(const WirePrompt& prompt) {
    const std::vector<int32_t>& row = prompt.ids.front();
    const int32_t pad = prompt.pad.empty() ? 0 : prompt.pad.front();
    return {row.begin() + pad, row.end()};
  }

  std::expected<void, ErrorReply> run(HttpPrompt prompt, int64_t new_tokens, Generated& generated) {
    const Generation generation{facts_.model, std::move(prompt), new_tokens, options_.chat,
                                facts_.server};
    HttpRequest request = dialect_->generate(generation);
    request.fresh = true;
    return ended_well(generate(loop_, endpoint_, *dialect_, std::move(request),
                               generation_limits(options_), generated));
  }

  template <typename T>
  std::expected<void, ErrorReply> ended_well(const HttpResult<T>& result) const {
    // A server that was there before the one started for the arm answers, too.
    if (result && (!server_ || server_->end_text().empty())) return {};
    ErrorReply reply = result ? ErrorReply{"server_died", "it ended while it was asked"}
                              : reply_of(result.error());
    wait_for_death();
    if (auto died = death()) {
      died->message += ": " + reply.message;
      return std::unexpected(*std::move(died));
    }
    return std::unexpected(std::move(reply));
  }

  // A connection may end before its process has.
  void wait_for_death() const {
    if (server_) ::usleep(100'000);
  }

  // The end of the server that was started for the arm; absent: it runs, or there is none.
  std::optional<ErrorReply> death() const {
    const std::string end = server_ ? server_->end_text() : "";
    if (end.empty()) return std::nullopt;
    ErrorReply reply{end, fmt::format("the server that was started for the arm ended ({})", end)};
    reply.outcome = "crash";
    return reply;
  }

  // A prompt of so many tokens that no other has.
  HttpPrompt drawn_prompt(int64_t tokens) {
    if (!takes_ids()) return text_prompt(tokens);
    return {prompts_.drawn_ids(tokens, *facts_.vocab_size, facts_.special_ids)};
  }

  // A prompt shorter than what the server adds is another one than asked for: its count says so.
  HttpPrompt text_prompt(int64_t tokens) {
    return {.text = prompts_.words(std::max<int64_t>(tokens - *overhead_, 1))};
  }

  // All that was said, and so many words more.
  HttpPrompt continued_prompt(const Conversation& before, int64_t words) {
    HttpPrompt prompt{.text = prompts_.words(words), .history = before.prompt.history};
    if (options_.chat) {
      prompt.history.push_back(before.prompt.text);
      prompt.history.push_back(before.answer);
    } else {
      prompt.text = before.prompt.text + before.answer + " " + prompt.text;
    }
    return prompt;
  }

  // The tokens that the server puts around a text: those of a template, and the beginning's.
  std::expected<void, ErrorReply> learn_overhead() {
    if (overhead_) return {};
    constexpr int64_t kWordsAsked = 40;
    Generated generated;
    auto ended = run({{}, prompts_.words(kWordsAsked)}, 1, generated);
    note(std::nullopt, generated);
    if (!ended) return ended;
    if (!generated.figures.prompt_tokens) {
      return std::unexpected(ErrorReply{
          "no_token_count", "expected the server to count the prompt's tokens, found no count"});
    }
    const int64_t overhead = *generated.figures.prompt_tokens - kWordsAsked;
    if (overhead < 0 || overhead > 10'000) {
      return std::unexpected(ErrorReply{
          "other_prompt_count",
          fmt::format(
              "expected {} words to be as many tokens and those of a template, found {} tokens",
              kWordsAsked, *generated.figures.prompt_tokens)});
    }
    overhead_ = overhead;
    return {};
  }

  // A later turn's prompt is as long as the server says, but longer than that of the turn before
  // it; all that was said may come from its cache.
  std::optional<ErrorReply> check_turn(const Generated& generated, const PlannedRequest& planned,
                                       const Conversation* before) const {
    if (!before)
      return check(generated, planned.prompt_tokens, planned.new_tokens, options_.cached_prefix);
    const int64_t said = generated.figures.prompt_tokens.value_or(before->tokens);
    // Where an answer and the next words meet, and around special tokens, counts may differ.
    if (said < before->tokens / 2) {
      return untrue("other_prompt_count",
                    fmt::format("expected a prompt with the {} of the session, found {}",
                                counted(before->tokens, "token"), said))
          .error();
    }
    return check(generated, said, planned.new_tokens, before->tokens + options_.cached_prefix);
  }

  // Says what is wrong with an answer that came whole.
  std::optional<ErrorReply> check(const Generated& generated, int64_t prompt_tokens, int64_t asked,
                                  int64_t most_cached) const {
    const ServerFigures& figures = generated.figures;
    if (!figures.new_tokens) {
      return untrue("no_token_count", "expected the server to count its tokens, found no count")
          .error();
    }
    if (*figures.new_tokens != asked) {
      return untrue("other_token_count",
                    fmt::format("expected {}, found {} (finish reason: {})",
                                counted(asked, "new token"), *figures.new_tokens,
                                generated.finish.empty() ? "none" : generated.finish))
          .error();
    }
    if (figures.prompt_tokens && *figures.prompt_tokens != prompt_tokens) {
      return untrue("other_prompt_count",
                    fmt::format("expected a prompt of {}, found {}",
                                counted(prompt_tokens, "token"), *figures.prompt_tokens))
          .error();
    }
    if (figures.cached_tokens.value_or(0) > most_cached) {
      return untrue("prompt_cached",
                    fmt::format("expected at most {} of the prompt from the server's cache (key "
                                "cached_prefix), found {}",
                                counted(most_cached, "token"), *figures.cached_tokens))
          .error();
    }
    if (generated.token_ns.empty())
      return untrue("no_token", "expected an event with a token, found none").error();
    return std::nullopt;
  }

  WorkerResult<SampleReply> figures(const WireShape& shape, const Generated& generated,
                                    int64_t repetition, SampleReply sample) {
    const ServerFigures& said = generated.figures;
    const int64_t first_ns = generated.token_ns.front(), last_ns = generated.finish_ns;
    sample.repetition = repetition;
    sample.tokens = shape.phase == Phase::kPrefill ? 1 : shape.new_tokens;
    const double to_first = ms_between(generated.connected_ns, first_ns);
    switch (shape.phase) {
      case Phase::kPrefill:
        sample.client_ms = to_first;
        sample.server_ms = said.prompt_ms;
        sample.latency_ms = sample.server_ms.value_or(to_first);
        break;
      case Phase::kKvDecode: {
        sample.client_ms = ms_between(first_ns, last_ns);
        // Without the server's own time, tokens that come several at once leave too little to time.
        if (!said.generation_ms && std::ssize(generated.token_ns) * 2 <= shape.new_tokens + 1) {
          return untrue("coarse_events",
                        fmt::format("expected about an event a token, found {} for {}",
                                    counted(std::ssize(generated.token_ns), "event"),
                                    counted(shape.new_tokens + 1, "token")));
        }
        sample.server_ms = said.generation_ms;
        sample.latency_ms = sample.server_ms.value_or(*sample.client_ms);
        break;
      }
      case Phase::kLoad:  // has runs, not samples
      case Phase::kE2eKv:
        sample.client_ms = ms_between(generated.connected_ns, last_ns);
        if (said.prompt_ms && said.generation_ms)
          sample.server_ms = *said.prompt_ms + *said.generation_ms;
        sample.latency_ms = sample.client_ms;
        sample.ttft_ms = to_first;
        break;
    }
    if (said.cached_tokens) sample.counters[Counter::kCachedTokens] = *said.cached_tokens;
    // Every prompt is another one, so that outputs can't be compared: no hash.
    sample.cold = cold_.insert({shape.phase, shape.new_tokens}).second;
    return sample;
  }

  // Without a repetition: the request that counts a text's tokens, which is a server's first.
  void note(std::optional<int64_t> repetition, const Generated& generated) {
    Json request = {{"repetition", repetition ? Json(*repetition) : Json(nullptr)}};
    const auto add = [&](const char* name, const auto& value) {
      if (value) request[name] = *value;
    };
    add("prompt_tokens", generated.figures.prompt_tokens);
    add("cached_tokens", generated.figures.cached_tokens);
    add("new_tokens", generated.figures.new_tokens);
    add("server_prompt_ms", generated.figures.prompt_ms);
    add("server_generation_ms", generated.figures.generation_ms);
    add("server_load_ms", generated.figures.load_ms);
    if (generated.token_ns.size() + kept_times_ <= kMostKeptTimes) {
      kept_times_ += generated.token_ns.size();
      Json times = Json::array();
      for (const int64_t at : generated.token_ns)
        times.push_back((at - generated.connected_ns) / 1000);
      request["token_events_us"] = std::move(times);
    }
    requests_.push_back(std::move(request));
  }

  std::string version_;
  Spawner& spawner_;
  HttpLoop loop_;
  HttpPrompts prompts_;
  LoadRequest load_;
  HttpOptions options_;
  std::unique_ptr<ServerProcess> server_;
  HttpEndpoint endpoint_;
  const Dialect* dialect_ = nullptr;
  ServerFacts facts_;
  std::optional<int64_t> overhead_;  // of a text, in tokens
  std::set<std::pair<Phase, int64_t>> cold_;
  Json requests_ = Json::array();  // of the prepared cell
  size_t kept_times_ = 0;
  int64_t runs_ = 0;  // under load
};

}  // namespace

std::unique_ptr<Worker> make_http_worker(std::string version, Spawner& spawner) {
  return std::make_unique<HttpWorker>(std::move(version), spawner);
}

}  // namespace assay
