#include "backend/http/http_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>

#include "backend/http/scripted_server.h"
#include "base/clock.h"

namespace assay {
namespace {

using test::chunk;
using test::Script;
using test::ScriptedServer;
using test::whole_answer;
using testing::HasSubstr;

HttpEndpoint endpoint_at(const std::string& url) {
  return {parse_server_url(url).value()};
}

HttpLimits within(double total_s, double silence_s = 0) {
  HttpLimits limits;
  limits.total_s = total_s;
  limits.silence_s = silence_s;
  return limits;
}

HttpResult<HttpAnswer> answer_of(const Script& script, HttpLimits limits = within(60),
                                 uint64_t most_bytes = 1000) {
  ScriptedServer server([&](const test::ScriptedRequest&) { return script; });
  HttpLoop loop;
  return ask(loop, endpoint_at(server.url()), {"POST", "/x", "{}"}, limits, most_bytes);
}

std::string class_of(const Script& script, HttpLimits limits = within(60)) {
  const auto answer = answer_of(script, limits);
  return answer ? "" : answer.error().error_class;
}

TEST(HttpLoop, AsksAndReadsAWholeAnswer) {
  ScriptedServer server([](const test::ScriptedRequest& request) {
    return whole_answer("you sent " + request.body);
  });
  HttpLoop loop;
  HttpEndpoint endpoint = endpoint_at(server.url() + "/under");
  endpoint.api_key = "k3y";
  const auto answer = ask(loop, endpoint, {"POST", "/place", "{\"a\":1}"}, within(60));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "you sent {\"a\":1}");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].path, "/under/place");
  EXPECT_THAT(requests[0].head, HasSubstr("Authorization: Bearer k3y"));
  EXPECT_THAT(requests[0].head, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(requests[0].head, HasSubstr(fmt::format("Host: 127.0.0.1:{}", server.port())));
}

TEST(HttpLoop, KeepsItsConnectionAndMakesAnotherOnceTheServerHasClosedIt) {
  bool closes = false;
  ScriptedServer server([&](const test::ScriptedRequest&) {
    Script script = whole_answer("x");
    if (closes) script.push_back({.close = true});
    return script;
  });
  HttpLoop loop;
  const HttpEndpoint endpoint = endpoint_at(server.url());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ask(loop, endpoint, {"GET", "/"}, within(60)));
  EXPECT_EQ(server.connections(), 1);
  closes = true;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(ask(loop, endpoint, {"GET", "/"}, within(60)));
    while (server.closed() < i) std::this_thread::yield();
  }
  EXPECT_EQ(server.connections(), 3);
  EXPECT_EQ(server.requests().size(), 6u) << "none was sent twice";
}

TEST(HttpLoop, EachFailureHasItsClass) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(class_of({{.close = true}}), http_class::kReset);
  EXPECT_EQ(class_of({{.reset = true}}), http_class::kReset);
  EXPECT_EQ(class_of({{head + "12345"}, {.close = true}}), http_class::kCut);
  EXPECT_EQ(class_of({{chunked + chunk("abc")}, {.close = true}}), http_class::kCut);
  EXPECT_EQ(class_of({{chunked + "zz\r\nabc\r\n"}}), http_class::kMalformed);
  EXPECT_EQ(class_of({{"SSH-2.0-server\r\n\r\n"}}), http_class::kMalformed);
  EXPECT_EQ(class_of({{"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n"}}),
            http_class::kTooLong);
  EXPECT_EQ(class_of(whole_answer(std::string(2000, 'x'))), http_class::kTooLong);
  EXPECT_EQ(class_of(whole_answer("who are you", 401)), "http_401");
  EXPECT_EQ(class_of(whole_answer("busy", 503)), "http_503");
  EXPECT_EQ(
      class_of({{"HTTP/1.1 302 X\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n"}}),
      http_class::kRedirect);
  EXPECT_EQ(class_of({{head}, {"0123456789", 60'000}}, within(0.2)), http_class::kTimeout);
  EXPECT_EQ(class_of({{head}, {"01234", 0}, {"56789", 60'000}}, within(60, 0.2)),
            http_class::kStalled);
}

TEST(HttpLoop, AnAnswerThatOnlyAnnouncesOneIsNotTheAnswer) {
  const auto answer = answer_of({{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"},
                                 {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny", 20}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "y");
}

TEST(HttpLoop, ARefusalThatIsCutIsARefusal) {
  EXPECT_EQ(class_of({{"HTTP/1.1 401 X\r\nContent-Length: 100\r\n\r\nno"}, {.close = true}}),
            "http_401");
}

TEST(HttpLoop, TheKeyIsTakenOutOfWhatAServerSays) {
  ScriptedServer server(
      [](const test::ScriptedRequest& request) { return whole_answer(request.head, 400); });
  HttpLoop loop;
  HttpEndpoint endpoint = endpoint_at(server.url());
  endpoint.api_key = "k3y";
  const auto answer = ask(loop, endpoint, {"GET", "/"}, within(60));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("Bearer ***"));
}

TEST(HttpLoop, ARefusalSaysWhatTheServerSaid) {
  const auto answer = answer_of(whole_answer("{\"error\":\"no such model\"}", 404));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("status 404: {\"error\":\"no such model\"}"));
}

TEST(HttpLoop, NobodyListens) {
  std::string url;
  {
    ScriptedServer gone([](const test::ScriptedRequest&) { return Script(); });
    url = gone.url();
  }
  HttpLoop loop;
  const auto refused = ask(loop, endpoint_at(url), {"GET", "/"}, within(60));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error_class, http_class::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr(url));
  const auto plain = answer_of(whole_answer("x"));
  ASSERT_TRUE(plain);
}

TEST(HttpLoop, ANameIsLookedUpOnceAndItsAddressesAreTriedInTurn) {
  ScriptedServer server([](const test::ScriptedRequest&) { return whole_answer("x"); });
  const auto asked = std::make_shared<std::vector<std::string>>();
  HttpLoop loop([asked](const std::string& host) -> FoundAddresses {
    asked->push_back(host);
    return std::vector<std::string>{"127.0.0.2", "127.0.0.1"};  // nobody listens at the first
  });
  const HttpEndpoint endpoint = endpoint_at(fmt::format("http://my.machine:{}", server.port()));
  for (int i = 0; i < 3; ++i) {
    const auto answer = ask(loop, endpoint, {"GET", "/", "", true}, within(60));
    ASSERT_TRUE(answer) << answer.error().message;
  }
  EXPECT_THAT(*asked, testing::ElementsAre("my.machine"));
  EXPECT_THAT(server.requests().at(0).head,
              HasSubstr(fmt::format("Host: my.machine:{}", server.port())));
  ASSERT_TRUE(ask(loop, endpoint_at(server.url()), {"GET", "/"}, within(60)));
  EXPECT_EQ(asked->size(), 1u) << "a number is no name";
}

TEST(HttpLoop, ANameThatNobodyHasSaysSo) {
  HttpLoop loop([](const std::string&) -> FoundAddresses { return std::unexpected("no such"); });
  const auto answer = ask(loop, endpoint_at("http://no.machine:1"), {"GET", "/"}, within(60));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().error_class, http_class::kHostNotFound);
  EXPECT_EQ(answer.error().message,
            "expected a machine of the name no.machine, found none: no such");
}

// A resolver that doesn't answer ends neither the request's limit nor the loop's own life.
TEST(HttpLoop, AResolverThatDoesntAnswerTakesNoLongerThanTheRequestMay) {
  std::promise<void> over;
  const std::shared_future<void> end = over.get_future().share();
  const auto left = std::make_shared<std::promise<void>>();
  std::future<void> gone = left->get_future();
  {
    HttpLoop loop([end, left](const std::string&) -> FoundAddresses {
      end.wait();
      left->set_value();
      return std::vector<std::string>{"127.0.0.1"};
    });
    const auto answer = ask(loop, endpoint_at("http://slow.machine:1"), {"GET", "/"}, within(0.2));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().error_class, http_class::kUnreachable);
    EXPECT_EQ(answer.error().message,
              "expected the address of slow.machine from this machine's resolver, found no answer "
              "within 0.2 s");
  }
  over.set_value();  // its answer finds nobody
  gone.wait();
}

TEST(HttpLoop, AServerThatSpeaksNoTlsIsATlsError) {
  ScriptedServer server([](const test::ScriptedRequest&) { return whole_answer("x"); });
  HttpLoop loop;
  const auto answer = ask(loop, endpoint_at(fmt::format("https://127.0.0.1:{}", server.port())),
                          {"GET", "/"}, within(60));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().error_class, http_class::kTls);
}

// A body's pieces with the times at which they came.
struct Pieces final : HttpExchange {
  std::vector<std::pair<std::string, int64_t>> pieces;
  int ends = 0;
  HttpResult<void> result;
  HttpResult<void> body(std::string_view bytes, int64_t at_ns) override {
    pieces.emplace_back(bytes, at_ns);
    return {};
  }
  void end(HttpResult<void> ended, int64_t) override {
    ++ends;
    result = std::move(ended);
  }
};

TEST(HttpLoop, AnAnswerWhoseConnectionIsResetInItsMiddleIsCut) {
  struct Beginning final : HttpExchange {
    std::promise<void> read;
    HttpResult<void> result;
    HttpResult<void> body(std::string_view, int64_t) override {
      read.set_value();
      return {};
    }
    void end(HttpResult<void> ended, int64_t) override { result = std::move(ended); }
  };
  const auto beginning = std::make_shared<Beginning>();
  const Script script = {{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"},
                         {.reset = true, .after = beginning->read.get_future().share()}};
  ScriptedServer server([&](const test::ScriptedRequest&) { return script; });
  HttpLoop loop;
  loop.start(endpoint_at(server.url()), {"GET", "/"}, within(60), beginning);
  loop.run();
  ASSERT_FALSE(beginning->result);
  EXPECT_EQ(beginning->result.error().error_class, http_class::kCut);
}

TEST(HttpLoop, PiecesComeWhenTheyAreSent) {
  ScriptedServer server([](const test::ScriptedRequest&) {
    return test::chunked_answer({"a", "b", "c"}, 40);
  });
  HttpLoop loop;
  const auto pieces = std::make_shared<Pieces>();
  const int64_t begun = monotonic_now_ns();
  loop.start(endpoint_at(server.url()), {"GET", "/"}, within(60), pieces);
  loop.run();
  ASSERT_TRUE(pieces->result);
  ASSERT_EQ(pieces->pieces.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const double ms = static_cast<double>(pieces->pieces[i].second - begun) / 1e6;
    EXPECT_GE(ms, 40.0 * static_cast<double>(i + 1)) << "a piece can't come before it is sent";
  }
}

TEST(HttpLoop, ManyExchangesGoOnSideBySideAndEachEndsOnce) {
  std::latch asked(50);  // one after the other would never get an answer
  ScriptedServer server([&](const test::ScriptedRequest&) {
    asked.arrive_and_wait();
    return test::chunked_answer({"a", "b"}, 50);
  });
  HttpLoop loop;
  std::vector<std::shared_ptr<Pieces>> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(std::make_shared<Pieces>());
    loop.start(endpoint_at(server.url()), {"GET", "/"}, within(60), all.back());
  }
  EXPECT_EQ(loop.open_exchanges(), 50);
  loop.run();
  EXPECT_EQ(loop.open_exchanges(), 0);
  for (const auto& one : all) {
    EXPECT_EQ(one->ends, 1);
    EXPECT_EQ(one->pieces.size(), 2u);
  }
}

}  // namespace
}  // namespace assay
