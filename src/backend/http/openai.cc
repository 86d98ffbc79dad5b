// The OpenAI API, as vLLM, SGLang, llama.cpp and others serve it.
#include <algorithm>

#include "backend/http/dialect_json.h"
#include "backend/http/dialects.h"
#include "base/text/text.h"

namespace assay {
namespace {

using dialect::at;
using dialect::count_at;
using dialect::text_at;

class Openai final : public Dialect {
 public:
  std::string_view name() const override { return "openai"; }
  StreamForm form() const override { return StreamForm::kServerSentEvents; }
  bool takes_ids(bool chat) const override { return !chat; }

  HttpRequest generate(const Generation& generation) const override {
    Json body = {{"model", generation.model}};
    if (generation.chat) {
      body["messages"] = dialect::messages_of(generation.prompt);
    } else if (generation.prompt.ids.empty()) {
      body["prompt"] = generation.prompt.text;
    } else {
      body["prompt"] = generation.prompt.ids;
    }
    body.update({{"max_tokens", generation.new_tokens},
                 {"min_tokens", generation.new_tokens},
                 {"ignore_eos", true},
                 {"temperature", 0},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}});
    if (generation.server == "llama.cpp") body["cache_prompt"] = generation.in_session;
    return dialect::post(generation.chat ? "/v1/chat/completions" : "/v1/completions", body);
  }

  HttpResult<StreamPiece> read(std::string_view event) const override {
    StreamPiece piece;
    if (event == "[DONE]") {
      piece.last = true;
      return piece;
    }
    auto json = dialect::object_of(event);
    if (!json) return std::unexpected(std::move(json).error());
    piece.error = dialect::error_at(*json);
    const Json& choices = at(*json, "choices");
    if (choices.is_array() && !choices.empty()) read_choice(choices.front(), piece);
    const Json& usage = at(*json, "usage");
    piece.figures.prompt_tokens = count_at(usage, "prompt_tokens");
    piece.figures.new_tokens = count_at(usage, "completion_tokens");
    piece.figures.cached_tokens = count_at(at(usage, "prompt_tokens_details"), "cached_tokens");
    dialect::read_timings(*json, piece.figures);
    return piece;
  }

  HttpResult<ServerFacts> facts(HttpLoop& loop, const HttpEndpoint& endpoint,
                                const std::string& model) const override {
    auto models = dialect::ask_json(loop, endpoint, "/v1/models");
    if (!models) return std::unexpected(std::move(models).error());
    if (!at(*models, "data").is_array()) {
      return http_failure(http_class::kMalformed,
                          "expected the list of models of an OpenAI API, found another answer");
    }
    ServerFacts facts;
    for (const Json& one : at(*models, "data")) {
      const std::string id = text_at(one, "id");
      facts.models.push_back(id);
      if (id != model && !(model.empty() && facts.models.size() == 1)) continue;
      facts.model = id;
      facts.server =
          text_at(one, "owned_by") == "llamacpp" ? "llama.cpp" : text_at(one, "owned_by");
      facts.context_tokens = count_at(one, "max_model_len");
      read_meta(at(one, "meta"), facts);
    }
    if (facts.model.empty()) return unknown_model(model, facts.models);
    if (const auto version = dialect::ask_json(loop, endpoint, "/version"))
      facts.version = text_at(*version, "version");
    return facts;
  }

  HttpResult<std::optional<std::vector<int32_t>>> tokenize(HttpLoop& loop,
                                                           const HttpEndpoint& endpoint,
                                                           const std::string& model,
                                                           const std::string& text) const override {
    // vLLM's question; llama.cpp has another one at the same place.
    const auto answer = dialect::ask_json(
        loop, endpoint, "/tokenize",
        {{"model", model}, {"prompt", text}, {"content", text}, {"add_special", true}});
    if (!answer) return std::nullopt;
    return ids_at(*answer, "tokens");
  }

 private:
  static void read_choice(const Json& choice, StreamPiece& piece) {
    piece.text = text_at(choice, "text");
    const Json& delta = at(choice, "delta");
    for (const char* const member : {"content", "reasoning_content", "reasoning"})
      piece.text += text_at(delta, member);
    piece.has_token = !piece.text.empty() ||
                      (at(delta, "tool_calls").is_array() && !at(delta, "tool_calls").empty());
    piece.finish = text_at(choice, "finish_reason");
  }
};

}  // namespace

std::optional<std::vector<int32_t>> ids_at(const Json& object, std::string_view name) {
  const Json& member = at(object, name);
  if (!member.is_array()) return std::nullopt;
  std::vector<int32_t> ids;
  for (const Json& one : member) {
    if (!one.is_number_integer() || one < 0 || one > INT32_MAX) return std::nullopt;
    ids.push_back(one.get<int32_t>());
  }
  return ids;
}

void read_meta(const Json& meta, ServerFacts& facts) {
  facts.vocab_size = count_at(meta, "n_vocab");
  if (const auto bytes = count_at(meta, "size")) facts.weight_bytes = static_cast<uint64_t>(*bytes);
  facts.quantization = text_at(meta, "ftype");
}

std::unexpected<HttpFailure> unknown_model(const std::string& model,
                                           const std::vector<std::string>& served) {
  constexpr size_t kShown = 20;
  const std::vector<std::string> first(
      served.begin(), served.begin() + static_cast<ptrdiff_t>(std::min(served.size(), kShown)));
  return http_failure(
      "model_not_found",
      fmt::format("expected the server to have the model {}, found {}", json_quoted(model),
                  served.empty()
                      ? "none"
                      : join(first, ", ") + (served.size() > first.size() ? ", ..." : "")));
}

const Dialect& openai_dialect() {
  static const Openai openai;
  return openai;
}

}  // namespace assay
