// One request's generations on their way to its client, as one answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "server/api.h"
#include "server/generation.h"
#include "server/http_front.h"

namespace assay::server {

// Sums over all requests.
struct ServiceCounters {
  int64_t ok = 0, refused = 0, cancelled = 0, failed = 0;
  int64_t prompt_tokens = 0, new_tokens = 0, cached_tokens = 0;
};

// Lives as long as its generations do. If one of them fails, its answer is an error or a cut
// stream, and the others are cancelled.
class AnsweredRequest : public std::enable_shared_from_this<AnsweredRequest> {
 public:
  // `tokenizer`: null where the model has none. Tokenizer, generator and counters outlive it.
  AnsweredRequest(std::shared_ptr<Answer> answer, std::unique_ptr<AnswerShape> shape,
                  ApiRequest request, const engine::Tokenizer* tokenizer, Generator& generator,
                  ServiceCounters& counters);

  // Asks for the request's choices of each of these, and begins the answer. False: the generator
  // takes no more; nothing was answered.
  bool ask(const std::vector<TokenAsk>& asks);
  void cancel();

 private:
  class Choice;
  bool is_open() const { return answer_ != nullptr; }
  void begin(int64_t index);
  void say(ApiChoice& choice, const std::string& text, std::vector<ToldToken> tokens);
  void end(ApiChoice choice);
  void fail(const std::string& error);

  std::shared_ptr<Answer> answer_;  // null: it is over
  std::unique_ptr<AnswerShape> shape_;
  const ApiRequest request_;  // without its prompts
  const engine::Tokenizer* tokenizer_;
  Generator& generator_;
  ServiceCounters& counters_;
  std::vector<int64_t> numbers_ = {};  // of its generations
  ApiAnswer told_ = {};
  int64_t left_ = 0;  // generations that haven't ended
};

}  // namespace assay::server
