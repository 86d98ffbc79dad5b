// Writes answers as OpenAI's and Ollama's clients read them.
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/text/text.h"
#include "server/api.h"

namespace assay::server {
namespace {

bool is_ollama(std::string_view path) {
  return path.starts_with("/api/");
}

std::string event_of(const Json& json) {
  return "data: " + to_json_line(json) + "\n\n";
}

Json per(double ms, int64_t count) {
  return count > 0 ? Json(ms / static_cast<double>(count)) : Json(nullptr);
}
Json per_second(double ms, int64_t count) {
  return ms > 0 ? Json(static_cast<double>(count) * 1e3 / ms) : Json(nullptr);
}

// As llama.cpp's server gives them.
Json timings_of(const ApiChoice& answer) {
  const auto& [queue_ms, prompt_ms, generation_ms, cached_tokens] = answer.times;
  const int64_t computed = answer.prompt_tokens - cached_tokens;
  return {{"cache_n", cached_tokens},
          {"prompt_n", computed},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", per(prompt_ms, computed)},
          {"prompt_per_second", per_second(prompt_ms, computed)},
          {"predicted_n", answer.new_tokens},
          {"predicted_ms", generation_ms},
          {"predicted_per_token_ms", per(generation_ms, answer.new_tokens - 1)},
          {"predicted_per_second", per_second(generation_ms, answer.new_tokens - 1)},
          {"queue_ms", queue_ms}};
}

Json usage_of(const ApiAnswer& answer) {
  int64_t new_tokens = 0;
  for (const ApiChoice& choice : answer.choices) new_tokens += choice.new_tokens;
  return {{"prompt_tokens", answer.prompt_tokens},
          {"completion_tokens", new_tokens},
          {"total_tokens", answer.prompt_tokens + new_tokens},
          {"prompt_tokens_details", {{"cached_tokens", answer.cached_tokens}}}};
}

Json openai_error(int status, const std::string& message) {
  const char* const type = status == 401   ? "authentication_error"
                           : status == 404 ? "not_found_error"
                           : status == 503 ? "overloaded_error"
                           : status >= 500 ? "server_error"
                                           : "invalid_request_error";
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", status}}}};
}

// Texts of tokens needn't be UTF-8: their bytes stand beside them.
Json told_token(const std::string& text, double logprob) {
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
}

Json chat_logprobs(std::span<const ToldToken> tokens) {
  Json content = Json::array();
  for (const ToldToken& token : tokens) {
    Json told = told_token(token.text, token.logprob);
    told["top_logprobs"] = Json::array();
    for (const auto& [text, logprob] : token.likeliest)
      told["top_logprobs"].push_back(told_token(text, logprob));
    content.push_back(std::move(told));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Bytes that are no text are named as OpenAI's API does ("bytes:\\xc3"), since texts are keys.
std::string key_of(const std::string& text) {
  constexpr std::string_view kReplaced = "\uFFFD";
  const bool is_text = to_json_line(Json(text)).find(kReplaced) == std::string::npos ||
                       text.find(kReplaced) != std::string::npos;
  if (is_text) return text;
  std::string key = "bytes:";
  for (const char byte : text) key += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return key;
}

// The token's own stands among the likeliest, even where it isn't one of them.
Json completion_logprobs(std::span<const ToldToken> tokens) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const ToldToken& token : tokens) {
    Json top = Json::object();
    for (const auto& [text, logprob] : token.likeliest) top.emplace(key_of(text), logprob);
    top.emplace(key_of(token.text), token.logprob);
    texts.push_back(key_of(token.text));
    logprobs.push_back(token.logprob);
    tops.push_back(std::move(top));
    offsets.push_back(token.offset);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

class OpenaiShape final : public AnswerShape {
 public:
  OpenaiShape(bool chat, const ServedModel& model, int64_t number)
      : chat_(chat),
        head_(
            {{"id", fmt::format("{}-{:x}-{}", chat ? "chatcmpl" : "cmpl", model.started_s, number)},
             {"object", chat ? "chat.completion.chunk" : "text_completion"},
             {"created", system_clock().wall_ns() / 1'000'000'000},
             {"model", model.name}}),
        event_begin_("data: " + to_json_line(head_)) {
    event_begin_.pop_back();
  }

  Json whole(const ApiAnswer& answer) const override {
    Json json = head_;
    if (chat_) json["object"] = "chat.completion";
    json["choices"] = Json::array();
    for (const ApiChoice& choice : answer.choices) {
      Json told = {{"index", choice.index}};
      if (chat_) {
        told["message"] = {{"role", "assistant"}, {"content", choice.text}};
      } else {
        told["text"] = choice.text;
      }
      told["logprobs"] = answer.tells_logprobs ? logprobs_of(choice.tokens) : Json(nullptr);
      told["finish_reason"] = reason(choice);
      json["choices"].push_back(std::move(told));
    }
    json["usage"] = usage_of(answer);
    if (answer.choices.size() == 1) json["timings"] = timings_of(answer.choices.front());
    return json;
  }

  std::string_view stream_type() const override { return "text/event-stream"; }

  std::string begin(int64_t index) const override {
    if (!chat_) return "";
    return event(index, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}", "null", "null");
  }

  std::string piece(int64_t index, const std::string& text,
                    std::span<const ToldToken> tokens) const override {
    const std::string said = to_json_line(Json(text));
    return event(index, chat_ ? "\"delta\":{\"content\":" + said + "}" : "\"text\":" + said,
                 tokens.empty() ? "null" : to_json_line(logprobs_of(tokens)), "null");
  }

  std::string finish(const ApiChoice& choice) const override {
    return event(choice.index, chat_ ? "\"delta\":{}" : "\"text\":\"\"", "null",
                 fmt::format("\"{}\"", reason(choice)),
                 ",\"timings\":" + to_json_line(timings_of(choice)));
  }

  std::string last(const ApiAnswer& answer, bool tells_usage) const override {
    std::string events;
    if (tells_usage)
      events =
          event_begin_ + ",\"choices\":[],\"usage\":" + to_json_line(usage_of(answer)) + "}\n\n";
    return events + "data: [DONE]\n\n";
  }

  std::string failure(const std::string& message) const override {
    return event_of(openai_error(500, message));
  }

 private:
  static const char* reason(const ApiChoice& choice) { return choice.stopped ? "stop" : "length"; }
  Json logprobs_of(std::span<const ToldToken> tokens) const {
    return chat_ ? chat_logprobs(tokens) : completion_logprobs(tokens);
  }
  // Put together of texts, as there is one for each token of each stream.
  std::string event(int64_t index, const std::string& said, const std::string& logprobs,
                    const std::string& finish_reason, const std::string& further = "") const {
    return fmt::format(
        "{},\"choices\":[{{\"index\":{},{},\"logprobs\":{},\"finish_reason\":{}}}]{}}}\n\n",
        event_begin_, index, said, logprobs, finish_reason, further);
  }

  bool chat_;
  Json head_;
  std::string event_begin_;  // without the end of its object
};

int64_t ns_of(double ms) {
  return static_cast<int64_t>(ms * 1e6);
}

std::string timestamp_now() {
  const int64_t now_ns = system_clock().wall_ns();
  const auto seconds = static_cast<std::time_t>(now_ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     now_ns % 1'000'000'000);
}

class OllamaShape final : public AnswerShape {
 public:
  OllamaShape(bool chat, const ServedModel& model) : chat_(chat), model_(model.name) {}

  Json whole(const ApiAnswer& answer) const override {
    return last_line(answer.choices.front(), answer.choices.front().text);
  }
  std::string_view stream_type() const override { return "application/x-ndjson"; }
  std::string begin(int64_t) const override { return ""; }
  std::string piece(int64_t, const std::string& text, std::span<const ToldToken>) const override {
    return to_json_line(line(text, false)) + "\n";
  }
  std::string finish(const ApiChoice&) const override { return ""; }
  std::string last(const ApiAnswer& answer, bool) const override {
    return to_json_line(last_line(answer.choices.front(), "")) + "\n";
  }
  std::string failure(const std::string& message) const override {
    return to_json_line({{"error", message}}) + "\n";
  }

 private:
  Json last_line(const ApiChoice& choice, const std::string& text) const {
    Json json = line(text, true);
    json["done_reason"] = choice.stopped ? "stop" : "length";
    const auto& [queue_ms, prompt_ms, generation_ms, cached_tokens] = choice.times;
    json["total_duration"] = ns_of(queue_ms + prompt_ms + generation_ms);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = choice.prompt_tokens;
    if (cached_tokens > 0) json["prompt_eval_cached_count"] = cached_tokens;
    json["prompt_eval_duration"] = ns_of(prompt_ms);
    json["eval_count"] = choice.new_tokens;
    json["eval_duration"] = ns_of(generation_ms);
    return json;
  }
  Json line(const std::string& text, bool done) const {
    Json json = {{"model", model_}, {"created_at", timestamp_now()}};
    if (chat_) {
      json["message"] = {{"role", "assistant"}, {"content", text}};
    } else {
      json["response"] = text;
    }
    json["done"] = done;
    return json;
  }
  bool chat_;
  std::string model_;
};

// As llama.cpp's server names types of weights.
std::string type_of_weights(const ServedModel& model) {
  if (model.dtype == "fp32") return "F32";
  return model.dtype == "fp16" ? "F16" : "BF16";
}

Json ollama_details(const ServedModel& model) {
  return {{"parent_model", ""},           {"format", "safetensors"},
          {"family", model.architecture}, {"families", {model.architecture}},
          {"parameter_size", ""},         {"quantization_level", type_of_weights(model)}};
}

Json ollama_model(const ServedModel& model) {
  return {{"name", model.name},
          {"model", model.name},
          {"size", model.weight_bytes},
          {"digest", model.digest},
          {"details", ollama_details(model)}};
}

}  // namespace

std::unique_ptr<AnswerShape> answer_shape(ApiKind kind, const ServedModel& model, int64_t number) {
  switch (kind) {
    case ApiKind::kCompletion:
    case ApiKind::kChat:
      return std::make_unique<OpenaiShape>(kind == ApiKind::kChat, model, number);
    case ApiKind::kOllamaGenerate:
    case ApiKind::kOllamaChat:
      return std::make_unique<OllamaShape>(kind == ApiKind::kOllamaChat, model);
  }
  std::unreachable();
}

std::string api_error(std::string_view path, int status, const std::string& message) {
  return to_json_line(is_ollama(path) ? Json{{"error", message}} : openai_error(status, message));
}

Json openai_models(const ServedModel& model) {
  return {{"object", "list"},
          {"data", Json::array({{{"id", model.name},
                                 {"object", "model"},
                                 {"created", model.started_s},
                                 {"owned_by", "assay"},
                                 {"max_model_len", model.capacity},
                                 {"prefix_reuse", model.reuses_prefixes},
                                 {"meta",
                                  {{"n_vocab", model.vocab_size},
                                   {"n_ctx_train", model.capacity},
                                   {"size", model.weight_bytes},
                                   {"ftype", type_of_weights(model)}}}}})}};
}

Json ollama_tags(const ServedModel& model) {
  return {{"models", Json::array({ollama_model(model)})}};
}

Json ollama_ps(const ServedModel& model) {
  Json running = ollama_model(model);
  running["size_vram"] = 0;
  running["context_length"] = model.capacity;
  return {{"models", Json::array({std::move(running)})}};
}

Json ollama_show(const ServedModel& model, bool chats) {
  return {{"details", ollama_details(model)},
          {"model_info",
           {{"general.architecture", model.architecture},
            {model.architecture + ".context_length", model.capacity},
            {model.architecture + ".vocab_size", model.vocab_size}}},
          {"capabilities", chats ? Json{"completion", "chat"} : Json{"completion"}}};
}

}  // namespace assay::server
