// The APIs: clients' requests, byte for byte their answers.
#include "server/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/service_fixture.h"

namespace assay::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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

TEST_F(ServiceTest, TokensThatWerentComputedAreTold) {
  start();
  engine_->cached = 3;
  const Json json = answered("/v1/completions",
                             {{"prompt", {{1, 2, 3, 4, 5}, {7, 8}}}, {"n", 2}, {"max_tokens", 2}});
  EXPECT_EQ(json["choices"][0]["text"], "6 7 ");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 3 + 1) << "each prompt once";
  const Json one = answered("/v1/completions", {{"prompt", {1, 2, 3, 4, 5}}, {"max_tokens", 2}});
  EXPECT_EQ(one["timings"]["cache_n"], 3);
  EXPECT_EQ(one["timings"]["prompt_n"], 2);
  EXPECT_THAT(ask("/metrics", "", "GET")->bytes, HasSubstr("\nassay_cached_tokens_total 11\n"));
  EXPECT_EQ(Json::parse(ask("/v1/models", "", "GET")->bytes)["data"][0]["prefix_reuse"], false);
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

TEST_F(ServiceTest, ALargeBodyIsReadBesideTheLoop) {
  start();
  const std::string filling(100'000, ' ');
  const auto asked = [&](const std::string& path, const std::string& body) {
    return ask(path, Json(filling + body));
  };
  const auto completion = asked("/v1/completions", R"({"prompt": [5], "max_tokens": 2})");
  EXPECT_FALSE(completion->done) << "another thread has it";
  until([&] { return completion->done; });
  EXPECT_EQ(Json::parse(completion->bytes)["choices"][0]["text"], "6 7 ");
  const auto torn = asked("/api/show", "{");
  const auto shown = asked("/api/show", "{}");
  const auto text = asked("/tokenize", R"({"content": "x"})");
  until([&] { return torn->done && shown->done && text->done; });
  EXPECT_EQ(torn->status, 400);
  EXPECT_EQ(shown->status, 200);
  EXPECT_THAT(text->bytes, HasSubstr("since the model has no tokenizer"));
}

TEST_F(ServiceTest, ErrorsHaveTheApisShapes) {
  EXPECT_EQ(Json::parse(api_error("/v1/models", 401, "no"))["error"]["type"],
            "authentication_error");
  EXPECT_EQ(Json::parse(api_error("/api/tags", 404, "no")), (Json{{"error", "no"}}));
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

}  // namespace
}  // namespace assay::server
