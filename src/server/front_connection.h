// A connection of an HTTP front: what is to be written to it, and the answer under way.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <memory>
#include <set>
#include <utility>

#include "server/body_room.h"
#include "server/http_front.h"

namespace assay::server {

struct FrontConnection;

struct HttpFront::Impl {
  Impl(FrontOptions given, RequestHandler with)
      : options(std::move(given)),
        handler(std::move(with)),
        room(std::make_shared<BodyRoom>(options.limits.bodies_bytes)) {}

  FrontOptions options;
  RequestHandler handler;
  std::shared_ptr<BodyRoom> room;        // for all bodies
  std::set<FrontConnection*> open = {};  // each belongs to its coroutine, and so to `context`
  bool drains = false;
  boost::asio::io_context context{1};
  boost::asio::ip::tcp::acceptor acceptor{context};
};

struct FrontConnection : std::enable_shared_from_this<FrontConnection> {
  FrontConnection(HttpFront::Impl& of_front, boost::asio::ip::tcp::socket socket);
  ~FrontConnection();
  FrontConnection(const FrontConnection&) = delete;
  FrontConnection& operator=(const FrontConnection&) = delete;

  HttpFront::Impl& front;
  boost::beast::tcp_stream stream;
  boost::beast::flat_buffer buffer;
  boost::asio::steady_timer wake;  // cancelled when there is something to do
  // The answer under way.
  int64_t answers = 0;  // so many began: a late call of an earlier one does nothing
  std::string unsent;
  std::function<void()> tell_gone;
  bool head_sent = false, ended = false, chunked = false, keep = false, is_head = false;
  bool gone = false, watching = false, busy = false;
  std::string path;

  void start_answer(bool keep_alive, bool http_1_1, bool head_only);
  void rouse() { wake.cancel(); }
  // Its client has gone.
  void lose();
  void put_head(int status, std::string_view type, std::optional<size_t> length,
                const std::string& further);
  void send(int status, std::string_view type, std::string_view body, const std::string& further);
  void refuse(int status, const std::string& message, std::optional<int> retry_after_s);
  void write(std::string_view bytes);
  void end();
  // The handler let the answer go unfinished.
  void abandon();

 private:
  void put(std::string_view bytes, bool is_whole = false);
  void finish();
};

// The connection's answer to its latest request.
std::shared_ptr<Answer> current_answer(std::shared_ptr<FrontConnection> connection);

}  // namespace assay::server
