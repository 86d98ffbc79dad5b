#include "server/answered_request.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "server/stop_strings.h"

namespace assay::server {
namespace {

constexpr std::string_view kWholeType = "application/json";

int64_t characters_of(std::string_view text) {
  return std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

// As it stands within a text: behind another token, since some tokenizers begin a text otherwise.
std::string token_text(int32_t id, const engine::Tokenizer* tokenizer) {
  if (!tokenizer) return fmt::format("{} ", id);
  return tokenizer->decode({id, id}, false).substr(tokenizer->decode({id}, false).size());
}

}  // namespace

// Hears of one generation.
class AnsweredRequest::Choice final : public TokenListener {
 public:
  Choice(std::shared_ptr<AnsweredRequest> of, int64_t index, int64_t prompt_tokens)
      : request_(std::move(of)), stops_(request_->request_.stops) {
    told_.index = index;
    told_.prompt_tokens = prompt_tokens;
    if (request_->tokenizer_) text_.emplace(*request_->tokenizer_);
  }

  void begin(const std::string& echo) {
    request_->begin(told_.index);
    request_->say(told_, echo, {});
  }

  bool tokens(std::span<const int32_t> ids, std::span<const TokenLogprobs> logprobs) override {
    if (stops_.found() || !request_->is_open()) return false;
    for (size_t i = 0; i < ids.size() && !stops_.found(); ++i) {
      ++told_.new_tokens;
      ++request_->counters_.new_tokens;
      if (!logprobs.empty()) untold_.push_back(told(ids[i], logprobs[i]));
      say(stops_.push(text_ ? text_->push(ids[i]) : token_text(ids[i], nullptr)));
    }
    return !stops_.found();
  }

  void ended(Finish finish, const GenerationTimes& times, const std::string& error) override {
    if (!request_->is_open()) return;
    told_.times = times;
    if (finish == Finish::kFailed) return request_->fail(error);
    if (finish == Finish::kCancelled && !stops_.found()) {
      ++request_->counters_.cancelled;
      return;
    }
    if (text_) say(stops_.push(text_->finish()));
    told_.stopped = finish == Finish::kStop || stops_.found();
    say(stops_.finish());
    if (!untold_.empty()) request_->say(told_, "", std::exchange(untold_, {}));
    ++request_->counters_.ok;
    request_->end(std::move(told_));
  }

 private:
  // Tokens are told of with the text that they end.
  void say(const std::string& text) {
    if (!text.empty()) request_->say(told_, text, std::exchange(untold_, {}));
  }

  ToldToken told(int32_t id, const TokenLogprobs& logprobs) {
    ToldToken token{token_text(id, request_->tokenizer_), offset_, logprobs.chosen};
    offset_ += characters_of(token.text);
    for (const auto& [other, logprob] : logprobs.likeliest)
      token.likeliest.emplace_back(token_text(other, request_->tokenizer_), logprob);
    return token;
  }

  std::shared_ptr<AnsweredRequest> request_;
  StopStrings stops_;
  std::optional<engine::TokenStream> text_;
  ApiChoice told_;
  std::vector<ToldToken> untold_;
  int64_t offset_ = 0;
};

AnsweredRequest::AnsweredRequest(std::shared_ptr<Answer> answer, std::unique_ptr<AnswerShape> shape,
                                 ApiRequest request, const engine::Tokenizer* tokenizer,
                                 Generator& generator, ServiceCounters& counters)
    : answer_(std::move(answer)),
      shape_(std::move(shape)),
      request_(std::move(request)),
      tokenizer_(tokenizer),
      generator_(generator),
      counters_(counters) {
  told_.tells_logprobs = request_.likeliest.has_value();
}

bool AnsweredRequest::ask(const std::vector<TokenAsk>& asks) {
  std::vector<std::pair<std::shared_ptr<Choice>, const TokenAsk*>> choices;
  for (const TokenAsk& ask : asks) {
    for (int64_t i = 0; i < request_.choices; ++i) {
      auto choice =
          std::make_shared<Choice>(shared_from_this(), std::ssize(choices), std::ssize(ask.prompt));
      TokenAsk wanted = ask;
      wanted.sampling.seed += static_cast<uint64_t>(i);  // else all would be the same
      const auto number = generator_.ask(std::move(wanted), choice);
      if (!number) {
        answer_.reset();
        cancel();
        return false;
      }
      numbers_.push_back(*number);
      choices.emplace_back(std::move(choice), &ask);
    }
    told_.prompt_tokens += std::ssize(ask.prompt);
  }
  left_ = std::ssize(choices);
  if (request_.stream) answer_->begin(shape_->stream_type());
  for (const auto& [choice, ask] : choices) {
    counters_.prompt_tokens += std::ssize(ask->prompt);
    const bool echoes = request_.echo && tokenizer_ != nullptr;
    choice->begin(echoes ? tokenizer_->decode(ask->prompt, true) : "");
  }
  return true;
}

void AnsweredRequest::cancel() {
  for (const int64_t number : numbers_) generator_.cancel(number);
}

void AnsweredRequest::begin(int64_t index) {
  if (request_.stream) answer_->write(shape_->begin(index));
}

void AnsweredRequest::say(ApiChoice& choice, const std::string& text,
                          std::vector<ToldToken> tokens) {
  if (text.empty() && tokens.empty()) return;
  if (request_.stream) return answer_->write(shape_->piece(choice.index, text, tokens));
  choice.text += text;
  std::ranges::move(tokens, std::back_inserter(choice.tokens));
}

void AnsweredRequest::end(ApiChoice choice) {
  std::string events = request_.stream ? shape_->finish(choice) : "";
  if (choice.index % request_.choices == 0) told_.cached_tokens += choice.times.cached_tokens;
  counters_.cached_tokens += choice.times.cached_tokens;
  told_.choices.push_back(std::move(choice));
  if (--left_ > 0) {
    if (request_.stream) answer_->write(std::move(events));
    return;
  }
  std::ranges::sort(told_.choices, {}, &ApiChoice::index);
  const auto answer = std::exchange(answer_, nullptr);
  if (!request_.stream) return answer->send(200, kWholeType, to_json_line(shape_->whole(told_)));
  answer->write(events + shape_->last(told_, request_.tells_usage));
  answer->end();
}

void AnsweredRequest::fail(const std::string& error) {
  ++counters_.failed;
  cancel();
  // A stream without its last event and its end is known by its client to be cut.
  const auto answer = std::exchange(answer_, nullptr);
  if (!request_.stream) return answer->refuse(500, error);
  answer->write(shape_->failure(error));
}

}  // namespace assay::server
