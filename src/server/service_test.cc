// The APIs over a scheduler whose engine is a toy: clients' requests, byte for byte their answers.
#include "server/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>

#include "base/text/text.h"
#include "server/scheduler.h"
#include "server/stop_strings.h"

namespace assay::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int32_t kEnd = 99;

// Each next token is the one before it and one; 99 ends a text. A prompt whose last token is even
// ends with the slot's first step.
class CountingEngine final : public SlotEngine {
 public:
  explicit CountingEngine(int64_t slots)
      : latest_(static_cast<size_t>(slots)), awaits_(latest_.size()) {}
  int64_t slots() const override { return std::ssize(latest_); }
  int64_t capacity() const override { return 50; }
  std::optional<int64_t> join() override {
    for (int64_t slot = 0; slot < slots(); ++slot) {
      if (used_.insert(slot).second) return slot;
    }
    return std::nullopt;
  }
  void leave(int64_t slot) override { EXPECT_EQ(used_.erase(slot), 1u); }
  Status begin(int64_t, const TokenAsk& wanted) override {
    if (wanted.sampling.seed == 7) return bad_input("expected another seed, found 7");
    return {};
  }
  Status extend(std::span<const engine::SlotPrompt> parts) override {
    if (gated) gate.acquire();
    int64_t tokens = 0;
    for (const auto& [slot, ids] : parts) {
      if (ids.back() == 13) return environment_error("expected no 13, found one");
      tokens += std::ssize(ids);
      const bool awaits = ids.back() % 2 == 0;
      latest_[static_cast<size_t>(slot)] = ids.back() + (awaits ? 0 : 1);
      awaits_[static_cast<size_t>(slot)] = awaits;
    }
    chunks.push_back(tokens);
    return {};
  }
  std::optional<int32_t> chosen(int64_t slot) const override {
    if (awaits_[static_cast<size_t>(slot)]) return std::nullopt;
    return latest_[static_cast<size_t>(slot)];
  }
  Status run(std::span<const int64_t> slots, int64_t most, bool,
             const engine::Batch::Sink& sink) override {
    most_stepped = std::max(most_stepped, std::ssize(slots));
    std::vector<int64_t> going(slots.begin(), slots.end());
    for (bool last = false; most > 0 && !going.empty() && !last; --most) {
      ++steps;
      std::erase_if(going, [&](int64_t slot) {
        EXPECT_TRUE(used_.contains(slot));
        awaits_[static_cast<size_t>(slot)] = false;
        const engine::Onward onward = sink(slot, ++latest_[static_cast<size_t>(slot)]);
        last |= onward == engine::Onward::kLast;
        return onward == engine::Onward::kStop;
      });
    }
    return {};
  }
  bool ends_text(int32_t id) const override { return id == kEnd; }
  // 0, but of the next token 2 and of the one behind it 1.
  std::span<const float> logits(int64_t slot) const override {
    if (no_logits) return {};
    const auto next_id = static_cast<size_t>(latest_[static_cast<size_t>(slot)]);
    logits_.assign(101, 0);
    logits_[next_id] = 2;
    logits_[next_id + 1] = 1;
    return std::span(logits_).first(100);
  }

  bool no_logits = false;
  std::vector<int64_t> chunks = {};
  bool gated = false;
  std::counting_semaphore<> gate{0};  // an extend() waits for one each
  int64_t steps = 0;
  ptrdiff_t most_stepped = 0;

 private:
  std::vector<int32_t> latest_;
  std::vector<bool> awaits_;
  std::set<int64_t> used_ = {};
  mutable std::vector<float> logits_ = {};
};

// An answer as its client sees it.
class SeenAnswer final : public Answer {
 public:
  ~SeenAnswer() override = default;
  void send(int code, std::string_view, std::string body) override {
    status = code;
    bytes = std::move(body);
    done = true;
  }
  void refuse(int code, const std::string& message, std::optional<int> retry) override {
    status = code;
    bytes = message;
    retry_after_s = retry;
    done = true;
  }
  void begin(std::string_view of_type) override {
    status = 200;
    type = of_type;
  }
  void write(std::string more) override { bytes += more; }
  void end() override { done = true; }
  void when_gone(std::function<void()> tell) override { go = std::move(tell); }

  int status = 0;
  std::string bytes, type;
  std::optional<int> retry_after_s;
  bool done = false;
  std::function<void()> go;
};

ServedModel toy() {
  ServedModel model;
  model.name = "toy";
  model.architecture = "llama";
  model.capacity = 50;
  model.vocab_size = 100;
  return model;
}

// The events of a stream.
std::vector<std::string> events_of(const std::string& bytes) {
  std::vector<std::string> events;
  for (const std::string& line : split(bytes, '\n')) {
    if (line.starts_with("data: ")) events.push_back(line.substr(6));
  }
  return events;
}

class ServiceTest : public testing::Test {
 protected:
  void start(int64_t slots = 2, const SchedulerOptions& options = {}) {
    auto engine = std::make_unique<CountingEngine>(slots);
    engine_ = engine.get();
    scheduler_ =
        std::make_unique<Scheduler>(std::move(engine), options, [this](std::function<void()> work) {
          const std::lock_guard lock(mutex_);
          work_.push_back(std::move(work));
          more_.notify_all();
        });
    service_ = std::make_unique<Service>(toy(), *scheduler_, nullptr, std::nullopt);
  }
  void TearDown() override { scheduler_.reset(); }

  std::shared_ptr<SeenAnswer> ask(const std::string& path, const Json& body,
                                  const std::string& method = "POST") {
    auto answer = std::make_shared<SeenAnswer>();
    service_->serve({method, path, "", body.is_string() ? body.get<std::string>() : body.dump()},
                    answer);
    return answer;
  }

  // Runs what the scheduler delivers until this holds.
  void until(const std::function<bool()>& holds) {
    while (!holds()) {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(more_.wait_for(lock, std::chrono::seconds(10), [&] { return !work_.empty(); }));
      auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
    }
  }
  Json answered(const std::string& path, const Json& body) {
    const auto answer = ask(path, body);
    until([&] { return answer->done; });
    EXPECT_EQ(answer->status, 200) << answer->bytes;
    return Json::parse(answer->bytes);
  }
  std::string refused(const std::string& path, const Json& body, int status = 400) {
    const auto answer = ask(path, body);
    EXPECT_TRUE(answer->done);
    EXPECT_EQ(answer->status, status) << answer->bytes;
    return answer->bytes;
  }

  CountingEngine* engine_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Service> service_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> work_;
};

TEST_F(ServiceTest, ACompletionHasItsTextUsageAndTimings) {
  start();
  const Json json =
      answered("/v1/completions", {{"prompt", {5, 6}}, {"max_tokens", 3}, {"model", "toy"}});
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["choices"][0]["text"], "7 8 9 ");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(json["usage"]["completion_tokens"], 3);
  EXPECT_EQ(json["timings"]["predicted_n"], 3);
}

TEST_F(ServiceTest, AStreamHasAnEventATokenAFinishUsageAndDone) {
  start();
  const auto answer = ask("/v1/completions", {{"prompt", {5}},
                                              {"max_tokens", 2},
                                              {"stream", true},
                                              {"stream_options", {{"include_usage", true}}}});
  until([&] { return answer->done; });
  EXPECT_EQ(answer->type, "text/event-stream");
  const std::vector<std::string> events = events_of(answer->bytes);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["text"], "6 ");
  EXPECT_TRUE(Json::parse(events[1])["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(Json::parse(events[2])["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(Json::parse(events[3])["choices"].empty());
  EXPECT_EQ(Json::parse(events[3])["usage"]["completion_tokens"], 2);
  EXPECT_EQ(events[4], "[DONE]");
}

TEST_F(ServiceTest, AnIdThatEndsTextsDoesUnlessItIsIgnoredOrTooEarly) {
  start();
  Json body = {{"prompt", {96}}, {"max_tokens", 10}};
  Json json = answered("/v1/completions", body);
  EXPECT_EQ(json["choices"][0]["text"], "97 98 ");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["completion_tokens"], 2);
  body["min_tokens"] = 3;
  EXPECT_EQ(answered("/v1/completions", body)["usage"]["completion_tokens"], 10);
  body["min_tokens"] = 0;
  body["ignore_eos"] = true;
  EXPECT_EQ(answered("/v1/completions", body)["usage"]["completion_tokens"], 10);
}

TEST_F(ServiceTest, AStopStringEndsATextBeforeItself) {
  start();
  const Json json =
      answered("/v1/completions", {{"prompt", {5}}, {"max_tokens", 20}, {"stop", {"8 9", "x"}}});
  EXPECT_EQ(json["choices"][0]["text"], "6 7 ");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
}

TEST_F(ServiceTest, OllamasAnswersAreLinesWithCountsOnTheLast) {
  start();
  ask("/api/generate", {{"model", "toy"}, {"prompt", "no tokenizer"}});
  EXPECT_THAT(refused("/api/generate", {{"model", "other"}, {"prompt", "x"}}, 404),
              HasSubstr("expected \"toy\", found"));
  const auto shape = answer_shape(ApiKind::kOllamaChat, toy(), 0);
  const Json piece = Json::parse(shape->piece(0, "hi", {}));
  EXPECT_EQ(piece["message"]["content"], "hi");
  EXPECT_EQ(piece["done"], false);
  const Json last = Json::parse(shape->last(
      {{{.stopped = true, .prompt_tokens = 3, .new_tokens = 4, .times = {1, 2, 5}}}}, true));
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], "stop");
  EXPECT_EQ(last["prompt_eval_count"], 3);
  EXPECT_EQ(last["prompt_eval_duration"], 2'000'000);
  EXPECT_EQ(last["eval_count"], 4);
  EXPECT_EQ(last["eval_duration"], 5'000'000);
}

TEST_F(ServiceTest, WhatCantBeHadIsRefusedByName) {
  start();
  const auto with = [&](const char* key, const Json& value) {
    Json body = {{"prompt", {1}}, {"max_tokens", 1}};
    body[key] = value;
    return refused("/v1/completions", body);
  };
  EXPECT_THAT(with("temperature", -1), HasSubstr("temperature: expected"));
  EXPECT_THAT(with("temperature", "hot"), HasSubstr("temperature: expected a number"));
  EXPECT_THAT(with("top_p", 0), HasSubstr("top_p: expected"));
  EXPECT_THAT(with("logit_bias", {{"x", 1}}), HasSubstr("logit_bias: expected token ids"));
  EXPECT_THAT(with("logit_bias", {{"1", 1}, {"01", 1}}), HasSubstr("each once, found 2 entries"));
  EXPECT_THAT(with("seed", 1.5), HasSubstr("seed: expected"));
  EXPECT_THAT(with("n", 129), HasSubstr("n: expected a whole number from 1 to 128"));
  EXPECT_THAT(with("best_of", 2),
              HasSubstr("best_of: expected n, since none is left out, found \"2\""));
  EXPECT_THAT(with("logprobs", 21), HasSubstr("logprobs: expected a whole number from 0 to 20"));
  EXPECT_THAT(with("max_tokens", 0), HasSubstr("max_tokens: expected a whole number from 1"));
  EXPECT_THAT(with("max_tokens", 1e300), HasSubstr("max_tokens: expected a whole number"));
  EXPECT_THAT(with("max_tokens", 50),
              HasSubstr("expected at most 50 tokens with the new ones, found 1 and 50"));
  EXPECT_THAT(with("prompt", {1, 100}), HasSubstr("expected ids below 100, found 100"));
  EXPECT_THAT(with("prompt", {-1}), HasSubstr("token ids"));
  EXPECT_THAT(with("prompt", Json::array()), HasSubstr("at least one token"));
  EXPECT_THAT(with("prompt", {{1}, 2}), HasSubstr("prompt: expected a text or token ids, found"));
  EXPECT_THAT(with("prompt", std::vector<Json>(129, {1})), HasSubstr("at most 128 answers"));
  EXPECT_THAT(with("prompt", "text"), HasSubstr("since the model has no tokenizer"));
  EXPECT_THAT(with("stop", ""), HasSubstr("stop: expected texts"));
  EXPECT_THAT(with("stream", "yes"), HasSubstr("stream"));
  EXPECT_THAT(refused("/v1/completions", "{\"prompt\": [1"), HasSubstr("body"));
  EXPECT_THAT(refused("/v1/completions", std::string(100'000, '[')), HasSubstr("body"));
  EXPECT_THAT(
      refused("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "x"}}}}}),
      HasSubstr("a model with a chat template"));
  EXPECT_THAT(refused("/v1/completions", {{"model", 5}, {"prompt", {1}}}, 404),
              HasSubstr("\"toy\""));
  EXPECT_THAT(refused("/nowhere", Json::object(), 404), HasSubstr("/nowhere"));
  EXPECT_EQ(ask("/v1/completions", Json::object(), "GET")->status, 405);
}

TEST_F(ServiceTest, ErrorsHaveTheApisShapes) {
  EXPECT_EQ(Json::parse(api_error("/v1/models", 401, "no"))["error"]["type"],
            "authentication_error");
  EXPECT_EQ(Json::parse(api_error("/api/tags", 404, "no")), (Json{{"error", "no"}}));
}

TEST_F(ServiceTest, ManyAreServedAtATimeAndTheRestWaits) {
  start(3, {.most_waiting = 4});
  std::vector<std::shared_ptr<SeenAnswer>> answers;
  for (int32_t i = 0; i < 7; ++i)
    answers.push_back(ask("/v1/completions", {{"prompt", {i}}, {"max_tokens", 40}}));
  until([&] { return std::ranges::all_of(answers, [](const auto& one) { return one->done; }); });
  int64_t busy = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]->status == 503) {
      EXPECT_EQ(answers[i]->retry_after_s, 1);
      ++busy;
      continue;
    }
    const Json json = Json::parse(answers[i]->bytes);
    EXPECT_THAT(json["choices"][0]["text"].get<std::string>(),
                testing::StartsWith(fmt::format("{} ", i + 1)));
    EXPECT_EQ(json["usage"]["completion_tokens"], 40);
  }
  EXPECT_EQ(busy, 0);
  EXPECT_LE(engine_->most_stepped, 3);
}

TEST_F(ServiceTest, ASlotThatAnEndOfTextFreesIsForWhoeverWaits) {
  start(2);
  const auto longer = ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 45}});
  const auto ends = ask("/v1/completions", {{"prompt", {kEnd - 2}}, {"max_tokens", 45}});
  const auto waits = ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 40}});
  until([&] { return longer->done && ends->done && waits->done; });
  EXPECT_LT(engine_->steps, 60) << "the third's steps are the first's too";
}

TEST_F(ServiceTest, BeyondTheQueueARequestIsToldToComeAgain) {
  start(1, {.most_waiting = 2});
  engine_->gated = true;
  const Json body = {{"prompt", {1}}, {"max_tokens", 1}};
  std::vector<std::shared_ptr<SeenAnswer>> answers = {ask("/v1/completions", body)};
  while (scheduler_->state().running == 0) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) answers.push_back(ask("/v1/completions", body));
  EXPECT_EQ(answers[3]->status, 503);
  EXPECT_EQ(answers[3]->retry_after_s, 1);
  EXPECT_EQ(scheduler_->state().waiting, 2);
  engine_->gate.release(3);
  until([&] { return answers[2]->done; });
  EXPECT_EQ(answers[2]->status, 200);
}

TEST_F(ServiceTest, PromptsAreComputedInChunks) {
  start(1, {.chunk_tokens = 8});
  answered("/v1/completions", {{"prompt", std::vector<int32_t>(20, 1)}, {"max_tokens", 1}});
  EXPECT_THAT(engine_->chunks, ElementsAre(8, 8, 4));
}

TEST_F(ServiceTest, PromptsThatWaitShareAChunk) {
  start(3, {.chunk_tokens = 8});
  engine_->gated = true;
  std::vector<std::shared_ptr<SeenAnswer>> answers;
  for (const int64_t length : {4, 3, 6}) {
    const std::vector<int32_t> prompt(static_cast<size_t>(length), 2);
    answers.push_back(ask("/v1/completions", {{"prompt", prompt}, {"max_tokens", 2}}));
    // The first one is under way alone.
    while (answers.size() == 1 && scheduler_->state().running == 0) std::this_thread::yield();
  }
  engine_->gate.release(4);
  until([&] { return std::ranges::all_of(answers, [](const auto& one) { return one->done; }); });
  EXPECT_THAT(engine_->chunks, ElementsAre(4, 8, 1));
  for (const auto& answer : answers) {
    EXPECT_EQ(Json::parse(answer->bytes)["choices"][0]["text"], "3 4 ");
  }
}

TEST_F(ServiceTest, AClientThatGoesFreesItsSlot) {
  start(1);
  const auto first =
      ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 45}, {"stream", true}});
  const auto second = ask("/v1/completions", {{"prompt", {2}}, {"max_tokens", 2}});
  until([&] { return !first->bytes.empty(); });
  first->go();
  until([&] { return second->done; });
  EXPECT_EQ(second->status, 200);
  EXPECT_THAT(ask("/metrics", Json::object(), "GET")->bytes, Not(HasSubstr("outcome=\"ok\"} 0")));
}

TEST_F(ServiceTest, AnEngineThatFailsIsAnErrorOfItsRequestAlone) {
  start();
  const auto bad = ask("/v1/completions", {{"prompt", {13}}, {"max_tokens", 2}});
  EXPECT_EQ(answered("/v1/completions",
                     {{"prompt", {14}}, {"max_tokens", 2}})["usage"]["completion_tokens"],
            2);
  until([&] { return bad->done; });
  EXPECT_EQ(bad->status, 500);
  EXPECT_EQ(bad->bytes, "expected no 13, found one");
}

TEST_F(ServiceTest, SamplingIsTheEngines) {
  start();
  Json body = {{"prompt", {1}}, {"max_tokens", 1}, {"temperature", 0.5}, {"seed", 7}};
  const auto bad = ask("/v1/completions", body);
  until([&] { return bad->done; });
  EXPECT_EQ(bad->status, 500);
  EXPECT_EQ(bad->bytes, "expected another seed, found 7");
  const auto request = parse_api_request(ApiKind::kOllamaGenerate, {{"prompt", "x"},
                                                                    {"options",
                                                                     {{"temperature", 0.5},
                                                                      {"top_k", 40},
                                                                      {"top_p", 0.9},
                                                                      {"min_p", 0.1},
                                                                      {"repeat_penalty", 1.1},
                                                                      {"seed", 3},
                                                                      {"num_predict", 5}}}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->sampling.temperature, 0.5);
  EXPECT_EQ(request->sampling.top_k, 40);
  EXPECT_EQ(request->sampling.top_p, 0.9);
  EXPECT_EQ(request->sampling.min_p, 0.1);
  EXPECT_EQ(request->sampling.repetition_penalty, 1.1);
  EXPECT_EQ(request->sampling.seed, 3u);
  EXPECT_EQ(request->most_tokens, 5);
  const auto biased = parse_api_request(ApiKind::kCompletion, {{"prompt", "x"},
                                                               {"logit_bias", {{"5", -100}}},
                                                               {"presence_penalty", 0.5},
                                                               {"frequency_penalty", 1}});
  ASSERT_TRUE(biased) << biased.error().message;
  EXPECT_EQ(biased->sampling.logit_bias, (std::vector<std::pair<int32_t, double>>{{5, -100}}));
  EXPECT_EQ(biased->sampling.frequency_penalty, 1);
}

TEST_F(ServiceTest, QuestionsAboutTheServerHaveAnswers) {
  start();
  EXPECT_EQ(Json::parse(ask("/v1/models", "", "GET")->bytes)["data"][0]["id"], "toy");
  EXPECT_EQ(Json::parse(ask("/api/tags", "", "GET")->bytes)["models"][0]["name"], "toy");
  EXPECT_EQ(
      Json::parse(
          ask("/api/show", {{"model", "toy:latest"}})->bytes)["model_info"]["llama.context_length"],
      50);
  EXPECT_EQ(ask("/health", "", "HEAD")->status, 200);
  EXPECT_THAT(ask("/metrics", "", "GET")->bytes,
              HasSubstr("# TYPE assay_slots gauge\nassay_slots 2\n"));
}

TEST_F(ServiceTest, ACompletionTellsProbabilitiesWhereTheyAreAskedFor) {
  start();
  const double norm = std::log(std::exp(2) + std::exp(1) + 98);
  Json body = {{"prompt", {5}}, {"max_tokens", 2}, {"logprobs", 3}};
  const Json told = answered("/v1/completions", body)["choices"][0]["logprobs"];
  EXPECT_EQ(told["tokens"], (Json{"6 ", "7 "}));
  EXPECT_EQ(told["text_offset"], (Json{0, 2}));
  EXPECT_NEAR(told["token_logprobs"][1].get<double>(), 2 - norm, 1e-6);
  EXPECT_EQ(told["top_logprobs"][0].size(), 3u);
  EXPECT_NEAR(told["top_logprobs"][0]["7 "].get<double>(), 1 - norm, 1e-6);
  EXPECT_NEAR(told["top_logprobs"][0]["0 "].get<double>(), -norm, 1e-6) << "the smallest id of 98";
  body["logprobs"] = 0;
  EXPECT_EQ(answered("/v1/completions", body)["choices"][0]["logprobs"]["top_logprobs"][0].size(),
            1u);
  body.erase("logprobs");
  EXPECT_TRUE(answered("/v1/completions", body)["choices"][0]["logprobs"].is_null());
  body.update({{"logprobs", 1}, {"echo", true}});
  EXPECT_THAT(refused("/v1/completions", body),
              HasSubstr("logprobs: expected nothing beside echo"));
}

TEST_F(ServiceTest, AStreamTellsEachTokensProbabilityOnce) {
  start();
  const auto answer = ask("/v1/completions", {{"prompt", {5}},
                                              {"max_tokens", 9},
                                              {"stop", "10 x"},  // holds text back in between
                                              {"logprobs", 1},
                                              {"stream", true}});
  until([&] { return answer->done; });
  std::string text;
  std::vector<std::string> tokens;
  for (const std::string& event : events_of(answer->bytes)) {
    if (event == "[DONE]") continue;
    const Json choice = Json::parse(event)["choices"][0];
    text += choice["text"];
    if (choice["logprobs"].is_null()) continue;
    for (const Json& token : choice["logprobs"]["tokens"]) tokens.push_back(token);
  }
  EXPECT_EQ(text, "6 7 8 9 10 11 12 13 14 ");
  EXPECT_EQ(join(tokens, ""), text);
  EXPECT_EQ(tokens.size(), 9u);
}

TEST_F(ServiceTest, AConversationTellsProbabilitiesWithTheirBytes) {
  const std::vector<ToldToken> tokens = {{"h\xc3", 0, -0.5, {{"h\xc3", -0.5}, {"x", -1}}}};
  const auto shape = answer_shape(ApiKind::kChat, toy(), 0);
  const Json piece = Json::parse(shape->piece(1, "h", tokens).substr(6));
  EXPECT_EQ(piece["choices"][0]["index"], 1);
  const Json told = piece["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(told["token"], "h\uFFFD");
  EXPECT_EQ(told["bytes"], (Json{0x68, 0xc3}));
  EXPECT_EQ(told["logprob"], -0.5);
  EXPECT_EQ(told["top_logprobs"][1]["token"], "x");
  const Json told_texts = Json::parse(answer_shape(ApiKind::kCompletion, toy(), 0)
                                          ->piece(0, "", tokens)
                                          .substr(6))["choices"][0]["logprobs"];
  EXPECT_EQ(told_texts["tokens"], (Json{"bytes:\\x68\\xc3"})) << "two such may not be one key";
  EXPECT_EQ(told_texts["top_logprobs"][0], (Json{{"bytes:\\x68\\xc3", -0.5}, {"x", -1}}));
  const Json messages = Json::array({{{"role", "user"}, {"content", "x"}}});
  const auto asked = [&](const Json& members) {
    Json body = {{"messages", messages}};
    body.update(members);
    return parse_api_request(ApiKind::kChat, body);
  };
  EXPECT_EQ(asked({{"logprobs", true}, {"top_logprobs", 2}})->likeliest, 2);
  EXPECT_EQ(asked({{"logprobs", true}})->likeliest, 0);
  EXPECT_EQ(asked({{"logprobs", false}})->likeliest, std::nullopt);
  EXPECT_FALSE(asked({{"top_logprobs", 2}}));
  EXPECT_FALSE(asked({{"logprobs", 2}}));
}

TEST_F(ServiceTest, LogitsThatCantBeHadAreAnError) {
  start();
  engine_->no_logits = true;
  const auto answer = ask("/v1/completions", {{"prompt", {5}}, {"logprobs", 1}});
  until([&] { return answer->done; });
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(answered("/v1/completions", {{"prompt", {5}}, {"max_tokens", 1}})["choices"][0]["text"],
            "6 ");
}

TEST_F(ServiceTest, SeveralPromptsHaveSeveralAnswersEach) {
  start();
  Json body = {{"prompt", {{5}, {20, 21}}}, {"n", 2}, {"best_of", 2}, {"max_tokens", 3}};
  const Json json = answered("/v1/completions", body);
  ASSERT_EQ(json["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"], i < 2 ? "6 7 8 " : "22 23 24 ");
  }
  EXPECT_EQ(json["usage"]["prompt_tokens"], 3) << "each prompt once";
  EXPECT_EQ(json["usage"]["completion_tokens"], 12);
  body.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const auto answer = ask("/v1/completions", body);
  until([&] { return answer->done; });
  std::vector<std::string> texts(4), ends(4);
  const auto events = events_of(answer->bytes);
  ASSERT_EQ(events.size(), 4u * (3 + 1) + 2);
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json choice = Json::parse(events[i])["choices"][0];
    const auto index = choice["index"].get<size_t>();
    EXPECT_EQ(ends[index], "") << "nothing comes behind an end";
    texts[index] += choice["text"];
    if (!choice["finish_reason"].is_null()) ends[index] = choice["finish_reason"];
  }
  EXPECT_THAT(texts, ElementsAre("6 7 8 ", "6 7 8 ", "22 23 24 ", "22 23 24 "));
  EXPECT_THAT(ends, ElementsAre("length", "length", "length", "length"));
  EXPECT_EQ(Json::parse(events[16])["usage"]["completion_tokens"], 12);
  EXPECT_EQ(events[17], "[DONE]");
}

TEST_F(ServiceTest, OneOfSeveralThatFailsIsTheWholeAnswersError) {
  start(4);
  const auto answer = ask("/v1/completions", {{"prompt", {{5}, {13}}}, {"max_tokens", 3}});
  until([&] { return answer->done; });
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(answer->bytes, "expected no 13, found one");
  const auto stream =
      ask("/v1/completions", {{"prompt", {{5}, {13}}}, {"max_tokens", 40}, {"stream", true}});
  until([&] { return stream.use_count() == 1; });
  EXPECT_THAT(stream->bytes, HasSubstr("expected no 13, found one"));
  EXPECT_THAT(stream->bytes, Not(HasSubstr("[DONE]")));
  EXPECT_FALSE(stream->done) << "the stream is cut";
}

TEST_F(ServiceTest, SeveralAreTakenWholeOrNotAtAll) {
  start(1, {.most_waiting = 2});
  engine_->gated = true;
  const auto first = ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 1}});
  while (scheduler_->state().running == 0) std::this_thread::yield();
  const auto many = ask("/v1/completions", {{"prompt", {2}}, {"n", 3}, {"max_tokens", 1}});
  EXPECT_EQ(many->status, 503);
  EXPECT_EQ(many->retry_after_s, 1);
  engine_->gate.release(1);
  until([&] { return first->done; });
  while (scheduler_->state().waiting > 0) std::this_thread::yield();
  EXPECT_EQ(many->bytes, "expected fewer requests, found as many waiting as may");
  EXPECT_THAT(engine_->chunks, ElementsAre(1)) << "none of the three was computed";
}

TEST_F(ServiceTest, ThePageIsFreeAndTellsNothingOfTheModel) {
  start();
  for (const std::string& path : Service::free_paths()) {
    const auto answer = ask(path, "", "GET");
    EXPECT_EQ(answer->status, 200) << path;
    EXPECT_THAT(answer->bytes, Not(HasSubstr("toy"))) << path;
  }
}

TEST_F(ServiceTest, TheStatusCountsWhatRunsAndWhatCame) {
  start();
  answered("/v1/completions", {{"prompt", {5, 6}}, {"max_tokens", 3}});
  const Json told = Json::parse(ask("/status", "", "GET")->bytes);
  EXPECT_EQ(told["model"], "toy");
  EXPECT_EQ(told["slots"], 2);
  EXPECT_EQ(told["waiting"], 0);
  EXPECT_EQ(told["prompt_tokens"], 2);
  EXPECT_EQ(told["new_tokens"], 3);
  EXPECT_EQ(told["tokenizer"], false);
  EXPECT_GT(told["resident_bytes"], 1 << 20);
}

TEST(StopStrings, HoldBackWhatMayBeginOne) {
  StopStrings stops({"abc", "b\n"});
  EXPECT_EQ(stops.push("xa"), "x");
  EXPECT_EQ(stops.push("b"), "");
  EXPECT_EQ(stops.push("d"), "abd");
  EXPECT_EQ(stops.push("ab"), "");
  EXPECT_EQ(stops.push("\nmore"), "a");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("abc"), "");
  EXPECT_EQ(stops.finish(), "");
  StopStrings open({"abc"});
  EXPECT_EQ(open.push("ab"), "");
  EXPECT_EQ(open.finish(), "ab");
}

TEST(ChatTemplates, OfKnownFamiliesAreRendered) {
  const auto chatml = ChatTemplate::recognize(
      "{% if x %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + "
      "role}}");
  ASSERT_TRUE(chatml);
  EXPECT_EQ(*chatml->render({{"user", "Hi"}}),
            "<|im_start|>system\nYou "
            "help.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      *chatml->render({{"system", "S"}, {"user", "Hi"}}),
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const auto llama2 = ChatTemplate::recognize("[INST]");
  EXPECT_EQ(*llama2->render({{"system", "S"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}}),
            "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\na [/INST] b </s><s>[INST] c [/INST]");
  EXPECT_FALSE(llama2->render({{"assistant", "b"}}));
  EXPECT_FALSE(chatml->render({{"tool", "b"}}));
  EXPECT_FALSE(ChatTemplate::recognize("{{ messages }}"));
}

}  // namespace
}  // namespace assay::server
