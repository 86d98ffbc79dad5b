// The APIs that clients speak: their requests read, their answers written. Nothing here knows of
// HTTP or of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/records/json.h"
#include "base/result.h"
#include "server/chat_template.h"
#include "server/generation.h"

namespace assay::server {

// Generations of one request: prompts times choices.
inline constexpr int64_t kMostChoices = 128;

using ApiPrompt = std::variant<std::string, std::vector<int32_t>, std::vector<ChatMessage>>;

// A request for generations, before its prompts are ids.
struct ApiRequest {
  std::vector<ApiPrompt> prompts = {};  // at least one
  int64_t choices = 1;                  // of each prompt
  bool needs_template = true;  // false: a model without one gets the messages' texts as they are
  std::optional<int64_t> most_tokens = {};  // absent: as many as there is room for
  bool cut_to_room = false;                 // more than there is room for is no error
  int64_t least_tokens = 0;
  bool ignore_ends = false;
  std::vector<std::string> stops = {};
  engine::Sampling sampling = {};         // as asked for; a server checks it
  std::optional<int64_t> likeliest = {};  // as TokenAsk has it
  bool stream = false;
  bool tells_usage = true;  // at a stream's end
  bool echo = false;        // the prompt's text stands before the answer
};

// A token of an answer that tells probabilities. Texts are bytes, which needn't be UTF-8.
struct ToldToken {
  std::string text;
  int64_t offset = 0;  // of its text in the answer's, in characters
  double logprob = 0;
  std::vector<std::pair<std::string, double>> likeliest = {};
};

// The outcome of one generation.
struct ApiChoice {
  int64_t index = 0;
  std::string text = {};
  std::vector<ToldToken> tokens = {};
  bool stopped = false;  // by an id that ends texts or a stop string; else its length is reached
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  GenerationTimes times = {};
};

struct ApiAnswer {
  std::vector<ApiChoice> choices = {};  // by their index
  bool tells_logprobs = false;
  int64_t prompt_tokens = 0;  // of each prompt once
  int64_t cached_tokens = 0;  // of them, those that weren't computed for its first choice
};

struct ServedModel {
  std::string name;
  std::string digest;        // of its weights; empty: not known
  std::string architecture;  // "llama"
  std::string dtype;
  std::string device;  // "cpu, 2 threads", "NVIDIA H200"
  std::string mode;    // compiled | eager
  int64_t weight_bytes = 0;
  int64_t cache_bytes = 0;  // of keys and values, all slots
  int64_t capacity = 0;     // tokens of a request
  int64_t vocab_size = 0;
  int64_t started_s = 0;  // since the epoch
  std::string version;    // of this program
  bool reuses_prefixes = false;
};

// One answer's words: as a whole, or as the events of a stream. Numbered, so that clients can tell
// answers apart.
class AnswerShape {
 public:
  virtual ~AnswerShape() = default;
  virtual Json whole(const ApiAnswer& answer) const = 0;
  virtual std::string_view stream_type() const = 0;
  // Events of one choice: before its first piece, a piece with the tokens that are told of, its
  // end.
  virtual std::string begin(int64_t index) const = 0;
  virtual std::string piece(int64_t index, const std::string& text,
                            std::span<const ToldToken> tokens) const = 0;
  virtual std::string finish(const ApiChoice& choice) const = 0;
  virtual std::string last(const ApiAnswer& answer, bool tells_usage) const = 0;
  virtual std::string failure(const std::string& message) const = 0;
};

enum class ApiKind { kCompletion, kChat, kOllamaGenerate, kOllamaChat };

// `body` is an object. bad_input names the member: another type, out of bounds, or asked for and
// not to be had here.
Result<ApiRequest> parse_api_request(ApiKind kind, const Json& body);
std::unique_ptr<AnswerShape> answer_shape(ApiKind kind, const ServedModel& model, int64_t number);

// The body of an answer with an error, as the API of the path has it.
std::string api_error(std::string_view path, int status, const std::string& message);

Json openai_models(const ServedModel& model);
Json ollama_tags(const ServedModel& model);
Json ollama_show(const ServedModel& model, bool chats);
Json ollama_ps(const ServedModel& model);

}  // namespace assay::server
