// Bytes of a client: the front reads them from a socket, behind it the APIs answer; nothing may
// crash or be waited for. The first byte chooses in what pieces they come.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "server/fuzzed_service.h"
#include "server/http_front.h"

namespace assay::server {
namespace {

// A front in a thread of its own, until the process ends.
class FuzzedFront {
 public:
  FuzzedFront() {
    FrontOptions options;
    options.error_body = api_error;
    options.limits.header_bytes = 4096;
    options.limits.body_bytes = 4096;
    front_ = HttpFront::listen(std::move(options), [this](ServedRequest request,
                                                          std::shared_ptr<Answer> answer) {
               fuzzed_.service.serve(request, answer);
               fuzzed_.generator.work();
             }).value();
    const std::string url = front_->url();
    port_ = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    thread_ = std::thread([this] { front_->run(); });
  }
  ~FuzzedFront() {
    front_->post([this] { front_->stop(); });
    thread_.join();
  }

  void ask(std::string_view bytes, size_t piece) const {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port_);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval most{10, 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (::connect(client, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0)
      std::abort();
    for (size_t at = 0; at < bytes.size(); at += piece) {
      const std::string_view part = bytes.substr(at, piece);
      if (::send(client, part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::shutdown(client, SHUT_WR);
    char taken[4096];
    ssize_t count = 0;
    while ((count = ::recv(client, taken, sizeof taken, 0)) > 0) {
    }
    if (count < 0 && errno == EAGAIN) std::abort();  // the front waits for more, in vain
    ::close(client);
  }

 private:
  FuzzedService fuzzed_;
  std::unique_ptr<HttpFront> front_;
  std::thread thread_;
  uint16_t port_ = 0;
};

}  // namespace
}  // namespace assay::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const assay::server::FuzzedFront front;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  front.ask(bytes, data[0] < 128 ? bytes.size() : size_t{1} + data[0] % 64);
  return 0;
}
