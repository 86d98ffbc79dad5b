#include "server/front_connection.h"

#include <boost/beast/http/status.hpp>

#include "base/text/text.h"

namespace assay::server {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
    "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'\r\nReferrer-Policy: no-referrer\r\n";

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

}  // namespace

std::shared_ptr<Answer> current_answer(std::shared_ptr<FrontConnection> connection) {
  return std::make_shared<FrontAnswer>(std::move(connection));
}

FrontConnection::FrontConnection(HttpFront::Impl& of_front, boost::asio::ip::tcp::socket socket)
    : front(of_front), stream(std::move(socket)), wake(front.context) {
  front.open.insert(this);
  stream.socket().set_option(boost::asio::ip::tcp::no_delay(true));
}
FrontConnection::~FrontConnection() {
  front.open.erase(this);
}

void FrontConnection::start_answer(bool keep_alive, bool http_1_1, bool head_only) {
  ++answers;
  unsent.clear();
  tell_gone = nullptr;
  head_sent = ended = false;
  keep = keep_alive;
  chunked = http_1_1;
  is_head = head_only;
}

void FrontConnection::lose() {
  if (gone) return;
  gone = true;
  rouse();
  if (!ended && tell_gone) std::exchange(tell_gone, nullptr)();
}

// A client that leaves too much of a stream has gone; an answer sent as a whole is as long as it
// is.
void FrontConnection::put(std::string_view bytes, bool is_whole) {
  if (gone) return;
  unsent += bytes;
  rouse();
  if (!is_whole &&
      unsent.size() > front.options.limits.unsent_bytes + front.options.limits.header_bytes)
    lose();
}

void FrontConnection::put_head(int status, std::string_view type, std::optional<size_t> length,
                               const std::string& further) {
  if (front.drains || (!length && !chunked)) keep = false;
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: "
      "nosniff\r\n{}",
      status,
      std::string(boost::beast::http::obsolete_reason(
          boost::beast::http::int_to_status(static_cast<unsigned>(status)))),
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

void FrontConnection::send(int status, std::string_view type, std::string_view body,
                           const std::string& further) {
  if (ended || head_sent) return;
  put_head(status, type, body.size(),
           type.starts_with("text/html") ? further + std::string(kPageHeaders) : further);
  if (!is_head) put(body, true);
  finish();
}

void FrontConnection::refuse(int status, const std::string& message,
                             std::optional<int> retry_after_s) {
  std::string further;
  if (retry_after_s) further = fmt::format("Retry-After: {}\r\n", *retry_after_s);
  if (status == 401) further += "WWW-Authenticate: Bearer\r\n";
  const auto& body_of = front.options.error_body;
  send(status, kJson, body_of ? body_of(path, status, message) : std::string(), further);
}

void FrontConnection::write(std::string_view bytes) {
  if (ended || bytes.empty() || is_head) return;
  if (!chunked) return put(bytes);
  put(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

void FrontConnection::end() {
  if (ended) return;
  if (chunked && !is_head) put("0\r\n\r\n");
  finish();
}

void FrontConnection::abandon() {
  if (ended) return;
  if (!head_sent) return refuse(500, "the request was given up", {});
  keep = false;  // without the last chunk a client sees that the stream is cut
  finish();
}

void FrontConnection::finish() {
  ended = true;
  tell_gone = nullptr;
  rouse();
}

}  // namespace assay::server
