// Probabilities of tokens, as the APIs tell them.
#include "server/logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/service_fixture.h"

namespace assay::server {
namespace {

using testing::HasSubstr;

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

TEST_F(ServiceTest, ProbabilitiesThatAnAnswerHoldsUntilItsEndAreBounded) {
  start(1, {.most_waiting = 200});
  Json body = {{"prompt", {5}}, {"max_tokens", 49}, {"n", 128}, {"logprobs", 20}};
  EXPECT_THAT(refused("/v1/completions", body),
              HasSubstr("logprobs: expected at most 131072 of all tokens together, or a stream, "
                        "found 131712"));
  body["max_tokens"] = 48;
  EXPECT_EQ(answered("/v1/completions", body)["choices"].size(), 128u);
  body.update({{"max_tokens", 49}, {"stream", true}});
  const auto answer = ask("/v1/completions", body);
  until([&] { return answer->done; });
  EXPECT_EQ(answer->status, 200);
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

}  // namespace
}  // namespace assay::server
