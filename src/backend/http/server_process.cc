// Starts a server, listens to its output, and ends its whole family.
#include "backend/http/server_process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr double kPatienceSeconds = 5;  // between SIGTERM and SIGKILL
constexpr double kLookSeconds = 0.05;   // between two looks for readiness
constexpr double kAnswerSeconds = 5;    // for one answer to such a look
constexpr size_t kLastLines = 5;
constexpr size_t kMostLineBytes = 4096;
constexpr std::string_view kPort = "{port}";

// A port that was free a moment ago.
HttpResult<std::string> free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (fd >= 0) ::close(fd);
  if (!bound)
    return http_failure(http_class::kNotReady, "expected a free port on 127.0.0.1, found none");
  return std::to_string(ntohs(address.sin_port));
}

std::string filled(std::string text, const std::string& port) {
  for (size_t at = text.find(kPort); at != std::string::npos;
       at = text.find(kPort, at + port.size())) {
    text.replace(at, kPort.size(), port);
  }
  return text;
}

// The server's output: passed on, its last lines kept, and read for its address.
class Output {
 public:
  explicit Output(int read_fd) : fd_(read_fd), reader_([this] { read_all(); }) {}
  ~Output() {
    // The server has ended; something that escaped it may hold the other end open for ever.
    const int64_t deadline = deadline_after(kLookSeconds * 10);
    while (!finished_ && monotonic_now_ns() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stopped_ = true;
    reader_.join();
    ::close(fd_);
  }
  std::string address() {
    const std::lock_guard lock(mutex_);
    return address_;
  }
  // The last lines; where the server has ended, up to its output's end.
  std::string last_lines(bool ended) {
    const int64_t deadline = deadline_after(kLookSeconds * 10);
    while (ended && !finished_ && monotonic_now_ns() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::lock_guard lock(mutex_);
    return join(std::vector<std::string>(lines_.begin(), lines_.end()), " | ");
  }

 private:
  void read_all() {
    char bytes[4096];
    std::string line;
    while (!stopped_) {
      const ssize_t n = ::read(fd_, bytes, sizeof bytes);
      if (n == 0) break;
      if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      pass_on({bytes, static_cast<size_t>(n)});
      for (const char c : std::string_view(bytes, static_cast<size_t>(n))) {
        if (c != '\n' && line.size() < kMostLineBytes) {
          line += c;
        } else if (c == '\n') {
          keep(std::exchange(line, {}));
        }
      }
    }
    if (!line.empty()) keep(std::move(line));
    finished_ = true;
  }
  static void pass_on(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(STDERR_FILENO, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  void keep(std::string line) {
    const std::lock_guard lock(mutex_);
    if (address_.empty()) address_ = address_in(line);
    lines_.push_back(std::move(line));
    if (lines_.size() > kLastLines) lines_.pop_front();
  }

  int fd_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> finished_ = false;
  std::mutex mutex_;
  std::string address_;
  std::deque<std::string> lines_;
  std::thread reader_;
};

class StartedServer final : public ServerProcess {
 public:
  StartedServer(std::unique_ptr<Child> child, std::unique_ptr<Output> output)
      : child_(std::move(child)), output_(std::move(output)), started_ns_(monotonic_now_ns()) {}

  ~StartedServer() override {
    const int64_t deadline = deadline_after(kPatienceSeconds);
    if (!child_->wait(0) && child_->send(std::string(1, SIGTERM), deadline))
      (void)child_->wait(deadline);
    child_.reset();  // before its output, which ends with it
  }

  const ServerUrl& url() const override { return url_; }
  double start_seconds() const override { return start_seconds_; }
  std::string end_text() override {
    const auto end = child_->wait(0);
    return end ? end->text() : "";
  }

  // Waits until it answers.
  HttpResult<void> await(HttpLoop& loop, const ServerSpec& spec, std::string url) {
    const int64_t deadline = deadline_after(spec.timeout_s);
    std::string last = "it told no address";
    while (true) {
      if (const std::string end = end_text(); !end.empty()) {
        return http_failure(
            http_class::kServerDied,
            fmt::format("expected the server to run, found its end: {}; its last lines: {}", end,
                        output_->last_lines(true)));
      }
      if (url.empty()) url = output_->address();
      if (!url.empty()) {
        auto parsed = parse_server_url(url);
        if (!parsed) return http_failure(http_class::kNotReady, parsed.error().message);
        url_ = *std::move(parsed);
        HttpLimits limits;
        limits.total_s = kAnswerSeconds;
        const auto answer =
            ask(loop, {url_, spec.api_key, spec.ca_file}, {"GET", spec.ready}, limits);
        if (answer && end_text().empty()) break;
        if (!answer) last = answer.error().message;
      }
      if (monotonic_now_ns() >= deadline) {
        return http_failure(
            http_class::kNotReady,
            fmt::format(
                "expected the server to be ready within {:g} s, found it isn't: {}; its last "
                "lines: {}",
                spec.timeout_s, last, output_->last_lines(false)));
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
    }
    start_seconds_ = static_cast<double>(monotonic_now_ns() - started_ns_) / 1e9;
    return {};
  }

 private:
  std::unique_ptr<Child> child_;
  std::unique_ptr<Output> output_;
  int64_t started_ns_;
  ServerUrl url_;
  double start_seconds_ = 0;
};

// Fails if something answers already where the server is to listen: it would be measured instead.
// The key isn't told to it.
HttpResult<void> refuse_taken(HttpLoop& loop, const ServerSpec& spec) {
  auto url = parse_server_url(spec.url);
  if (!url) return http_failure(http_class::kNotReady, url.error().message);
  HttpLimits limits;
  limits.total_s = kAnswerSeconds;
  const auto answer = ask(loop, {*url, "", spec.ca_file}, {"GET", spec.ready}, limits);
  const bool silent = !answer && (answer.error().error_class == http_class::kRefused ||
                                  answer.error().error_class == http_class::kUnreachable ||
                                  answer.error().error_class == http_class::kHostNotFound);
  if (silent) return {};
  return http_failure(
      http_class::kNotReady,
      fmt::format("expected nothing at {} before the server starts there, found one that answers",
                  url->text()));
}

}  // namespace

std::string address_in(std::string_view line) {
  std::string lower(line);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view words : {"listening", "running on"}) {
    const size_t said = lower.find(words);
    if (said == std::string::npos) continue;
    const size_t begin = std::min(lower.find("http://", said), lower.find("https://", said));
    if (begin == std::string::npos) continue;
    const size_t end = lower.find_first_of(" \t\r,;\"'()", begin);
    return std::string(line.substr(begin, end - begin));
  }
  return "";
}

HttpResult<std::unique_ptr<ServerProcess>> start_server(Spawner& spawner, HttpLoop& loop,
                                                        const ServerSpec& spec) {
  std::string url = spec.url;
  ChildSpec child;
  child.argv = spec.argv;
  child.environment = spec.environment;
  child.working_folder = spec.folder;
  child.own_group = false;  // one that leads a group can't begin a session (`setsid`)
  child.kept = true;
  const auto names_port = [](const std::string& text) {
    return text.find(kPort) != std::string::npos;
  };
  const auto value_names_port = [&](const auto& variable) { return names_port(variable.second); };
  if (std::ranges::any_of(spec.argv, names_port) || names_port(url) ||
      std::ranges::any_of(spec.environment, value_names_port)) {
    auto port = free_port();
    if (!port) return std::unexpected(std::move(port).error());
    for (std::string& argument : child.argv) argument = filled(argument, *port);
    for (auto& [name, value] : child.environment) value = filled(value, *port);
    url = filled(url.empty() ? "http://127.0.0.1:{port}" : url, *port);
  }
  if (!spec.url.empty() && !names_port(spec.url)) {
    if (auto free = refuse_taken(loop, spec); !free)
      return std::unexpected(std::move(free).error());
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return http_failure(http_class::kNotReady, "expected a pipe, found none left");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  child.stdout_fd = child.stderr_fd = ends[1];
  auto spawned = spawner.spawn(child);
  ::close(ends[1]);
  if (!spawned) {
    ::close(ends[0]);
    return http_failure("spawn_error", spawned.error().message);
  }
  auto running =
      std::make_unique<StartedServer>(*std::move(spawned), std::make_unique<Output>(ends[0]));
  if (auto ready = running->await(loop, spec, url); !ready)
    return std::unexpected(std::move(ready).error());
  return running;
}

}  // namespace assay
