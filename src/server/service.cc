#include "server/service.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <expected>
#include <utility>

#include "base/clock.h"
#include "base/files/files.h"
#include "base/text/text.h"
#include "server/answered_request.h"
#include "server/aside.h"
#include "server/page.h"

namespace assay::server {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr int kRetryAfter_s = 1;
// A larger body takes milliseconds to parse and to tokenize.
constexpr size_t kQuickBytes = size_t{32} << 10;
// Probabilities that an answer holds until its end, where it isn't streamed.
constexpr int64_t kMostToldAtOnce = int64_t{1} << 17;

// A request that isn't served, and why.
struct Refused {
  int status = 400;
  std::string message;
};

template <typename T>
using Read = std::expected<T, Refused>;

std::unexpected<Refused> refused(std::string message, int status = 400) {
  return std::unexpected(Refused{status, std::move(message)});
}

struct ReadRequest {
  ApiRequest request;  // without its prompts
  std::vector<TokenAsk> asks;
};

// Memory of this process, as the kernel tells it; absent: it doesn't.
std::optional<int64_t> resident_bytes() {
  const auto statm = read_file("/proc/self/statm");
  if (!statm) return std::nullopt;
  const size_t second = statm->find(' ') + 1;
  int64_t pages = 0;
  const auto [end, error] =
      std::from_chars(statm->data() + second, statm->data() + statm->size(), pages);
  if (error != std::errc()) return std::nullopt;
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

struct Service::Impl {
  ServedModel model;
  Generator& generator;
  const engine::Tokenizer* tokenizer;
  std::optional<ChatTemplate> chat;
  Post post;
  ServiceCounters counters = {};
  std::function<std::string()> more_metrics = {};
  int64_t numbers = 0;
  std::optional<Aside> aside = {};  // the last: it uses all others

  using Serve = void (Impl::*)(ServedRequest&, const std::shared_ptr<Answer>&);
  struct Route {
    std::string_view method;
    std::string_view path;
    Serve serve;
  };

  void send(const std::shared_ptr<Answer>& answer, const Json& json) const {
    answer->send(200, kJson, to_json_line(json));
  }

  // Reads the body by `read`, which changes nothing, beside the loop where that takes long, and
  // then in the loop answers by `reply`, unless it was refused.
  template <typename T>
  void with_body(ServedRequest& asked, std::shared_ptr<Answer> answer,
                 std::function<Read<T>(const Json&)> read,
                 std::function<void(T, const std::shared_ptr<Answer>&)> reply) {
    const auto take = [this, read = std::move(read)](const std::string& text) -> Read<T> {
      auto body = parse_json(text, "body");
      if (!body) return refused(body.error().message);
      if (!body->is_object()) return refused("body: expected a JSON object, found another value");
      return read(*body);
    };
    const auto give = [this, reply = std::move(reply)](Read<T> found,
                                                       const std::shared_ptr<Answer>& to) {
      if (!found) return refuse(to, found.error().status, found.error().message);
      reply(*std::move(found), to);
    };
    if (!aside || asked.body.size() <= kQuickBytes) return give(take(asked.body), answer);
    // The answer, which is the loop's, may end nowhere else.
    aside->post([this, take, give, share = std::move(asked.share), text = std::move(asked.body),
                 answer = std::move(answer)]() mutable {
      auto found = std::make_shared<Read<T>>(take(text));
      post([give, found = std::move(found), answer = std::move(answer)] {
        give(std::move(*found), answer);
      });
    });
  }

  void refuse(const std::shared_ptr<Answer>& answer, int status, const std::string& message) {
    ++counters.refused;
    answer->refuse(status, message);
  }

  // Refuses a request that names another model.
  Read<void> check_model(const Json& body) const {
    for (const char* const key : {"model", "name"}) {
      const auto named = body.find(key);
      if (named == body.end() || named->is_null()) continue;
      if (*named == model.name || *named == model.name + ":latest") continue;
      return refused(fmt::format("model: expected {}, found {}", json_quoted(model.name),
                                 quoted_excerpt(to_json_line(*named))),
                     404);
    }
    return {};
  }

  Result<std::vector<int32_t>> encode(const std::string& text, bool add_special) const {
    if (!tokenizer)
      return bad_input(
          "prompt: expected token ids, since the model has no tokenizer, found a text");
    return tokenizer->encode(text, add_special);
  }

  Result<std::vector<int32_t>> ids_of(const ApiRequest& request, const ApiPrompt& prompt) const {
    if (const auto* const ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
    if (const auto* const text = std::get_if<std::string>(&prompt)) return encode(*text, true);
    const auto& messages = std::get<std::vector<ChatMessage>>(prompt);
    if (chat) {
      ASSAY_TRY(const std::string text, chat->render(messages));
      return encode(text, false);  // the template has the special tokens
    }
    if (request.needs_template)
      return bad_input("messages: expected a model with a chat template, found one without");
    std::string text;
    for (const ChatMessage& message : messages)
      text += (text.empty() ? "" : "\n") + message.content;
    return encode(text, true);
  }

  Result<TokenAsk> token_ask(const ApiRequest& request, const ApiPrompt& prompt) const {
    TokenAsk ask;
    ASSAY_TRY(ask.prompt, ids_of(request, prompt));
    if (ask.prompt.empty()) return bad_input("prompt: expected at least one token, found none");
    for (const int32_t id : ask.prompt) {
      if (id < 0 || id >= model.vocab_size)
        return bad_input("prompt: expected ids below {}, found {}", model.vocab_size, id);
    }
    const int64_t room = model.capacity - std::ssize(ask.prompt);
    if (room < 1 || (!request.cut_to_room && request.most_tokens.value_or(1) > room)) {
      return bad_input("prompt: expected at most {} tokens with the new ones, found {} and {}",
                       model.capacity, ask.prompt.size(), request.most_tokens.value_or(1));
    }
    ask.most_tokens = std::min(request.most_tokens.value_or(room), room);
    ask.least_tokens = request.least_tokens;
    ask.ignore_ends = request.ignore_ends;
    ask.sampling = request.sampling;
    ask.likeliest = request.likeliest;
    ASSAY_CHECK(engine::check_sampling(ask.sampling, model.vocab_size));
    return ask;
  }

  Read<ReadRequest> read_request(ApiKind kind, const Json& body) const {
    if (auto served = check_model(body); !served) return std::unexpected(served.error());
    auto request = parse_api_request(kind, body);
    if (!request) return refused(request.error().message);
    std::vector<TokenAsk> asks;
    int64_t told = 0;
    for (const ApiPrompt& prompt : request->prompts) {
      auto ask = token_ask(*request, prompt);
      if (!ask) return refused(ask.error().message);
      told += request->choices * ask->most_tokens * (1 + request->likeliest.value_or(0));
      asks.push_back(*std::move(ask));
    }
    if (request->likeliest && !request->stream && told > kMostToldAtOnce) {
      return refused(
          fmt::format("logprobs: expected at most {} of all tokens together, or a stream, found {}",
                      kMostToldAtOnce, told));
    }
    request->prompts.clear();
    return ReadRequest{*std::move(request), std::move(asks)};
  }

  void generate(ApiKind kind, ServedRequest& asked, const std::shared_ptr<Answer>& answer) {
    with_body<ReadRequest>(
        asked, answer, [this, kind](const Json& body) { return read_request(kind, body); },
        [this, kind](ReadRequest read, const std::shared_ptr<Answer>& to) {
          begin(kind, std::move(read), to);
        });
  }

  void begin(ApiKind kind, ReadRequest read, const std::shared_ptr<Answer>& answer) {
    const auto under_way =
        std::make_shared<AnsweredRequest>(answer, answer_shape(kind, model, numbers++),
                                          std::move(read.request), tokenizer, generator, counters);
    if (!under_way->ask(read.asks)) {
      ++counters.refused;
      return answer->refuse(503, "expected fewer requests, found as many waiting as may",
                            kRetryAfter_s);
    }
    answer->when_gone([under_way = std::weak_ptr(under_way)] {
      if (const auto gone = under_way.lock()) gone->cancel();
    });
  }

  void completion(ServedRequest& request, const std::shared_ptr<Answer>& answer) {
    generate(ApiKind::kCompletion, request, answer);
  }
  void chat_completion(ServedRequest& request, const std::shared_ptr<Answer>& answer) {
    generate(ApiKind::kChat, request, answer);
  }
  void ollama_generate(ServedRequest& request, const std::shared_ptr<Answer>& answer) {
    generate(ApiKind::kOllamaGenerate, request, answer);
  }
  void ollama_chat(ServedRequest& request, const std::shared_ptr<Answer>& answer) {
    generate(ApiKind::kOllamaChat, request, answer);
  }
  void models(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    send(answer, openai_models(model));
  }
  void tags(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    send(answer, ollama_tags(model));
  }
  void ps(ServedRequest&, const std::shared_ptr<Answer>& answer) { send(answer, ollama_ps(model)); }
  void show(ServedRequest& request, const std::shared_ptr<Answer>& answer) {
    with_body<Json>(
        request, answer,
        [this](const Json& body) -> Read<Json> {
          if (auto served = check_model(body); !served) return std::unexpected(served.error());
          return ollama_show(model, chat.has_value());
        },
        [this](const Json& told, const std::shared_ptr<Answer>& to) { send(to, told); });
  }
  void version(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    send(answer, {{"version", model.version}, {"server", "assay"}});  // so it isn't Ollama
  }
  void health(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    send(answer, {{"status", "ok"}});
  }

  void page(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    answer->send(200, "text/html; charset=utf-8", std::string(page_html()));
  }
  void page_style(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    answer->send(200, "text/css; charset=utf-8", std::string(page_css()));
  }
  void page_script(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    answer->send(200, "text/javascript; charset=utf-8", std::string(page_js()));
  }

  // The page's question, once a second.
  void status(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    const QueueState queue = generator.state();
    Json told = {{"model", model.name},
                 {"architecture", model.architecture},
                 {"dtype", model.dtype},
                 {"device", model.device},
                 {"mode", model.mode},
                 {"version", model.version},
                 {"started_s", model.started_s},
                 {"capacity", model.capacity},
                 {"weight_bytes", model.weight_bytes},
                 {"cache_bytes", model.cache_bytes},
                 {"tokenizer", tokenizer != nullptr},
                 {"chats", chat.has_value()},
                 {"slots", queue.slots},
                 {"running", queue.running},
                 {"waiting", queue.waiting},
                 {"most_waiting", queue.most_waiting},
                 {"prompt_tokens", counters.prompt_tokens},
                 {"new_tokens", counters.new_tokens},
                 {"now_ms", monotonic_now_ns() / 1'000'000}};
    if (const auto resident = resident_bytes()) told["resident_bytes"] = *resident;
    send(answer, told);
  }

  // vLLM's question ("prompt") and llama.cpp's ("content").
  void tokenize(ServedRequest& request, const std::shared_ptr<Answer>& answer) {
    with_body<Json>(
        request, answer,
        [this](const Json& body) -> Read<Json> {
          const bool as_llama = !body.contains("prompt");
          const auto text = json_string(body, as_llama ? "content" : "prompt", "body");
          if (!text) return refused(text.error().message);
          const auto special = json_bool_or(body, as_llama ? "add_special" : "add_special_tokens",
                                            !as_llama, "body");
          if (!special) return refused(special.error().message);
          const auto ids = encode(*text, *special);
          if (!ids) return refused(ids.error().message);
          return Json{{"count", ids->size()}, {"max_model_len", model.capacity}, {"tokens", *ids}};
        },
        [this](const Json& told, const std::shared_ptr<Answer>& to) { send(to, told); });
  }

  void metrics(ServedRequest&, const std::shared_ptr<Answer>& answer) {
    std::string text;
    const auto add = [&](const char* name, const char* type, const char* help, int64_t value,
                         const std::string& labels = "") {
      if (text.find(fmt::format("# TYPE {} ", name)) == std::string::npos)
        text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
      text += fmt::format("{}{} {}\n", name, labels, value);
    };
    const QueueState queue = generator.state();
    const char* const ended = "Generations that ended, and requests that were refused.";
    add("assay_requests_total", "counter", ended, counters.ok, "{outcome=\"ok\"}");
    add("assay_requests_total", "counter", ended, counters.refused, "{outcome=\"refused\"}");
    add("assay_requests_total", "counter", ended, counters.cancelled, "{outcome=\"cancelled\"}");
    add("assay_requests_total", "counter", ended, counters.failed, "{outcome=\"failed\"}");
    add("assay_prompt_tokens_total", "counter", "Tokens of prompts.", counters.prompt_tokens);
    add("assay_cached_tokens_total", "counter", "Tokens of prompts that weren't computed.",
        counters.cached_tokens);
    add("assay_new_tokens_total", "counter", "Tokens generated.", counters.new_tokens);
    add("assay_requests_running", "gauge", "Generations under way.", queue.running);
    add("assay_requests_waiting", "gauge", "Generations that wait for a slot.", queue.waiting);
    add("assay_slots", "gauge", "Generations at a time.", queue.slots);
    if (more_metrics) text += more_metrics();
    answer->send(200, "text/plain; version=0.0.4", std::move(text));
  }

  static constexpr auto kRoutes = std::to_array<Route>({
      {"GET", "/", &Impl::page},
      {"GET", "/page.css", &Impl::page_style},
      {"GET", "/page.js", &Impl::page_script},
      {"GET", "/status", &Impl::status},
      {"POST", "/v1/completions", &Impl::completion},
      {"POST", "/v1/chat/completions", &Impl::chat_completion},
      {"GET", "/v1/models", &Impl::models},
      {"POST", "/api/generate", &Impl::ollama_generate},
      {"POST", "/api/chat", &Impl::ollama_chat},
      {"GET", "/api/tags", &Impl::tags},
      {"GET", "/api/ps", &Impl::ps},
      {"POST", "/api/show", &Impl::show},
      {"GET", "/api/version", &Impl::version},
      {"GET", "/version", &Impl::version},
      {"POST", "/tokenize", &Impl::tokenize},
      {"GET", "/health", &Impl::health},
      {"GET", "/metrics", &Impl::metrics},
  });
};

Service::Service(ServedModel model, Generator& generator, const engine::Tokenizer* tokenizer,
                 std::optional<ChatTemplate> chat, Post post)
    : impl_(new Impl{std::move(model), generator, tokenizer, std::move(chat), std::move(post)}) {
  if (impl_->post) impl_->aside.emplace();
}
Service::~Service() = default;

void Service::add_metrics(std::function<std::string()> lines) {
  impl_->more_metrics = std::move(lines);
}

std::vector<std::string> Service::free_paths() {
  return {"/health", "/", "/page.css", "/page.js"};
}

void Service::serve(ServedRequest request, const std::shared_ptr<Answer>& answer) {
  bool has_path = false;
  for (const Impl::Route& route : Impl::kRoutes) {
    if (route.path != request.path) continue;
    has_path = true;
    const bool fits =
        route.method == request.method || (route.method == "GET" && request.method == "HEAD");
    if (fits) return ((*impl_).*route.serve)(request, answer);
  }
  if (has_path)
    return impl_->refuse(
        answer, 405,
        fmt::format("{}: expected another method, found {}", request.path, request.method));
  impl_->refuse(
      answer, 404,
      fmt::format("expected a path that is served, found {}", quoted_excerpt(request.path)));
}

}  // namespace assay::server
