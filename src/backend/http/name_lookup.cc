// getaddrinfo, its answers as numbers.
#include "backend/http/name_lookup.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <mutex>
#include <thread>
#include <utility>

namespace assay {

FoundAddresses look_up_name(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &first); error != 0)
    return std::unexpected(::gai_strerror(error));
  std::vector<std::string> found;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> number;
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, number.data(), number.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      found.emplace_back(number.data());
    }
  }
  ::freeaddrinfo(first);
  return found;
}

struct PendingLookUp::Shared {
  std::mutex mutex;
  std::function<void()> on_answer;  // empty: nobody waits any more
  std::optional<FoundAddresses> found;
};

PendingLookUp::PendingLookUp(NameLookUp look_up, std::string host, std::function<void()> on_answer)
    : shared_(std::make_shared<Shared>()) {
  shared_->on_answer = std::move(on_answer);
  std::thread([shared = shared_, look_up = std::move(look_up), host = std::move(host)] {
    FoundAddresses found = look_up(host);
    const std::lock_guard lock(shared->mutex);
    shared->found = std::move(found);
    if (shared->on_answer) shared->on_answer();
  }).detach();
}

PendingLookUp::~PendingLookUp() {
  const std::lock_guard lock(shared_->mutex);
  shared_->on_answer = nullptr;
}

std::optional<FoundAddresses> PendingLookUp::found() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->found, std::nullopt);
}

}  // namespace assay
