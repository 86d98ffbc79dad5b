// A server of the tests' own: it answers each request with pieces of bytes at known times.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace assay::test {

struct ScriptedRequest {
  std::string method, path, head, body;
};

// One step of an answer: wait, then send; or end the connection.
struct ScriptedStep {
  std::string bytes = {};
  int wait_ms = 0;                      // less where the server ends
  bool close = false;                   // as a server does that has said all
  bool reset = false;                   // as one that has died
  std::shared_future<void> after = {};  // comes before, if there is one
};
using Script = std::vector<ScriptedStep>;

inline std::string answer_head(std::string_view type, std::string_view more = "") {
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{}", type, more);
}
// A whole answer with its length.
inline Script whole_answer(std::string_view body, int status = 200) {
  return {{fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
      body.size(), body)}};
}
inline std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}
// A streamed answer: each piece a chunk, `wait_ms` before each.
inline Script chunked_answer(const std::vector<std::string>& pieces, int wait_ms = 0) {
  Script script = {{answer_head("text/event-stream", "Transfer-Encoding: chunked\r\n\r\n")}};
  for (const std::string& piece : pieces) script.push_back({chunk(piece), wait_ms});
  script.push_back({"0\r\n\r\n"});
  return script;
}

class ScriptedServer {
 public:
  using Handler = std::function<Script(const ScriptedRequest&)>;

  explicit ScriptedServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const bool listens =
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
        ::listen(listener_, 64) == 0 &&
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0;
    if (!listens) std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stops_.notify_all();
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : connections_) thread.join();
  }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  int port() const { return port_; }
  int connections() const { return accepted_; }
  int closed() const { return closed_; }  // connections, by the server
  std::vector<ScriptedRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void accept_all() {
    while (!stopped_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++accepted_;
      const std::lock_guard lock(mutex_);
      open_.push_back(fd);
      connections_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    std::string bytes;
    while (true) {
      ScriptedRequest request;
      if (!read_request(fd, bytes, request)) break;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      if (!play(fd, handler_(request))) break;
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
    ++closed_;
  }

  bool play(int fd, const Script& script) {
    for (const ScriptedStep& step : script) {
      if (step.after.valid()) step.after.wait();
      if (step.wait_ms > 0) {
        std::unique_lock lock(mutex_);
        stops_.wait_for(lock, std::chrono::milliseconds(step.wait_ms),
                        [this] { return stopped_.load(); });
      }
      if (!step.bytes.empty() && ::send(fd, step.bytes.data(), step.bytes.size(), MSG_NOSIGNAL) < 0)
        return false;
      if (step.reset) {
        const linger now{1, 0};
        ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      }
      if (step.reset || step.close) return false;
    }
    return true;
  }

  static bool read_request(int fd, std::string& bytes, ScriptedRequest& request) {
    size_t end = 0;
    while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
      if (!read_more(fd, bytes)) return false;
    }
    request.head = bytes.substr(0, end);
    bytes.erase(0, end + 4);
    request.method = request.head.substr(0, request.head.find(' '));
    const size_t path = request.method.size() + 1;
    request.path = request.head.substr(path, request.head.find(' ', path) - path);
    size_t length = 0;
    if (const size_t at = request.head.find("Content-Length: "); at != std::string::npos) {
      length = std::stoul(request.head.substr(at + 16));
    }
    while (bytes.size() < length) {
      if (!read_more(fd, bytes)) return false;
    }
    request.body = bytes.substr(0, length);
    bytes.erase(0, length);
    return true;
  }

  static bool read_more(int fd, std::string& bytes) {
    char block[4096];
    const ssize_t n = ::recv(fd, block, sizeof block, 0);
    if (n <= 0) return false;
    bytes.append(block, static_cast<size_t>(n));
    return true;
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> accepted_ = 0, closed_ = 0;
  std::mutex mutex_;
  std::condition_variable stops_;
  std::vector<int> open_;
  std::vector<ScriptedRequest> requests_;
  std::vector<std::thread> connections_;
  std::thread acceptor_;
};

}  // namespace assay::test
