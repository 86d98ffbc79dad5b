// Boost.Beast over Asio, a coroutine a connection.
#include "server/http_front.h"

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>

#include <chrono>

#include "base/text/text.h"
#include "server/front_connection.h"
#include "server/request_rules.h"

namespace assay::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr int kRetryAfter_s = 1;

asio::redirect_error_t<asio::use_awaitable_t<>> into(ErrorCode& error) {
  return {asio::use_awaitable, error};
}

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(count));
}

std::string_view standard(beast::string_view text) {
  return {text.data(), text.size()};
}

// Serves the requests of one connection, one after the other.
class ConnectionServer {
 public:
  explicit ConnectionServer(std::shared_ptr<FrontConnection> connection)
      : connection_(std::move(connection)) {}

  asio::awaitable<void> serve() {
    while (co_await serve_request()) {
    }
    ErrorCode ignored;
    connection_->stream.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    if (!connection_->gone) co_await take_the_rest();
    connection_->lose();
    connection_->stream.close();
  }

 private:
  const FrontLimits& limits() const { return connection_->front.options.limits; }

  // True if the connection stays open for a further one.
  asio::awaitable<bool> serve_request() {
    if (!co_await wait_for_bytes()) co_return false;
    http::request_parser<http::string_body> parser;
    auto share = std::make_shared<BodyShare>(connection_->front.room);
    parser.header_limit(limits().header_bytes);
    parser.body_limit(limits().body_bytes);
    connection_->path.clear();
    std::optional<Refusal> refusal = co_await read_head(parser);
    const auto& head = parser.get();
    split_target(std::string(head.target()));
    if (!refusal) refusal = wrong_sender(sender_of(head), connection_->front.options);
    if (!refusal) refusal = co_await read_body(parser, *share);
    if (refusal && refusal->status == 0) co_return false;  // the client has gone
    connection_->start_answer(!refusal && head.keep_alive(), head.version() >= 11,
                              head.method() == http::verb::head);
    connection_->busy = true;
    if (refusal) {
      std::string().swap(parser.get().body());
      share.reset();
      connection_->refuse(refusal->status, refusal->message, refusal->retry_after_s);
    } else {
      connection_->watching = true;
      asio::co_spawn(connection_->front.context, watch(connection_), asio::detached);
      ServedRequest request{std::string(head.method_string()), connection_->path, query_,
                            std::move(parser.get().body()), std::move(share)};
      connection_->front.handler(std::move(request), current_answer(connection_));
    }
    co_await write_answer();
    connection_->busy = false;
    co_return connection_->keep && !connection_->gone && !connection_->front.drains;
  }

  asio::awaitable<bool> wait_for_bytes() {
    if (connection_->buffer.size() > 0) co_return true;
    ErrorCode error;
    connection_->stream.expires_after(seconds(limits().idle_s));
    const size_t count = co_await connection_->stream.async_read_some(
        connection_->buffer.prepare(size_t{4} << 10), into(error));
    connection_->buffer.commit(count);
    co_return !error;
  }

  template <typename Parser>
  asio::awaitable<std::optional<Refusal>> read_head(Parser& parser) {
    ErrorCode error;
    connection_->stream.expires_after(seconds(limits().header_s));
    co_await http::async_read_header(connection_->stream, connection_->buffer, parser, into(error));
    co_return refusal_of(error);
  }

  template <typename Parser>
  asio::awaitable<std::optional<Refusal>> read_body(Parser& parser, BodyShare& share) {
    ErrorCode error;
    connection_->stream.expires_after(seconds(limits().body_s));
    if (!parser.is_done() && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(connection_->stream, asio::buffer(kGoOn), into(error));
      if (error) co_return Refusal{0, ""};
    }
    parser.eager(true);  // takes what of the body came with the headers
    while (!error && !parser.is_done()) {
      co_await http::async_read_some(connection_->stream, connection_->buffer, parser, into(error));
      const uint64_t bytes = parser.get().body().size();
      if (bytes > limits().small_body_bytes && !share.grow_to(bytes)) {
        co_return Refusal{
            503,
            fmt::format("expected at most {} bytes of all requests' bodies, found more",
                        limits().bodies_bytes),
            kRetryAfter_s};
      }
    }
    co_return refusal_of(error);
  }

  // A stream whose time is over has closed its socket: its client is told nothing.
  std::optional<Refusal> refusal_of(const ErrorCode& error) const {
    if (!error) return std::nullopt;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return Refusal{431, fmt::format("expected at most {} bytes of headers, found more",
                                      limits().header_bytes)};
    }
    if (error == http::error::body_limit) {
      return Refusal{
          413, fmt::format("expected a body of at most {} bytes, found more", limits().body_bytes)};
    }
    static const auto& of_http = http::make_error_code(http::error::end_of_stream).category();
    const bool is_cut =
        error == http::error::end_of_stream || error == http::error::partial_message;
    if (error.category() != of_http || is_cut) return Refusal{0, ""};
    return Refusal{400, fmt::format("expected a request of HTTP/1.1, found {}", error.message())};
  }

  template <typename Head>
  RequestSender sender_of(const Head& head) const {
    return {.version = head.version(),
            .path = connection_->path,
            .host = standard(head[http::field::host]),
            .origin = standard(head[http::field::origin]),
            .fetch_site = standard(head["Sec-Fetch-Site"]),
            .authorization = standard(head[http::field::authorization])};
  }

  void split_target(const std::string& target) {
    const size_t mark = target.find('?');
    connection_->path = target.substr(0, mark);
    query_ = mark == std::string::npos ? "" : target.substr(mark + 1);
  }

  asio::awaitable<void> write_answer() {
    FrontConnection& of = *connection_;
    std::string sending;
    while (!of.gone && (!of.ended || !of.unsent.empty())) {
      if (of.unsent.empty()) {
        co_await sleep();
        continue;
      }
      sending.clear();
      std::swap(sending, of.unsent);
      size_t done = 0;
      ErrorCode error;
      while (done < sending.size() && !of.gone) {
        of.stream.expires_after(seconds(limits().write_s));
        done += co_await of.stream.async_write_some(
            asio::buffer(sending.data() + done, sending.size() - done), into(error));
        if (error) of.lose();
      }
    }
    // The one who watches for the client's end holds the socket until it is told.
    while (of.watching) {
      of.stream.socket().cancel();
      co_await sleep();
    }
  }

  asio::awaitable<void> sleep() {
    ErrorCode cancelled;
    connection_->wake.expires_after(seconds(3600));
    co_await connection_->wake.async_wait(into(cancelled));
  }

  // Waits until the client ends its side while its request is computed.
  static asio::awaitable<void> watch(std::shared_ptr<FrontConnection> connection) {
    ErrorCode error;
    auto& socket = connection->stream.socket();
    co_await socket.async_wait(Tcp::socket::wait_read, into(error));
    if (!error) {
      char byte = 0;
      ErrorCode looked;
      socket.non_blocking(true, looked);
      const size_t count =
          socket.receive(asio::buffer(&byte, 1), Tcp::socket::message_peek, looked);
      const bool waits = looked == asio::error::would_block || looked == asio::error::try_again;
      if (count == 0 && !waits) connection->lose();
    }
    connection->watching = false;
    connection->rouse();
  }

  // A connection that is closed with bytes unread is reset, and the client may lose the answer.
  asio::awaitable<void> take_the_rest() {
    constexpr size_t kMostBytes = 1u << 20;
    constexpr double kMostSeconds = 2;
    connection_->stream.expires_after(seconds(kMostSeconds));
    ErrorCode error;
    std::string bytes(size_t{16} << 10, '\0');
    for (size_t taken = 0; taken < kMostBytes && !error;) {
      taken += co_await connection_->stream.async_read_some(asio::buffer(bytes), into(error));
    }
  }

  std::shared_ptr<FrontConnection> connection_;
  std::string query_;
};

asio::awaitable<void> serve(std::shared_ptr<FrontConnection> connection) {
  ConnectionServer server(std::move(connection));
  co_await server.serve();
}

// Says that there are too many.
asio::awaitable<void> turn_away(std::shared_ptr<FrontConnection> connection) {
  connection->start_answer(false, true, false);
  connection->refuse(503, "expected fewer connections, found as many as this server takes", 1);
  connection->stream.expires_after(seconds(1));
  ErrorCode error;
  co_await asio::async_write(connection->stream, asio::buffer(connection->unsent), into(error));
}

asio::awaitable<void> accept_all(HttpFront::Impl& front) {
  while (front.acceptor.is_open()) {
    ErrorCode error;
    Tcp::socket socket = co_await front.acceptor.async_accept(into(error));
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (error) {  // no descriptor is left: others will end
      asio::steady_timer pause(front.context, std::chrono::milliseconds(50));
      co_await pause.async_wait(into(error));
      continue;
    }
    const bool full = std::ssize(front.open) >= front.options.limits.connections;
    auto connection = std::make_shared<FrontConnection>(front, std::move(socket));
    asio::co_spawn(front.context, full ? turn_away(connection) : serve(connection), asio::detached);
  }
}

}  // namespace

HttpFront::HttpFront(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpFront::~HttpFront() = default;

Result<std::unique_ptr<HttpFront>> HttpFront::listen(FrontOptions options, RequestHandler handler) {
  ErrorCode error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error)
    return bad_input("address: expected an IP address, found {}", quoted_excerpt(options.address));
  const Tcp::endpoint place(address, options.port);
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  impl->acceptor.open(place.protocol(), error);
  if (!error) impl->acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) impl->acceptor.bind(place, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return environment_error("{}: expected a place to listen at, found: {}",
                             fmt::format("{}:{}", impl->options.address, place.port()),
                             error.message());
  }
  return std::unique_ptr<HttpFront>(new HttpFront(std::move(impl)));
}

std::string HttpFront::url() const {
  const auto place = impl_->acceptor.local_endpoint();
  const std::string address = place.address().to_string();
  return fmt::format("http://{}:{}", place.address().is_v6() ? "[" + address + "]" : address,
                     place.port());
}

void HttpFront::run() {
  asio::co_spawn(impl_->context, accept_all(*impl_), asio::detached);
  impl_->context.run();
}

void HttpFront::post(std::function<void()> work) {
  asio::post(impl_->context, std::move(work));
}

void HttpFront::drain() {
  ErrorCode ignored;
  impl_->drains = true;
  impl_->acceptor.close(ignored);
  for (FrontConnection* const connection : impl_->open) {
    if (!connection->busy) connection->stream.cancel();
  }
}

void HttpFront::stop() {
  impl_->context.stop();
}

int64_t HttpFront::connections() const {
  return std::ssize(impl_->open);
}

}  // namespace assay::server
