// Boost.Beast over Asio, a coroutine an exchange.
#include "backend/http/http_loop.h"

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr size_t kReadBytes = 64u << 10;
constexpr size_t kShownBytes = 300;

asio::redirect_error_t<asio::use_awaitable_t<>> into(ErrorCode& error) {
  return {asio::use_awaitable, error};
}

// A connection, plain or by TLS. The buffer holds bytes that were read behind an answer's end.
struct Connection {
  std::variant<PlainStream, TlsStream> stream;
  beast::flat_buffer buffer = {};

  PlainStream& tcp() {
    if (auto* const tls = std::get_if<TlsStream>(&stream)) return tls->next_layer();
    return std::get<PlainStream>(stream);
  }
};

// True unless the server has closed it, or sent what nobody asked for.
bool is_usable(Connection& connection) {
  ErrorCode error;
  auto& socket = connection.tcp().socket();
  socket.non_blocking(true, error);
  if (error || connection.buffer.size() > 0) return false;
  char byte = 0;
  socket.receive(asio::buffer(&byte, 1), Tcp::socket::message_peek, error);
  // Bytes that wait are an end, or an answer to nothing.
  if (!error) return false;
  return error == asio::error::would_block || error == asio::error::try_again;
}

std::vector<Tcp::endpoint> endpoints_at(const std::vector<std::string>& addresses,
                                        const std::string& port_text) {
  uint16_t port = 0;
  std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  std::vector<Tcp::endpoint> endpoints;
  for (const std::string& address : addresses) {
    ErrorCode error;
    const auto made = asio::ip::make_address(address, error);
    if (!error) endpoints.emplace_back(made, port);
  }
  return endpoints;
}

// The end of an exchange, thrown through the coroutine.
struct Ended {
  HttpFailure failure;
};

[[noreturn]] void fail(std::string_view error_class, std::string message) {
  throw Ended{{std::string(error_class), std::move(message)}};
}

std::chrono::steady_clock::time_point after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(std::max(seconds, 0.0)));
}

}  // namespace

struct HttpLoop::Impl {
  asio::io_context context{1};
  std::map<std::string, std::list<std::unique_ptr<Connection>>> kept;  // by endpoint
  std::map<std::string, std::unique_ptr<asio::ssl::context>> trusted;  // by CA file
  std::map<std::string, std::vector<Tcp::endpoint>> places;            // by host and port
  NameLookUp look_up;
  int64_t open = 0;

  asio::ssl::context& tls_context(const HttpEndpoint& endpoint) {
    auto& made = trusted[endpoint.ca_file];
    if (made) return *made;
    auto fresh = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    ErrorCode error;
    if (endpoint.ca_file.empty()) {
      fresh->set_default_verify_paths(error);
    } else {
      fresh->load_verify_file(endpoint.ca_file, error);
    }
    if (error) {
      fail(http_class::kTls,
           fmt::format("expected certificates in {}, found none: {}",
                       endpoint.ca_file.empty() ? "the system's folders" : endpoint.ca_file,
                       error.message()));
    }
    fresh->set_verify_mode(asio::ssl::verify_peer, error);
    made = std::move(fresh);
    return *made;
  }
};

namespace {

std::string endpoint_key(const HttpEndpoint& endpoint) {
  return endpoint.url.text() + " " + endpoint.ca_file;
}

http::request<http::string_body> message_of(const HttpEndpoint& endpoint, HttpRequest request) {
  http::request<http::string_body> message;
  message.method_string(request.method);
  message.target(endpoint.url.prefix + request.path);
  message.version(11);
  message.set(http::field::host, endpoint.url.host_header());
  message.set(http::field::user_agent, "assay");
  message.set(http::field::accept, "*/*");
  if (!endpoint.api_key.empty())
    message.set(http::field::authorization, "Bearer " + endpoint.api_key);
  if (!request.id.empty()) message.set("X-Request-Id", request.id);
  if (!request.body.empty()) message.set(http::field::content_type, "application/json");
  message.body() = std::move(request.body);
  message.prepare_payload();
  return message;
}

// One exchange from its connection to its end.
class Running {
 public:
  Running(HttpLoop::Impl& impl, HttpEndpoint endpoint, const HttpLimits& limits,
          std::shared_ptr<HttpExchange> exchange)
      : impl_(impl),
        endpoint_(std::move(endpoint)),
        limits_(limits),
        exchange_(std::move(exchange)),
        stop_(after(limits.total_s)) {}

  asio::awaitable<void> run(HttpRequest request) {
    HttpResult<void> result;
    exchange_->begun(monotonic_now_ns());
    try {
      fresh_ = request.fresh;
      co_await exchange(message_of(endpoint_, std::move(request)));
    } catch (const Ended& ended) {
      result = std::unexpected(ended.failure);
    } catch (const std::exception& error) {
      result = http_failure(http_class::kUnreachable, error.what());
    }
    --impl_.open;
    // A server may repeat what it was sent.
    if (!result) result.error().message = without_key(std::move(result.error().message));
    exchange_->end(std::move(result), monotonic_now_ns());
  }

 private:
  template <typename F>
  auto visit(F f) {
    return std::visit(f, connection_->stream);
  }

  std::string without_key(std::string text) const {
    const std::string& key = endpoint_.api_key;
    for (size_t at = text.find(key); !key.empty() && at != std::string::npos; at = text.find(key)) {
      text.replace(at, key.size(), "***");
    }
    return text;
  }

  asio::awaitable<void> exchange(http::request<http::string_body> message) {
    co_await connect();
    exchange_->connected(monotonic_now_ns());
    limit(limits_.total_s);
    ErrorCode error;
    co_await visit([&](auto& stream) { return http::async_write(stream, message, into(error)); });
    if (error) fail_with(error, "sending the request");
    exchange_->sent(monotonic_now_ns());
    co_await read_answer();
  }

  // The earlier of the exchange's end and so many seconds from now.
  void limit(double seconds) { connection_->tcp().expires_at(std::min(stop_, after(seconds))); }
  void limit_silence() {
    limit(has_body_ && limits_.silence_s > 0 ? limits_.silence_s : limits_.total_s);
  }

  asio::awaitable<void> connect() {
    auto& kept = impl_.kept[endpoint_key(endpoint_)];
    while (!fresh_ && !kept.empty() && !connection_) {
      connection_ = std::move(kept.front());
      kept.pop_front();
      if (!is_usable(*connection_)) connection_.reset();
    }
    if (connection_) co_return;
    ErrorCode error;
    const auto places = co_await look_up();
    connection_ =
        endpoint_.url.tls
            ? std::make_unique<Connection>(TlsStream(impl_.context, impl_.tls_context(endpoint_)))
            : std::make_unique<Connection>(PlainStream(impl_.context));
    limit(limits_.connect_s);
    co_await connection_->tcp().async_connect(places, into(error));
    if (error) fail_to_connect(error);
    connection_->tcp().socket().set_option(Tcp::no_delay(true), error);
    if (auto* const tls = std::get_if<TlsStream>(&connection_->stream)) co_await shake_hands(*tls);
  }

  // Asked once, since thousands of connections go to one place.
  asio::awaitable<std::vector<Tcp::endpoint>> look_up() {
    const ServerUrl& url = endpoint_.url;
    const std::string name = url.host + " " + url.port;
    if (const auto known = impl_.places.find(name); known != impl_.places.end())
      co_return known->second;
    auto places = endpoints_at({url.host}, url.port);  // a number needs no question
    if (places.empty()) places = endpoints_at(co_await addresses(), url.port);
    if (places.empty()) fail_to_find("it has no address");
    impl_.places.emplace(name, places);
    co_return places;
  }

  asio::awaitable<std::vector<std::string>> addresses() {
    const auto limit = std::min(stop_, after(limits_.connect_s));
    // Shared, since the answer may come while the time runs out.
    const auto answer = std::make_shared<asio::steady_timer>(impl_.context, limit);
    PendingLookUp asked(impl_.look_up, endpoint_.url.host, [&context = impl_.context, answer] {
      asio::post(context, [answer] { answer->cancel(); });
    });
    ErrorCode cancelled;
    co_await answer->async_wait(into(cancelled));
    auto found = asked.found();
    if (!found) {
      fail(http_class::kUnreachable,
           fmt::format("expected the address of {} from this machine's resolver, found no answer "
                       "within {:g} s",
                       endpoint_.url.host, std::min(limits_.connect_s, limits_.total_s)));
    }
    if (!*found) fail_to_find(found->error());
    co_return **std::move(found);
  }

  [[noreturn]] void fail_to_find(const std::string& why) const {
    fail(http_class::kHostNotFound,
         fmt::format("expected a machine of the name {}, found none: {}", endpoint_.url.host, why));
  }

  [[noreturn]] void fail_to_connect(const ErrorCode& error) const {
    const std::string where = endpoint_.url.text();
    if (error == asio::error::connection_refused) {
      fail(http_class::kRefused,
           fmt::format("expected a server at {}, found none: the connection was refused", where));
    }
    fail(http_class::kUnreachable,
         fmt::format("expected a server at {}, found none: {}", where, error.message()));
  }

  asio::awaitable<void> shake_hands(TlsStream& tls) {
    if (!SSL_set_tlsext_host_name(tls.native_handle(), endpoint_.url.host.c_str())) {
      fail(http_class::kTls, "the server's name can't be asked for");
    }
    ErrorCode error;
    tls.set_verify_callback(asio::ssl::host_name_verification(endpoint_.url.host), error);
    co_await tls.async_handshake(asio::ssl::stream_base::client, into(error));
    if (!error) co_return;
    fail(http_class::kTls,
         fmt::format(
             "expected a TLS server with a trusted certificate at {}, found {}",
             endpoint_.url.text(),
             error == beast::error::timeout ? "no answer to the handshake" : error.message()));
  }

  [[noreturn]] void fail_with(const ErrorCode& error, std::string_view doing) const {
    if (error == beast::error::timeout) {
      if (std::chrono::steady_clock::now() >= stop_) {
        fail(http_class::kTimeout,
             fmt::format("expected the whole answer within {:g} s, found it unfinished",
                         limits_.total_s));
      }
      fail(http_class::kStalled,
           fmt::format("expected bytes within {:g} s, found silence", limits_.silence_s));
    }
    if (error == http::error::header_limit || error == http::error::body_limit ||
        error == http::error::buffer_overflow) {
      fail(http_class::kTooLong,
           fmt::format(
               "expected an answer of at most {} bytes of headers and {} of body, found more",
               limits_.header_bytes, limits_.body_bytes));
    }
    const bool begun = has_head_;
    const bool is_end =
        error == asio::error::eof || error == http::error::end_of_stream ||
        error == http::error::partial_message || error == asio::error::connection_reset ||
        error == asio::error::broken_pipe || error == asio::ssl::error::stream_truncated;
    if (is_end && begun) {
      fail(http_class::kCut,
           fmt::format("expected the answer's end, found the connection closed: {}",
                       error.message()));
    }
    if (is_end) {
      fail(http_class::kReset,
           fmt::format("expected an answer, found the connection closed while {}: {}", doing,
                       error.message()));
    }
    static const auto& of_http = http::make_error_code(http::error::end_of_stream).category();
    fail(error.category() == of_http ? http_class::kMalformed : http_class::kUnreachable,
         fmt::format("expected an HTTP answer, found while {}: {}", doing, error.message()));
  }

  asio::awaitable<void> read_answer() {
    std::optional<http::response_parser<http::buffer_body>> read;
    ErrorCode error;
    do {  // answers of 100 to 199 only say that one is to come
      read.emplace();
      read->header_limit(limits_.header_bytes);
      read->body_limit(limits_.body_bytes);
      co_await visit([&](auto& stream) {
        return http::async_read_header(stream, connection_->buffer, *read, into(error));
      });
      if (error) fail_with(error, "reading its headers");
    } while (read->get().result_int() / 100 == 1);
    auto& parser = *read;
    has_head_ = true;
    const int status = parser.get().result_int();
    exchange_->head(status, monotonic_now_ns());
    if (status / 100 == 3) {
      fail(http_class::kRedirect,
           fmt::format("expected an answer from {}, found status {} with another address, {}: "
                       "redirects aren't followed",
                       endpoint_.url.text(), status,
                       std::string(parser.get()[http::field::location]).substr(0, kShownBytes)));
    }
    std::string refusal;  // the beginning of what a refusing server says
    std::array<char, kReadBytes> bytes;
    while (!parser.is_done()) {
      parser.get().body().data = bytes.data();
      parser.get().body().size = bytes.size();
      parser.get().body().more = true;
      limit_silence();
      co_await visit([&](auto& stream) {
        return http::async_read_some(stream, connection_->buffer, parser, into(error));
      });
      if (error == http::error::need_buffer) error = {};
      if (error && status >= 400) break;  // the refusal counts, whole or not
      if (error) fail_with(error, "reading its body");
      const std::string_view got(bytes.data(), bytes.size() - parser.get().body().size);
      if (got.empty()) continue;
      has_body_ = true;
      if (status >= 400) {
        refusal += got.substr(0, kShownBytes - std::min(refusal.size(), kShownBytes));
        if (refusal.size() >= kShownBytes) break;
        continue;
      }
      if (auto taken = exchange_->body(got, monotonic_now_ns()); !taken)
        throw Ended{std::move(taken).error()};
    }
    if (status >= 400) {
      fail(fmt::format("http_{}", status),
           fmt::format("expected an answer, found status {}: {}", status, refusal));
    }
    if (!fresh_ && parser.get().keep_alive() && !parser.get().need_eof()) keep();
  }

  void keep() {
    connection_->tcp().expires_never();
    impl_.kept[endpoint_key(endpoint_)].push_front(std::move(connection_));
  }

  HttpLoop::Impl& impl_;
  HttpEndpoint endpoint_;
  HttpLimits limits_;
  std::shared_ptr<HttpExchange> exchange_;
  std::chrono::steady_clock::time_point stop_;
  std::unique_ptr<Connection> connection_;
  bool has_head_ = false;
  bool has_body_ = false;
  bool fresh_ = false;
};

// The object lives as long as its coroutine.
asio::awaitable<void> run_to_its_end(std::unique_ptr<Running> running, HttpRequest request) {
  co_await running->run(std::move(request));
}

class WholeAnswer final : public HttpExchange {
 public:
  explicit WholeAnswer(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  void head(int status, int64_t) override { answer.status = status; }
  HttpResult<void> body(std::string_view bytes, int64_t) override {
    if (answer.body.size() + bytes.size() > most_bytes_) {
      return http_failure(
          http_class::kTooLong,
          fmt::format("expected an answer of at most {} bytes, found more", most_bytes_));
    }
    answer.body += bytes;
    return {};
  }
  void end(HttpResult<void> ended, int64_t) override { result = std::move(ended); }

  HttpAnswer answer;
  HttpResult<void> result;

 private:
  uint64_t most_bytes_;
};

}  // namespace

HttpLoop::HttpLoop(NameLookUp look_up) : impl_(std::make_unique<Impl>()) {
  impl_->look_up = std::move(look_up);
}
HttpLoop::~HttpLoop() = default;

void HttpLoop::start(const HttpEndpoint& endpoint, HttpRequest request, const HttpLimits& limits,
                     std::shared_ptr<HttpExchange> exchange) {
  ++impl_->open;
  auto running = std::make_unique<Running>(*impl_, endpoint, limits, std::move(exchange));
  asio::co_spawn(impl_->context, run_to_its_end(std::move(running), std::move(request)),
                 asio::detached);
}

void HttpLoop::run() {
  impl_->context.restart();
  impl_->context.run();
}

void HttpLoop::run_until(int64_t deadline_ns) {
  impl_->context.restart();
  const int64_t left = std::max<int64_t>(deadline_ns - monotonic_now_ns(), 0);
  if (left == 0) {
    impl_->context.poll();  // a time that has passed leaves room for what is ready
  } else {
    impl_->context.run_for(std::chrono::nanoseconds(left));
  }
}

int64_t HttpLoop::open_exchanges() const {
  return impl_->open;
}

HttpResult<HttpAnswer> ask(HttpLoop& loop, const HttpEndpoint& endpoint, HttpRequest request,
                           HttpLimits limits, uint64_t most_bytes) {
  limits.body_bytes = std::min(limits.body_bytes, most_bytes);
  auto whole = std::make_shared<WholeAnswer>(most_bytes);
  loop.start(endpoint, std::move(request), limits, whole);
  loop.run();
  if (!whole->result) return std::unexpected(whole->result.error());
  return std::move(whole->answer);
}

}  // namespace assay
