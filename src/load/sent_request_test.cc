// Requests through their files, and files that are none.
#include "load/sent_request.h"

#include <gtest/gtest.h>

#include "load/offered_load.h"

namespace assay {
namespace {

SentRequest served() {
  return {.number = 3,
          .scheduled_ns = 100,
          .sent_ns = 120,
          .first_token_ns = 5'000,
          .last_token_ns = 9'000,
          .end_ns = 9'100,
          .prompt_tokens = 20,
          .new_tokens = 2,
          .tokens = 2,
          .cached_tokens = 0,
          .token_us = {4, 8}};
}

SentRequest failed() {
  SentRequest request{.number = 4, .scheduled_ns = 1, .sent_ns = 1, .end_ns = 7};
  request.prompt_tokens = 20;
  request.new_tokens = 2;
  request.status = "error";
  request.error_class = "stream_cut";
  return request;
}

std::string requests_file(const std::string& lines) {
  return requests_header() + lines;
}

TEST(SentRequests, GoThroughTheirFiles) {
  const std::string requests = requests_file(request_line("c000-a, \"b\"", 1, served()) +
                                             request_line("c000-a, \"b\"", 1, failed()));
  const std::string times = token_times_header() + token_times_line("c000-a, \"b\"", 1, served()) +
                            token_times_line("c000-a, \"b\"", 1, failed());
  const auto read = parse_requests(requests, times, "requests.csv");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].cell_id, "c000-a, \"b\"");
  EXPECT_EQ((*read)[0].run, 1);
  EXPECT_EQ((*read)[0].request, served());
  EXPECT_EQ((*read)[1].request, failed());
}

TEST(SentRequests, WithoutTokenTimesLackThemAlone) {
  const auto read =
      parse_requests(requests_file(request_line("c", 0, served())), "", "requests.csv");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->front().request.token_us.empty());
}

TEST(SentRequests, FilesThatAreNoneAreRefusedInOneLine) {
  const std::string good = request_line("c", 0, served());
  const auto wrong = [&](const std::string& requests, const std::string& times = "") {
    const auto read = parse_requests(requests, times, "requests.csv");
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_NE(wrong("cell_id,run\n").find("expected the columns cell_id,run,number"),
            std::string::npos);
  EXPECT_EQ(wrong(requests_file(good + good)),
            "requests.csv line 3: expected each request once, found one again");
  EXPECT_EQ(wrong(requests_file("c,0,1,2\n")), "requests.csv line 2: expected 14 columns, found 4");
  EXPECT_EQ(wrong(requests_file("c,0,-1,2,3,,,4,1,1,,,error,x\n")),
            "requests.csv line 2 column 3: expected 0 to 34560000000000000, found \"-1\"");
  EXPECT_EQ(wrong(requests_file("c,0,1,9,3,,,4,1,1,,,error,x\n")),
            "requests.csv line 2: expected scheduled, sent, tokens and end in that order, found "
            "another");
  EXPECT_EQ(wrong(requests_file("c,0,1,1,3,,,4,1,1,,,fine,x\n")),
            "requests.csv line 2: expected a status, found \"fine\"");
  EXPECT_NE(wrong(requests_file("c,0,1,1,3,,,4,1,1,,,ok,\n")).find("expected an ok request"),
            std::string::npos);
  EXPECT_NE(wrong(requests_file(good), token_times_header() + "c,0,9,1 2\n").find("of a request"),
            std::string::npos);
  EXPECT_NE(wrong(requests_file(good), token_times_header() + "c,0,3,8 4\n").find("don't go back"),
            std::string::npos);
}

TEST(SentRequests, ThatNoReaderTakesAreRefusedBeforeTheyAreWritten) {
  EXPECT_EQ(wrong_request(served()), "");
  SentRequest request = served();
  request.token_us = {-5};
  EXPECT_NE(wrong_request(request), "");
  request.token_us = {5, 4};
  EXPECT_NE(wrong_request(request), "");
  request.token_us = {INT64_MAX};
  EXPECT_NE(wrong_request(request), "");
  request = failed();
  request.tokens = 2'000'000'000;
  EXPECT_EQ(wrong_request(request), "expected counts of 0 to 1000000000, found 2000000000");
  request.tokens = -1;
  EXPECT_NE(wrong_request(request), "");
}

TEST(LoadTraces, AreReadInTheirThreeForms) {
  const std::vector<TracedRequest> expected = {{0, 20, 4}, {1.5, 30, 2}};
  for (const char* text :
       {"arrival_s,prompt_tokens,new_tokens,batch\n2,20,4,1\n3.5,30,2,1\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.5,20,4\r\n2023-11-16 "
        "18:17:05.0,30,2\r\n",
        "{\"timestamp\": 1500, \"input_length\": 30, \"output_length\": 2, \"hash_ids\": [1]}\n"
        "{\"timestamp\": 0, \"input_length\": 20, \"output_length\": 4}\n"}) {
    const auto read = parse_load_trace(text, "trace");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, expected) << text;
  }
}

TEST(LoadTraces, ThatAreNoneAreRefusedWithTheirLine) {
  const auto wrong = [](const char* text) {
    const auto read = parse_load_trace(text, "trace");
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(wrong(" \n"), "trace: expected a trace, found nothing");
  EXPECT_EQ(wrong("a,b\n1,2\n"), "trace: expected a column arrival_s or TIMESTAMP, found neither");
  EXPECT_EQ(wrong("arrival_s,prompt_tokens,new_tokens\nx,1,1\n"),
            "trace line 2: expected a time and two numbers of tokens, found \"x\", \"1\", \"1\"");
  EXPECT_EQ(wrong("{\"timestamp\": 1}\n"),
            "trace line 1: expected timestamp, input_length and output_length, found others");
  EXPECT_NE(wrong("arrival_s,prompt_tokens,new_tokens\n1,-5,1\n").find("tokens in bounds"),
            std::string::npos);
}

TEST(OfferedLoads, ThatNobodyCanOfferSaySo) {
  OfferedLoad load{.point = {.concurrency = 1}, .requests = 5};
  EXPECT_EQ(wrong_load(load), "");
  load.point.rate = 2;
  EXPECT_EQ(wrong_load(load), "expected one of concurrency, rate and speed, found 2");
  load.point = {.rate = -1};
  EXPECT_EQ(wrong_load(load), "expected a rate above 0 and up to 100000, found -1");
  load.point = {.rate = 1e-12};
  EXPECT_NE(wrong_load(load).find("schedule of at most"), std::string::npos);
  load = {.point = {.rate = 5000}, .duration_s = 300};
  EXPECT_EQ(wrong_load(load), "expected at most 1000000 requests, found 5000 a second for 300 s");
  load = {.point = {.concurrency = 0}, .requests = 5};
  EXPECT_EQ(wrong_load(load), "concurrency: expected 1 to 20000, found 0");
  load = {.point = {.concurrency = 1}};
  EXPECT_EQ(wrong_load(load), "expected duration_s or requests, found neither");
  load.requests = 1;
  load.new_tokens = {.least = 5, .most = 2};
  EXPECT_EQ(wrong_load(load),
            "new_tokens: expected least and most within 1 to 10000000, found 5 and 2");
  load = {.point = {.concurrency = 1}, .requests = 10, .turns = 4};
  EXPECT_EQ(wrong_load(load),
            "requests: expected a multiple of the 4 turns of a session, found 10");
  load.turns = 0;
  EXPECT_EQ(wrong_load(load), "turns: expected 1 to 1000, found 0");
  load = {.point = {.speed = 1}, .turns = 2, .trace = {{0, 5, 1}}};
  EXPECT_EQ(wrong_load(load), "expected one turn of a trace's requests, found more");
}

}  // namespace
}  // namespace assay
