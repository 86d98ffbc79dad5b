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
Json timings_of(const ApiAnswer& answer) {
  const auto& [queue_ms, prompt_ms, generation_ms] = answer.times;
  return {{"cache_n", 0},
          {"prompt_n", answer.prompt_tokens},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", per(prompt_ms, answer.prompt_tokens)},
          {"prompt_per_second", per_second(prompt_ms, answer.prompt_tokens)},
          {"predicted_n", answer.new_tokens},
          {"predicted_ms", generation_ms},
          {"predicted_per_token_ms", per(generation_ms, answer.new_tokens - 1)},
          {"predicted_per_second", per_second(generation_ms, answer.new_tokens - 1)},
          {"queue_ms", queue_ms}};
}

Json usage_of(const ApiAnswer& answer) {
  return {{"prompt_tokens", answer.prompt_tokens},
          {"completion_tokens", answer.new_tokens},
          {"total_tokens", answer.prompt_tokens + answer.new_tokens},
          {"prompt_tokens_details", {{"cached_tokens", 0}}}};
}

Json openai_error(int status, const std::string& message) {
  const char* const type = status == 401   ? "authentication_error"
                           : status == 404 ? "not_found_error"
                           : status == 503 ? "overloaded_error"
                           : status >= 500 ? "server_error"
                                           : "invalid_request_error";
  return {{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", status}}}};
}

class OpenaiShape final : public AnswerShape {
 public:
  OpenaiShape(bool chat, const ServedModel& model, int64_t number)
      : chat_(chat),
        model_(model.name),
        id_(fmt::format("{}-{:x}-{}", chat ? "chatcmpl" : "cmpl", model.started_s, number)),
        created_s_(system_clock().wall_ns() / 1'000'000'000) {}

  Json whole(const ApiAnswer& answer) const override {
    Json choice = {{"index", 0}};
    if (chat_) {
      choice["message"] = {{"role", "assistant"}, {"content", answer.text}};
    } else {
      choice["text"] = answer.text;
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = finish(answer);
    Json json = head(chat_ ? "chat.completion" : "text_completion", std::move(choice));
    json["usage"] = usage_of(answer);
    json["timings"] = timings_of(answer);
    return json;
  }

  std::string_view stream_type() const override { return "text/event-stream"; }

  std::string begin() const override {
    if (!chat_) return "";
    return chunk({{"delta", {{"role", "assistant"}, {"content", ""}}}}, nullptr);
  }

  std::string piece(const std::string& text) const override { return chunk(said(text), nullptr); }

  std::string last(const ApiAnswer& answer, bool tells_usage) const override {
    Json choice = chat_ ? Json{{"delta", Json::object()}} : Json{{"text", ""}};
    Json end = part(std::move(choice), finish(answer));
    end["timings"] = timings_of(answer);
    std::string events = event_of(end);
    if (tells_usage) {
      Json usage = head(object(), nullptr);
      usage["choices"] = Json::array();
      usage["usage"] = usage_of(answer);
      events += event_of(usage);
    }
    return events + "data: [DONE]\n\n";
  }

  std::string failure(const std::string& message) const override {
    return event_of(openai_error(500, message));
  }

 private:
  static const char* finish(const ApiAnswer& answer) { return answer.stopped ? "stop" : "length"; }
  const char* object() const { return chat_ ? "chat.completion.chunk" : "text_completion"; }
  Json said(const std::string& text) const {
    return chat_ ? Json{{"delta", {{"content", text}}}} : Json{{"text", text}};
  }
  Json head(const char* object, Json choice) const {
    return {{"id", id_},
            {"object", object},
            {"created", created_s_},
            {"model", model_},
            {"choices", Json::array({std::move(choice)})}};
  }
  Json part(Json choice, const Json& finish_reason) const {
    Json whole = {{"index", 0}};
    whole.update(choice);
    whole["logprobs"] = nullptr;
    whole["finish_reason"] = finish_reason;
    return head(object(), std::move(whole));
  }
  std::string chunk(Json choice, const Json& finish_reason) const {
    return event_of(part(std::move(choice), finish_reason));
  }

  bool chat_;
  std::string model_;
  std::string id_;
  int64_t created_s_;
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
    Json json = line(answer.text, true);
    json["done_reason"] = answer.stopped ? "stop" : "length";
    const auto& [queue_ms, prompt_ms, generation_ms] = answer.times;
    json["total_duration"] = ns_of(queue_ms + prompt_ms + generation_ms);
    json["load_duration"] = 0;
    json["prompt_eval_count"] = answer.prompt_tokens;
    json["prompt_eval_duration"] = ns_of(prompt_ms);
    json["eval_count"] = answer.new_tokens;
    json["eval_duration"] = ns_of(generation_ms);
    return json;
  }
  std::string_view stream_type() const override { return "application/x-ndjson"; }
  std::string begin() const override { return ""; }
  std::string piece(const std::string& text) const override {
    return to_json_line(line(text, false)) + "\n";
  }
  std::string last(const ApiAnswer& answer, bool) const override {
    ApiAnswer end = answer;
    end.text.clear();
    return to_json_line(whole(end)) + "\n";
  }
  std::string failure(const std::string& message) const override {
    return to_json_line({{"error", message}}) + "\n";
  }

 private:
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
