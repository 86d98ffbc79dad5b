// Measures what serving costs beside the engine: a toy engine with 64 slots answers at once, behind
// the real scheduler, service and HTTP, to clients that stream over sockets. Prints the CPU time of
// a token in the engine's thread and in the loop's, beside their bars. With a port as its argument
// it serves there until it is ended, for a look at what a client takes.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "server/http_front.h"
#include "server/scheduler.h"
#include "server/service.h"

namespace assay::server {
namespace {

constexpr int64_t kSlots = 64, kRequests = 20, kTokens = 200;  // requests of each client
constexpr int64_t kStep_us = 600;  // a step of the toy: that of a fast engine
constexpr double kEngineBar_us = 2, kLoopBar_us = 8;

double thread_cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Gives every slot a token each step, and sleeps for the rest of it.
class ToyEngine final : public SlotEngine {
 public:
  explicit ToyEngine(double& cpu_us) : cpu_us_(cpu_us), taken_(kSlots, false), fed_(kSlots) {}
  int64_t slots() const override { return kSlots; }
  int64_t capacity() const override { return 4096; }
  std::optional<int64_t> join(std::span<const int32_t>) override {
    const auto free = std::ranges::find(taken_, false);
    if (free == taken_.end()) return std::nullopt;
    *free = true;
    return free - taken_.begin();
  }
  void leave(int64_t slot) override { taken_[static_cast<size_t>(slot)] = false; }
  Result<int64_t> begin(int64_t slot, const TokenAsk&) override {
    return fed_[static_cast<size_t>(slot)] = 0;
  }
  Status extend(std::span<const engine::SlotPrompt> parts) override {
    for (const auto& [slot, ids] : parts) fed_[static_cast<size_t>(slot)] += std::ssize(ids);
    return {};
  }
  int64_t fed(int64_t slot) const override { return fed_[static_cast<size_t>(slot)]; }
  std::optional<int32_t> chosen(int64_t) const override { return 7; }
  std::span<const float> logits(int64_t) const override { return {}; }
  Status run(std::span<const int64_t> slots, int64_t steps, bool,
             const engine::Batch::Sink& sink) override {
    std::vector<int64_t> going(slots.begin(), slots.end());
    for (bool last = false; steps > 0 && !going.empty() && !last; --steps) {
      std::this_thread::sleep_for(std::chrono::microseconds(kStep_us));
      std::erase_if(going, [&](int64_t slot) {
        const engine::Onward onward = sink(slot, 7);
        last |= onward == engine::Onward::kLast;
        return onward == engine::Onward::kStop;
      });
    }
    cpu_us_ = thread_cpu_us();
    return {};
  }
  bool ends_text(int32_t) const override { return false; }

 private:
  double& cpu_us_;
  std::vector<bool> taken_;
  std::vector<int64_t> fed_;
};

// Streams its requests one after the other over one connection; the tokens that came.
int64_t stream_requests(const std::string& url) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) return 0;
  const std::string body = fmt::format(
      R"({{"prompt": [1, 2, 3], "max_tokens": {}, "stream": true, "ignore_eos": true}})", kTokens);
  const std::string request = fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
  int64_t tokens = 0;
  for (int64_t i = 0; i < kRequests; ++i) {
    if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) break;
    std::string all;
    char bytes[16384];
    while (!all.ends_with("\r\n0\r\n\r\n")) {
      const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      all.append(bytes, static_cast<size_t>(count));
    }
    for (size_t at = all.find("\"7 \""); at != std::string::npos; at = all.find("\"7 \"", at + 1))
      ++tokens;
  }
  ::close(socket);
  return tokens;
}

int run(uint16_t port) {
  double engine_us = 0, loop_us = 0;
  std::unique_ptr<Service> service;
  FrontOptions options;
  options.port = port;
  auto front = HttpFront::listen(std::move(options),
                                 [&](ServedRequest request, std::shared_ptr<Answer> answer) {
                                   service->serve(request, answer);
                                 });
  if (!front) {
    fmt::print(stderr, "{}\n", front.error().message);
    return 3;
  }
  Scheduler scheduler(std::make_unique<ToyEngine>(engine_us), {},
                      [&](std::function<void()> work) { (*front)->post(std::move(work)); });
  ServedModel model;
  model.name = "toy";
  model.capacity = scheduler.capacity();
  model.vocab_size = 100;
  service = std::make_unique<Service>(model, scheduler, nullptr, std::nullopt);
  if (port != 0) {
    (*front)->run();
    return 0;
  }
  std::thread loop([&] {
    (*front)->run();
    loop_us = thread_cpu_us();
  });
  std::vector<int64_t> tokens(kSlots, 0);
  std::vector<std::thread> clients;
  for (int64_t i = 0; i < kSlots; ++i) {
    clients.emplace_back(
        [&, i] { tokens[static_cast<size_t>(i)] = stream_requests((*front)->url()); });
  }
  int64_t all = 0;
  for (int64_t i = 0; i < kSlots; ++i) {
    clients[static_cast<size_t>(i)].join();
    all += tokens[static_cast<size_t>(i)];
  }
  (*front)->stop();
  loop.join();
  const auto count = static_cast<double>(all);
  fmt::print("{} streams, {} tokens (expected {})\n", kSlots, all, kSlots * kRequests * kTokens);
  fmt::print("engine's thread: {:.2f} us of CPU a token (bar {})\n", engine_us / count,
             kEngineBar_us);
  fmt::print("loop's thread:   {:.2f} us of CPU a token (bar {})\n", loop_us / count, kLoopBar_us);
  const bool holds = all == kSlots * kRequests * kTokens && engine_us / count <= kEngineBar_us &&
                     loop_us / count <= kLoopBar_us;
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace assay::server

int main(int count, char** arguments) {
  return assay::server::run(count > 1 ? static_cast<uint16_t>(std::stoi(arguments[1]))
                                      : uint16_t{0});
}
