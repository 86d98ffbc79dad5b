// Requests that share an engine: their order, their bounds, and failures of one of them.
#include "server/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/service_fixture.h"

namespace assay::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
  engine_->gated = true;  // none begins before all are there
  const auto longer = ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 45}});
  const auto ends = ask("/v1/completions", {{"prompt", {kEnd - 2}}, {"max_tokens", 45}});
  const auto waits = ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 40}});
  engine_->gate.release(3);
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

TEST_F(ServiceTest, WhatIsCountedOfARequestStandsWhenItsAnswerEnds) {
  start(2);
  engine_->leaves_gated = true;  // the scheduler's thread gets no further than the answer's end
  for (int64_t i = 1; i < 4; ++i) {
    answered("/v1/completions", {{"prompt", {1}}, {"max_tokens", 3}});
    EXPECT_EQ(engine_->requests_ended, i);
    EXPECT_EQ(scheduler_->state().running, 0);
    EXPECT_THAT(ask("/metrics", Json::object(), "GET")->bytes,
                HasSubstr(fmt::format("outcome=\"ok\"}} {}\n", i)));
    engine_->gate.release();
  }
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

TEST_F(ServiceTest, AStepThatFailsIsAnErrorOfTheRequestThatMakesItFail) {
  start(3);
  engine_->gated = true;
  const auto first = ask("/v1/completions", {{"prompt", {1}}, {"max_tokens", 30}});
  while (scheduler_->state().running == 0) std::this_thread::yield();
  const auto bad = ask("/v1/completions", {{"prompt", {70}}, {"max_tokens", 30}});
  const auto other = ask("/v1/completions", {{"prompt", {21}}, {"max_tokens", 30}});
  engine_->gate.release(2);
  until([&] { return first->done && bad->done && other->done; });
  EXPECT_EQ(bad->status, 500);
  EXPECT_EQ(bad->bytes, "expected no 77, found one");
  for (const auto& [answer, begin] : {std::pair(first, "2 3 "), std::pair(other, "22 23 ")}) {
    ASSERT_EQ(answer->status, 200) << answer->bytes;
    const Json json = Json::parse(answer->bytes);
    EXPECT_EQ(json["usage"]["completion_tokens"], 30);
    EXPECT_THAT(json["choices"][0]["text"].get<std::string>(), testing::StartsWith(begin))
        << "none is missing, none comes twice";
  }
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

}  // namespace
}  // namespace assay::server
