// Dialects: the names that a server's API has for things, one dialect an API, over one set of
// values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/http/event_stream.h"
#include "backend/http/http_failure.h"
#include "backend/http/http_loop.h"

namespace assay {

// A prompt as ids of the server's vocabulary or, without any, as text.
struct HttpPrompt {
  std::vector<int32_t> ids = {};
  std::string text = {};
  // All that was said in the conversation before `text`: user and assistant by turns.
  std::vector<std::string> history = {};
};

struct Generation {
  std::string model;  // as the server calls it; empty: the one that it serves
  HttpPrompt prompt;
  int64_t new_tokens = 1;
  bool chat = false;        // by the API of conversations, where it has two
  std::string server = {};  // ServerFacts::server: some know keys that others refuse
  bool in_session = false;  // a turn of several: what it computes may serve the next one
};

// Figures that a server gives about a request. A figure that it doesn't give is absent.
struct ServerFigures {
  std::optional<int64_t> prompt_tokens;  // of the request, those from a cache included
  std::optional<int64_t> cached_tokens;  // of them, not computed anew
  std::optional<int64_t> new_tokens;
  std::optional<double> prompt_ms;      // computing those of the prompt that weren't cached
  std::optional<double> generation_ms;  // from the first token to the last
  std::optional<double> load_ms;        // loading the model, if this request had to
};

// One event of a stream, or the whole of an answer that isn't streamed.
struct StreamPiece {
  bool has_token = false;  // it brings text or an id; a role, a finish reason or usage alone don't
  std::string text = {};
  std::vector<int32_t> ids = {};  // where the server sends them
  bool last = false;              // nothing is to come after it
  std::string finish = {};        // "length", "stop", ...; empty: not said here
  ServerFigures figures = {};
  std::string error = {};  // told in the stream; empty: none
};

// Facts about a server and the model that it serves. Empty or absent: it doesn't say.
struct ServerFacts {
  std::string server;   // "llama.cpp", "vllm", "ollama"
  std::string version;  // of it
  std::string model;    // as it calls the model
  std::string digest;   // of the model's file
  std::string quantization;
  std::string device;
  std::string chat_template;
  std::optional<int64_t> context_tokens;  // of one request
  std::optional<int64_t> vocab_size;
  std::optional<int64_t> slots;  // requests that it computes at a time
  std::optional<uint64_t> weight_bytes;
  std::vector<std::string> models = {};  // that it could serve
  std::vector<int32_t> special_ids = {};
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;  // openai | ollama | llama_server
  virtual StreamForm form() const = 0;
  virtual bool takes_ids(bool chat) const = 0;
  // A streamed generation: greedy, nothing from a cache where that can be asked for and it is no
  // turn of a session.
  virtual HttpRequest generate(const Generation& generation) const = 0;
  // The same in one piece, with the ids of its tokens, and up to the id that ends the text if one
  // comes. Absent: the API shows no ids.
  virtual std::optional<HttpRequest> show_ids(const Generation&) const { return std::nullopt; }
  // malformed_answer if it is no event of this API, and no answer to show_ids().
  virtual HttpResult<StreamPiece> read(std::string_view event) const = 0;
  // Asks the server; what one question can't be answered for is left out. Fails if the server isn't
  // one of this API, doesn't know the model, or refuses the key.
  virtual HttpResult<ServerFacts> facts(HttpLoop& loop, const HttpEndpoint& endpoint,
                                        const std::string& model) const = 0;
  // The ids of a text, with those that the model begins prompts with. Absent: the API has no such
  // question.
  virtual HttpResult<std::optional<std::vector<int32_t>>> tokenize(
      HttpLoop& loop, const HttpEndpoint& endpoint, const std::string& model,
      const std::string& text) const = 0;
};

// Null if there is no such API. Lives as long as the program.
const Dialect* find_dialect(std::string_view name);
std::span<const std::string_view> dialect_names();
// The API that this server answers by, the most telling first: llama_server, ollama, openai.
HttpResult<const Dialect*> probe_dialect(HttpLoop& loop, const HttpEndpoint& endpoint);

}  // namespace assay
