// Good and bad clients, byte by byte.
#include "server/http_front.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/text/text.h"

namespace assay::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A client's connection.
class Client {
 public:
  explicit Client(const std::string& url) {
    const auto port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval most{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
  }
  ~Client() { close(); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  // All until `end` has come, or the server's end.
  std::string read(std::string_view end = "") const {
    std::string all;
    char bytes[4096];
    while (end.empty() || all.find(end) == std::string::npos) {
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      all.append(bytes, static_cast<size_t>(count));
    }
    return all;
  }

 private:
  int socket_ = -1;
};

// A front in a thread of its own. /echo answers with the body, /stream with three pieces, /hold
// never by itself, /drop lets its answer go, /torn after a piece, /flood with more than anybody
// takes, /keep keeps the request.
class FrontTest : public testing::Test {
 protected:
  void start(FrontOptions options = {}) {
    options.error_body = [](std::string_view path, int status, const std::string& message) {
      return fmt::format("{}|{}|{}", path, status, message);
    };
    auto listening = HttpFront::listen(
        std::move(options), [this](ServedRequest request, std::shared_ptr<Answer> answer) {
          serve(std::move(request), std::move(answer));
        });
    ASSERT_TRUE(listening) << listening.error().message;
    front_ = *std::move(listening);
    thread_ = std::thread([this] { front_->run(); });
  }

  void serve(ServedRequest request, std::shared_ptr<Answer> answer) {
    if (request.path == "/page") {
      answer->send(200, "text/html; charset=utf-8", "<p>hello");
    } else if (request.path == "/echo") {
      answer->send(200, "text/plain", request.method + "?" + request.query + " " + request.body);
    } else if (request.path == "/stream") {
      answer->begin("text/event-stream");
      for (const char* const piece : {"one", "two", "three"}) answer->write(piece);
      answer->end();
    } else if (request.path == "/hold") {
      answer->when_gone([this] { gone_.set_value(); });
      held_ = std::move(answer);
      holds_.set_value();
    } else if (request.path == "/torn") {
      answer->begin("text/plain");
      answer->write("half");
    } else if (request.path == "/flood") {
      answer->when_gone([this] { gone_.set_value(); });
      answer->begin("text/plain");
      for (int i = 0; i < 64; ++i) answer->write(std::string(1u << 20, 'x'));
      held_ = std::move(answer);
    } else if (request.path == "/keep") {
      kept_ = std::move(request);
      answer->send(200, "text/plain", "kept");
    } else if (request.path != "/drop") {
      answer->refuse(404, "expected a path that is served", {});
    }
  }

  // The whole answer to a request whose connection is closed afterwards.
  std::string ask(std::string_view head, std::string_view body = "") {
    const Client client(front_->url());
    client.send(
        fmt::format("{}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                    head, body.size(), body));
    return client.read();
  }

  void TearDown() override {
    if (!front_) return;
    front_->post([this] {
      held_.reset();
      front_->stop();
    });
    thread_.join();
  }

  std::unique_ptr<HttpFront> front_;
  std::thread thread_;
  std::shared_ptr<Answer> held_;
  ServedRequest kept_;
  std::promise<void> gone_, holds_;
};

TEST_F(FrontTest, AnswersRequestsOfOneConnectionInTheirOrder) {
  start();
  const Client client(front_->url());
  const std::string request =
      "POST /echo?a=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n";
  client.send(request + "hi" + request + "ho");  // the second before the first is answered
  const std::string answer = client.read("POST?a=1 ho");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("POST?a=1 hi"));
  EXPECT_THAT(answer, HasSubstr("POST?a=1 ho"));
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
}

TEST_F(FrontTest, StreamsInChunksAndToOldClientsUntilTheEnd) {
  start();
  EXPECT_THAT(ask("GET /stream HTTP/1.1"),
              HasSubstr("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\none\r\n3\r\n"
                        "two\r\n5\r\nthree\r\n0\r\n\r\n"));
  const Client old(front_->url());
  old.send("GET /stream HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(old.read(), HasSubstr("Connection: close\r\n\r\nonetwothree"));
}

TEST_F(FrontTest, AnAnswerThatIsLetGoIsAnErrorOrACutStream) {
  start();
  EXPECT_THAT(ask("GET /drop HTTP/1.1"), HasSubstr("/drop|500|"));
  const std::string torn = ask("GET /torn HTTP/1.1");
  EXPECT_THAT(torn, HasSubstr("4\r\nhalf\r\n"));
  EXPECT_THAT(torn, Not(HasSubstr("0\r\n\r\n")));
}

TEST_F(FrontTest, RefusesByStatusAndStaysUp) {
  FrontOptions options;
  options.limits.header_bytes = 1000;
  options.limits.body_bytes = 100;
  options.limits.header_s = 0.3;
  options.limits.body_s = 0.3;
  start(options);
  EXPECT_THAT(ask("GET /nothing HTTP/1.1"), HasSubstr("/nothing|404|"));
  EXPECT_THAT(ask("POST /echo HTTP/1.1", std::string(101, 'x')), HasSubstr("/echo|413|"));
  EXPECT_THAT(ask("GET /echo HTTP/1.1\r\nX: " + std::string(2000, 'x')), HasSubstr("|431|"));
  EXPECT_THAT(ask("GET /echo HTTP/1.7"), HasSubstr("HTTP/1.1 "));
  EXPECT_THAT(ask("\x01\x02nonsense"), HasSubstr("|400|"));
  for (const char* const begun :
       {"GET /ec", "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc"}) {
    const Client slow(front_->url());
    slow.send(begun);
    EXPECT_EQ(slow.read(), "") << begun;  // closed
  }
  const Client chunks(front_->url());
  chunks.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" +
              std::string(255, 'x'));
  EXPECT_THAT(chunks.read(), HasSubstr("|413|"));
  EXPECT_THAT(ask("GET /echo HTTP/1.1"), HasSubstr("200 OK"));
}

TEST_F(FrontTest, OnLoopbackTheHostHasToBeThisMachine) {
  start();
  for (const char* const host : {"evil.example", "evil.example:80", "", "127.0.0.1.evil.example"}) {
    const Client client(front_->url());
    client.send(fmt::format("GET /echo HTTP/1.1\r\nHost: {}\r\n\r\n", host));
    EXPECT_THAT(client.read("\r\n\r\n"), StartsWith("HTTP/1.1 403")) << host;
  }
  for (const char* const host : {"localhost:99", "127.0.0.1:1", "[::1]:80", "LOCALHOST"}) {
    const Client client(front_->url());
    client.send(fmt::format("GET /echo HTTP/1.1\r\nHost: {}\r\n\r\n", host));
    EXPECT_THAT(client.read("\r\n\r\n"), StartsWith("HTTP/1.1 200")) << host;
  }
}

TEST_F(FrontTest, APageOfAnotherSiteIsRefused) {
  start();
  const auto asked = [&](std::string_view site, std::string_view origin) {
    return ask(
        fmt::format("POST /echo HTTP/1.1\r\nSec-Fetch-Site: {}\r\nOrigin: {}", site, origin));
  };
  EXPECT_THAT(asked("cross-site", "https://evil.example"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(asked("cross-site", "null"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(asked("same-origin", "http://localhost"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(asked("same-site", "http://localhost:3000"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(asked("cross-site", "vscode-webview://x"), StartsWith("HTTP/1.1 200"));
}

// There browsers name no Sec-Fetch-Site.
TEST_F(FrontTest, BeyondLoopbackAPageHasToBeThisServersByAddressOrName) {
  FrontOptions options;
  options.address = "0.0.0.0";
  start(options);
  const auto asked = [&](std::string_view host, std::string_view origin) {
    const Client client(front_->url());
    client.send(fmt::format("POST /echo HTTP/1.1\r\nHost: {}\r\n{}{}{}Content-Length: 0\r\n\r\n",
                            host, origin.empty() ? "" : "Origin: ", origin,
                            origin.empty() ? "" : "\r\n"));
    return client.read("\r\n\r\n");
  };
  std::string name(256, '\0');
  ASSERT_EQ(::gethostname(name.data(), name.size()), 0);
  name.resize(name.find('\0'));
  for (const std::string& host : {std::string("192.0.2.7:80"), std::string("[2001:db8::7]:80"),
                                  std::string("localhost:80"), name + ":80", name + ".example"}) {
    EXPECT_THAT(asked(host, "http://" + host), StartsWith("HTTP/1.1 200")) << host;
    EXPECT_THAT(asked(host, "http://evil.example"), StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(asked(host, "http://" + host + "1"), StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(asked(host, "null"), StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(asked(host, ""), StartsWith("HTTP/1.1 200")) << "no page asks";
  }
  EXPECT_THAT(asked("evil.example", "http://evil.example"), StartsWith("HTTP/1.1 403"))
      << "a name of its own that leads here";
  EXPECT_THAT(asked("any.example", ""), StartsWith("HTTP/1.1 200"));
}

TEST_F(FrontTest, AKeyIsAskedForButOfHealth) {
  FrontOptions options;
  options.api_key = "secret";
  start(options);
  EXPECT_THAT(ask("GET /echo HTTP/1.1"), HasSubstr("|401|"));
  EXPECT_THAT(ask("GET /echo HTTP/1.1\r\nAuthorization: Bearer secre"), HasSubstr("|401|"));
  EXPECT_THAT(ask("GET /echo HTTP/1.1\r\nAuthorization: Bearer secrets"), HasSubstr("|401|"));
  EXPECT_THAT(ask("GET /echo HTTP/1.1\r\nAuthorization: Bearer secret"), HasSubstr("200 OK"));
  EXPECT_THAT(ask("GET /health HTTP/1.1"), HasSubstr("|404|"));
}

TEST_F(FrontTest, APageLoadsNothingButItsOwnAndMayBeFree) {
  FrontOptions options;
  options.api_key = "secret";
  options.free_paths = {"/page"};
  start(options);
  const std::string page = ask("GET /page HTTP/1.1");
  EXPECT_THAT(page,
              HasSubstr("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; "));
  EXPECT_THAT(page, HasSubstr("\r\n\r\n<p>hello"));
  EXPECT_THAT(ask("GET /page/ HTTP/1.1"), HasSubstr("|401|"));
  const std::string echo = ask("GET /echo HTTP/1.1\r\nAuthorization: Bearer secret");
  EXPECT_THAT(echo, HasSubstr("200 OK"));
  EXPECT_THAT(echo, Not(HasSubstr("Content-Security-Policy")));
}

TEST_F(FrontTest, AClientThatGoesIsToldOf) {
  start();
  Client client(front_->url());
  client.send("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
  holds_.get_future().wait();
  client.close();
  EXPECT_EQ(gone_.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(FrontTest, AClientThatTakesNothingHasGone) {
  start();
  const Client client(front_->url());
  client.send("GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(gone_.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(FrontTest, TooManyConnectionsAreTurnedAway) {
  FrontOptions options;
  options.limits.connections = 2;
  start(options);
  const Client first(front_->url()), second(front_->url()), third(front_->url());
  EXPECT_THAT(third.read(), HasSubstr("|503|"));
  first.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(first.read("GET? "), StartsWith("HTTP/1.1 200"));
}

TEST_F(FrontTest, BodiesOfAllRequestsHaveOneBound) {
  FrontOptions options;
  options.limits.bodies_bytes = 100;
  options.limits.small_body_bytes = 10;
  start(options);
  const std::string small(10, 's'), large(60, 'x');
  const auto refuses = [&] {
    return ask("POST /echo HTTP/1.1", large).starts_with("HTTP/1.1 503");
  };
  EXPECT_FALSE(refuses());
  EXPECT_THAT(ask("POST /keep HTTP/1.1", large), HasSubstr("kept"));
  const std::string refused = ask("POST /echo HTTP/1.1", large);
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(refused, HasSubstr("/echo|503|expected at most 100 bytes of all requests' bodies"));
  EXPECT_THAT(ask("POST /echo HTTP/1.1", small), StartsWith("HTTP/1.1 200")) << "isn't counted";
  std::promise<void> let_go;
  front_->post([&] {
    kept_ = {};
    let_go.set_value();
  });
  let_go.get_future().wait();
  EXPECT_FALSE(refuses()) << "also what was refused is let go";

  Client half(front_->url());
  half.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n" + large);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto comes_about = [&](bool refusal) {
    while (refuses() != refusal) {
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  };
  EXPECT_TRUE(comes_about(true)) << "bytes count as they come";
  half.close();
  EXPECT_TRUE(comes_about(false)) << "a client that goes lets its body go";
}

TEST_F(FrontTest, DrainingFinishesWhatIsUnderWayAndEnds) {
  start();
  const Client idle(front_->url()), client(front_->url());
  client.send("GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n");
  holds_.get_future().wait();
  front_->post([this] { front_->drain(); });
  EXPECT_EQ(idle.read(), "");
  front_->post([this] {
    held_->send(200, "text/plain", "late");
    held_.reset();
  });
  EXPECT_THAT(client.read(), HasSubstr("Connection: close\r\n\r\nlate"));
  thread_.join();
  front_.reset();
}

TEST(HttpFront, PlacesThatCantBeHadAreErrors) {
  FrontOptions options;
  options.address = "nowhere";
  EXPECT_EQ(HttpFront::listen(options, nullptr).error().message,
            "address: expected an IP address, found \"nowhere\"");
  const auto taken = HttpFront::listen({}, nullptr);
  ASSERT_TRUE(taken);
  const std::string url = (*taken)->url();
  options.address = "127.0.0.1";
  options.port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  EXPECT_THAT(HttpFront::listen(options, nullptr).error().message,
              HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace assay::server
