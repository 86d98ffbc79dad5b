// llama.cpp's own API: ids in and out, its timings, nothing from its cache.
#include "backend/http/dialect_json.h"
#include "backend/http/dialects.h"
#include "base/add_once.h"

namespace assay {
namespace {

using dialect::at;
using dialect::count_at;
using dialect::text_at;

class LlamaServer final : public Dialect {
 public:
  std::string_view name() const override { return "llama_server"; }
  StreamForm form() const override { return StreamForm::kServerSentEvents; }
  bool takes_ids(bool) const override { return true; }

  HttpRequest generate(const Generation& generation) const override {
    Json body = completion_of(generation);
    body.update({{"ignore_eos", true}, {"stream", true}});
    return dialect::post("/completion", body);
  }

  // In a stream a token that ends within a character of several bytes isn't told of.
  std::optional<HttpRequest> show_ids(const Generation& generation) const override {
    return dialect::post("/completion", completion_of(generation));
  }

  HttpResult<StreamPiece> read(std::string_view event) const override {
    auto json = dialect::object_of(event);
    if (!json) return std::unexpected(std::move(json).error());
    StreamPiece piece;
    piece.error = dialect::error_at(*json);
    piece.text = text_at(*json, "content");
    piece.ids = ids_at(*json, "tokens").value_or(std::vector<int32_t>());
    piece.has_token = !piece.text.empty() || !piece.ids.empty();
    piece.last = at(*json, "stop") == Json(true);
    if (piece.last) {
      piece.finish = text_at(*json, "stop_type");
      piece.figures.prompt_tokens = count_at(*json, "tokens_evaluated");
      piece.figures.new_tokens = count_at(*json, "tokens_predicted");
      dialect::read_timings(*json, piece.figures);
    }
    return piece;
  }

  HttpResult<ServerFacts> facts(HttpLoop& loop, const HttpEndpoint& endpoint,
                                const std::string& model) const override {
    auto props = dialect::ask_json(loop, endpoint, "/props");
    if (!props) return std::unexpected(std::move(props).error());
    const Json& settings = at(*props, "default_generation_settings");
    if (!settings.is_object() || !count_at(*props, "total_slots")) {
      return http_failure(http_class::kMalformed,
                          "expected the properties of a llama.cpp server, found another answer");
    }
    ServerFacts facts;
    facts.server = "llama.cpp";
    facts.version = text_at(*props, "build_info");
    facts.context_tokens = count_at(settings, "n_ctx");
    facts.slots = count_at(*props, "total_slots");
    facts.quantization = text_at(*props, "model_ftype");
    facts.chat_template = text_at(*props, "chat_template");
    if (const auto models = dialect::ask_json(loop, endpoint, "/v1/models")) {
      for (const Json& one : at(*models, "data")) {
        facts.models.push_back(text_at(one, "id"));
        if (facts.models.size() == 1) read_meta(at(one, "meta"), facts);
      }
    }
    if (facts.quantization.empty()) facts.quantization = text_at(*props, "model_ftype");
    facts.model = facts.models.empty() ? text_at(*props, "model_path") : facts.models.front();
    if (!model.empty() && model != facts.model && !facts.model.ends_with("/" + model)) {
      return unknown_model(model, facts.models);
    }
    for (const char* const name : {"bos_token", "eos_token"}) {
      const auto ids =
          ask_ids(loop, endpoint, {{"content", text_at(*props, name)}, {"parse_special", true}});
      if (ids && ids->size() == 1) add_once(facts.special_ids, ids->front());
    }
    return facts;
  }

  HttpResult<std::optional<std::vector<int32_t>>> tokenize(HttpLoop& loop,
                                                           const HttpEndpoint& endpoint,
                                                           const std::string&,
                                                           const std::string& text) const override {
    auto ids = ask_ids(loop, endpoint, {{"content", text}, {"add_special", true}});
    if (!ids) return std::unexpected(std::move(ids).error());
    return *std::move(ids);
  }

 private:
  static Json completion_of(const Generation& generation) {
    Json body;
    if (generation.prompt.ids.empty()) {
      body["prompt"] = generation.prompt.text;
    } else {
      body["prompt"] = generation.prompt.ids;
    }
    body.update({{"n_predict", generation.new_tokens},
                 {"cache_prompt", generation.in_session},
                 {"temperature", 0},
                 {"return_tokens", true}});
    return body;
  }

  static HttpResult<std::vector<int32_t>> ask_ids(HttpLoop& loop, const HttpEndpoint& endpoint,
                                                  const Json& body) {
    auto answer = dialect::ask_json(loop, endpoint, "/tokenize", body);
    if (!answer) return std::unexpected(std::move(answer).error());
    auto ids = ids_at(*answer, "tokens");
    if (!ids)
      return http_failure(http_class::kMalformed,
                          "expected a list of tokens, found another answer");
    return *std::move(ids);
  }
};

}  // namespace

const Dialect& llama_server_dialect() {
  static const LlamaServer llama_server;
  return llama_server;
}

}  // namespace assay
