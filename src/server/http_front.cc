// Boost.Beast over Asio, a coroutine a connection.
#include "server/http_front.h"

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text/text.h"

namespace assay::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
    "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'\r\nReferrer-Policy: no-referrer\r\n";

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

// Takes as long whatever the texts share.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
  }
  return differs == 0;
}

// "[::1]:80", "localhost:80" and "localhost": the part before the port.
std::string_view host_of(std::string_view header) {
  const size_t colon = header.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && header.find(']', colon) == std::string_view::npos;
  return has_port ? header.substr(0, colon) : header;
}

// Why a request isn't served.
struct Refusal {
  int status = 400;
  std::string message;
};

}  // namespace

struct HttpFront::Impl {
  Impl(FrontOptions given, RequestHandler with)
      : options(std::move(given)), handler(std::move(with)) {}

  FrontOptions options;
  RequestHandler handler;
  std::set<struct FrontConnection*> open =
      {};  // each belongs to its coroutine, and so to `context`
  bool drains = false;
  asio::io_context context{1};
  Tcp::acceptor acceptor{context};
};

struct FrontConnection : std::enable_shared_from_this<FrontConnection> {
  FrontConnection(HttpFront::Impl& of_front, Tcp::socket socket)
      : front(of_front), stream(std::move(socket)), wake(front.context) {
    front.open.insert(this);
    stream.socket().set_option(Tcp::no_delay(true));
  }
  ~FrontConnection() { front.open.erase(this); }

  HttpFront::Impl& front;
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  asio::steady_timer wake;  // cancelled when there is something to do
  // The answer under way.
  int64_t answers = 0;  // so many began: a late call of an earlier one does nothing
  std::string unsent;
  std::function<void()> tell_gone;
  bool head_sent = false, ended = false, chunked = false, keep = false, is_head = false;
  bool gone = false, watching = false, busy = false;
  std::string path;

  void start_answer(bool keep_alive, bool http_1_1, bool head_only) {
    ++answers;
    unsent.clear();
    tell_gone = nullptr;
    head_sent = ended = false;
    keep = keep_alive;
    chunked = http_1_1;
    is_head = head_only;
  }

  void rouse() { wake.cancel(); }

  void lose() {
    if (gone) return;
    gone = true;
    rouse();
    if (!ended && tell_gone) std::exchange(tell_gone, nullptr)();
  }

  // A client that leaves too much of a stream has gone; an answer sent as a whole is as long as it
  // is.
  void put(std::string_view bytes, bool is_whole = false) {
    if (gone) return;
    unsent += bytes;
    rouse();
    if (!is_whole &&
        unsent.size() > front.options.limits.unsent_bytes + front.options.limits.header_bytes)
      lose();
  }

  void put_head(int status, std::string_view type, std::optional<size_t> length,
                const std::string& further) {
    if (front.drains || (!length && !chunked)) keep = false;
    std::string head = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: "
        "nosniff\r\n{}",
        status,
        std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))),
        type, further);
    if (length) {
      head += fmt::format("Content-Length: {}\r\n", *length);
    } else if (chunked) {
      head += "Transfer-Encoding: chunked\r\n";
    }
    head += keep ? "\r\n" : "Connection: close\r\n\r\n";
    head_sent = true;
    put(head);
  }

  void send(int status, std::string_view type, std::string_view body, const std::string& further) {
    if (ended || head_sent) return;
    put_head(status, type, body.size(),
             type.starts_with("text/html") ? further + std::string(kPageHeaders) : further);
    if (!is_head) put(body, true);
    finish();
  }

  void refuse(int status, const std::string& message, std::optional<int> retry_after_s) {
    std::string further;
    if (retry_after_s) further = fmt::format("Retry-After: {}\r\n", *retry_after_s);
    if (status == 401) further += "WWW-Authenticate: Bearer\r\n";
    const auto& body_of = front.options.error_body;
    send(status, kJson, body_of ? body_of(path, status, message) : std::string(), further);
  }

  void write(std::string_view bytes) {
    if (ended || bytes.empty() || is_head) return;
    if (!chunked) return put(bytes);
    put(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
  }

  void end() {
    if (ended) return;
    if (chunked && !is_head) put("0\r\n\r\n");
    finish();
  }

  // The handler let the answer go unfinished.
  void abandon() {
    if (ended) return;
    if (!head_sent) return refuse(500, "the request was given up", {});
    keep = false;  // without the last chunk a client sees that the stream is cut
    finish();
  }

  void finish() {
    ended = true;
    tell_gone = nullptr;
    rouse();
  }
};

namespace {

class FrontAnswer final : public Answer {
 public:
  explicit FrontAnswer(std::shared_ptr<FrontConnection> connection)
      : connection_(std::move(connection)), number_(connection_->answers) {}
  ~FrontAnswer() override {
    if (is_current()) connection_->abandon();
  }
  void send(int status, std::string_view type, std::string body) override {
    if (is_current()) connection_->send(status, type, body, "");
  }
  void refuse(int status, const std::string& message, std::optional<int> retry_after_s) override {
    if (is_current()) connection_->refuse(status, message, retry_after_s);
  }
  void begin(std::string_view type) override {
    if (is_current() && !connection_->head_sent) connection_->put_head(200, type, std::nullopt, "");
  }
  void write(std::string bytes) override {
    if (is_current()) connection_->write(bytes);
  }
  void end() override {
    if (is_current()) connection_->end();
  }
  void when_gone(std::function<void()> tell) override {
    if (!is_current()) return;
    if (connection_->gone) return tell();
    connection_->tell_gone = std::move(tell);
  }

 private:
  bool is_current() const { return connection_->answers == number_; }
  std::shared_ptr<FrontConnection> connection_;
  int64_t number_;
};

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
    parser.header_limit(limits().header_bytes);
    parser.body_limit(limits().body_bytes);
    connection_->path.clear();
    std::optional<Refusal> refusal = co_await read_head(parser);
    const auto& head = parser.get();
    split_target(std::string(head.target()));
    if (!refusal) refusal = wrong_head(head);
    if (!refusal) refusal = co_await read_body(parser);
    if (refusal && refusal->status == 0) co_return false;  // the client has gone
    connection_->start_answer(!refusal && head.keep_alive(), head.version() >= 11,
                              head.method() == http::verb::head);
    connection_->busy = true;
    if (refusal) {
      connection_->refuse(refusal->status, refusal->message, {});
    } else {
      connection_->watching = true;
      asio::co_spawn(connection_->front.context, watch(connection_), asio::detached);
      ServedRequest request{std::string(head.method_string()), connection_->path, query_,
                            std::move(parser.get().body())};
      connection_->front.handler(std::move(request), std::make_shared<FrontAnswer>(connection_));
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
  asio::awaitable<std::optional<Refusal>> read_body(Parser& parser) {
    ErrorCode error;
    connection_->stream.expires_after(seconds(limits().body_s));
    if (!parser.is_done() && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(connection_->stream, asio::buffer(kGoOn), into(error));
      if (error) co_return Refusal{0, ""};
    }
    co_await http::async_read(connection_->stream, connection_->buffer, parser, into(error));
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

  void split_target(const std::string& target) {
    const size_t mark = target.find('?');
    connection_->path = target.substr(0, mark);
    query_ = mark == std::string::npos ? "" : target.substr(mark + 1);
  }

  template <typename Head>
  std::optional<Refusal> wrong_head(const Head& head) const {
    const FrontOptions& options = connection_->front.options;
    if (head.version() != 10 && head.version() != 11)
      return Refusal{505, "expected HTTP/1.1, found another version"};
    // A page that resolves its own name to loopback would else reach what listens there.
    ErrorCode no_address;
    const auto bound = asio::ip::make_address(options.address, no_address);
    if (bound.is_loopback() && !is_own_host(host_of(standard(head[http::field::host])))) {
      return Refusal{403, "expected a Host of this machine's loopback, found another"};
    }
    // Without this a page of any site could have this machine compute, though it couldn't read. A
    // frame may hide its page's name.
    const std::string_view origin = standard(head[http::field::origin]);
    const bool is_pages = origin.starts_with("http") || origin == "null";
    if (is_pages && (head["Sec-Fetch-Site"] == "cross-site" ||
                     !may_ask(origin, standard(head[http::field::host])))) {
      return Refusal{403, "expected no request from another site's page, found one"};
    }
    const bool is_free =
        std::ranges::find(options.free_paths, connection_->path) != options.free_paths.end();
    if (options.api_key.empty() || is_free) return std::nullopt;
    const std::string_view given = standard(head[http::field::authorization]);
    constexpr std::string_view kScheme = "Bearer ";
    if (given.starts_with(kScheme) && same_secret(given.substr(kScheme.size()), options.api_key))
      return std::nullopt;
    return Refusal{401, "expected the server's API key (Authorization: Bearer KEY), found another"};
  }

  // Says whether a page of this origin may have an answer. Browsers name their Sec-Fetch-Site to
  // servers on loopback alone. A page whose own name leads here is known by this machine's: without
  // a key it has to be that, or an address.
  bool may_ask(std::string_view origin, std::string_view host) const {
    if (!connection_->front.options.api_key.empty()) return true;
    const size_t scheme = origin.find("://");
    if (scheme == std::string_view::npos || origin.substr(scheme + 3) != host) return false;
    std::string name(host_of(host));
    if (is_own_host(name)) return true;
    if (name.starts_with('[')) name = name.substr(1, name.size() - 2);
    ErrorCode no_address;
    asio::ip::make_address(name, no_address);
    return !no_address || name.substr(0, name.find('.')) == asio::ip::host_name();
  }

  bool is_own_host(std::string_view host) const {
    const std::string& address = connection_->front.options.address;
    return beast::iequals(beast::string_view(host.data(), host.size()), "localhost") ||
           host == "127.0.0.1" || host == "[::1]" || host == address || host == "[" + address + "]";
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
