// Ollama's API: JSON lines, durations in nanoseconds, a prompt as text alone.
#include "backend/http/dialect_json.h"
#include "backend/http/dialects.h"

namespace assay {
namespace {

using dialect::at;
using dialect::count_at;
using dialect::text_at;

std::optional<double> ms_at(const Json& object, std::string_view name) {
  const auto ns = dialect::number_at(object, name);
  return ns ? std::optional(*ns / 1e6) : std::nullopt;
}

// "llama3" is "llama3:latest".
bool is_named(const std::string& name, const std::string& asked) {
  return name == asked || name == asked + ":latest";
}

class Ollama final : public Dialect {
 public:
  std::string_view name() const override { return "ollama"; }
  StreamForm form() const override { return StreamForm::kJsonLines; }
  bool takes_ids(bool) const override { return false; }

  HttpRequest generate(const Generation& generation) const override {
    Json body = {{"model", generation.model}, {"stream", true}};
    if (generation.chat) {
      body["messages"] = dialect::messages_of(generation.prompt);
    } else {
      body["prompt"] = generation.prompt.text;
      body["raw"] = true;  // no template around it
    }
    body["options"] = {{"num_predict", generation.new_tokens}, {"temperature", 0}, {"seed", 1}};
    return dialect::post(generation.chat ? "/api/chat" : "/api/generate", body);
  }

  HttpResult<StreamPiece> read(std::string_view event) const override {
    auto json = dialect::object_of(event);
    if (!json) return std::unexpected(std::move(json).error());
    StreamPiece piece;
    piece.error = dialect::error_at(*json);
    const Json& message = at(*json, "message");
    for (const Json* const part : {static_cast<const Json*>(&*json), &message}) {
      for (const char* const member : {"response", "content", "thinking"})
        piece.text += text_at(*part, member);
    }
    piece.has_token = !piece.text.empty();
    piece.last = at(*json, "done") == Json(true);
    if (!piece.last) return piece;
    piece.finish = text_at(*json, "done_reason");
    // Its count has the cached tokens too, and its duration hasn't.
    piece.figures.prompt_tokens = count_at(*json, "prompt_eval_count");
    piece.figures.cached_tokens = count_at(*json, "prompt_eval_cached_count");
    piece.figures.prompt_ms = ms_at(*json, "prompt_eval_duration");
    piece.figures.new_tokens = count_at(*json, "eval_count");
    piece.figures.generation_ms = ms_at(*json, "eval_duration");
    piece.figures.load_ms = ms_at(*json, "load_duration");
    return piece;
  }

  HttpResult<ServerFacts> facts(HttpLoop& loop, const HttpEndpoint& endpoint,
                                const std::string& model) const override {
    auto tags = dialect::ask_json(loop, endpoint, "/api/tags");
    if (!tags) return std::unexpected(std::move(tags).error());
    if (!at(*tags, "models").is_array()) {
      return http_failure(http_class::kMalformed,
                          "expected the list of models of an Ollama server, found another answer");
    }
    ServerFacts facts;
    facts.server = kOllama;
    for (const Json& one : at(*tags, "models")) {
      const std::string name = text_at(one, "name");
      facts.models.push_back(name);
      if (!is_named(name, model) && !(model.empty() && facts.models.size() == 1)) continue;
      facts.model = name;
      facts.digest = text_at(one, "digest");
      facts.quantization = text_at(at(one, "details"), "quantization_level");
      if (const auto bytes = count_at(one, "size"))
        facts.weight_bytes = static_cast<uint64_t>(*bytes);
    }
    if (facts.model.empty()) return unknown_model(model, facts.models);
    if (const auto version = dialect::ask_json(loop, endpoint, "/api/version")) {
      facts.version = text_at(*version, "version");
      const std::string other = text_at(*version, "server");
      if (!other.empty()) facts.server = other;
    }
    if (const auto shown =
            dialect::ask_json(loop, endpoint, "/api/show", {{"model", facts.model}})) {
      facts.chat_template = text_at(*shown, "template");
      const Json& info = at(*shown, "model_info");
      facts.context_tokens =
          count_at(info, text_at(info, "general.architecture") + ".context_length");
    }
    if (const auto running = dialect::ask_json(loop, endpoint, "/api/ps")) {
      for (const Json& one : at(*running, "models")) {
        if (text_at(one, "name") != facts.model) continue;
        const auto all = count_at(one, "size"), on_gpu = count_at(one, "size_vram");
        if (all && on_gpu)
          facts.device = *on_gpu == 0 ? "cpu" : *on_gpu >= *all ? "gpu" : "cpu and gpu";
      }
    }
    return facts;
  }

  HttpResult<std::optional<std::vector<int32_t>>> tokenize(HttpLoop&, const HttpEndpoint&,
                                                           const std::string&,
                                                           const std::string&) const override {
    return std::nullopt;
  }
};

}  // namespace

const Dialect& ollama_dialect() {
  static const Ollama ollama;
  return ollama;
}

}  // namespace assay
