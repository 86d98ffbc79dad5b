// The parent's side of a child process: pipes, deadlines, its end.
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/process/process_launch.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMaxCaptured = size_t{64} << 20;

// Milliseconds until the deadline for poll(), rounded up so that a wait never ends early.
int poll_timeout_ms(int64_t deadline_ns) {
  if (deadline_ns == kNoDeadline) return -1;
  const int64_t left_ns = deadline_ns - monotonic_now_ns();
  if (left_ns <= 0) return 0;
  return static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, INT_MAX));
}

// The number of processes that the kernel has killed for want of memory since it started.
std::optional<int64_t> oom_kill_count() {
  const auto text = read_file("/proc/vmstat");
  if (!text) return std::nullopt;
  for (const std::string& line : split(*text, '\n')) {
    if (line.starts_with("oom_kill ")) return std::strtoll(line.c_str() + 9, nullptr, 10);
  }
  return std::nullopt;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

// Holds back SIGPIPE for this thread, and swallows one that a write in its scope raised.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  ~SigpipeGuard() {
    const timespec now{};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

std::unexpected<Error> no_resource(const std::string& program, const char* what) {
  return environment_error("{}: expected {} for a child process, found: {}", program, what,
                           std::strerror(errno));
}

std::string read_captured(int fd) {
  std::string text;
  char block[1 << 14];
  while (fd >= 0 && text.size() < kMaxCaptured) {
    const ssize_t n = ::pread(fd, block, sizeof block, static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(block, static_cast<size_t>(n));
  }
  return text;
}

class SystemChild final : public Child {
 public:
  SystemChild(pid_t pid, const ChildSpec& spec)
      : pid_(pid),
        killed_id_(spec.own_group || spec.kept ? -pid : pid),
        kept_(spec.kept),
        program_(spec.argv[0]),
        max_line_bytes_(spec.max_line_bytes),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        ooms_before_(oom_kill_count()) {}
  ~SystemChild() override {
    kill();
    wait(kNoDeadline);
  }

  Descriptor requests, replies;  // this side's ends; both non-blocking
  Descriptor out, err;           // memory files, where captured

  int64_t pid() const override { return pid_; }
  Status send(std::string_view bytes, int64_t deadline_ns) override;
  void close_requests() override { requests = Descriptor(); }
  LineRead read_line(int64_t deadline_ns) override;
  int reply_descriptor() const override { return replies.get(); }
  int end_descriptor() const override { return pidfd_.get(); }
  std::optional<ChildEnd> wait(int64_t deadline_ns) override;
  void kill() override;
  std::string captured_stdout() const override { return read_captured(out.get()); }
  std::string captured_stderr() const override { return read_captured(err.get()); }

 private:
  bool ended();
  void reap();
  std::optional<LineRead> buffered_line();

  pid_t pid_;
  pid_t killed_id_;  // its group, as kill() takes it, or the child alone
  bool kept_;        // a keeper does the killing once its pipe is closed
  std::string program_;
  size_t max_line_bytes_;
  Descriptor pidfd_;  // -1 where the kernel has none: waiting polls in small steps then
  std::optional<int64_t> ooms_before_;
  bool killed_ = false;
  std::optional<ChildEnd> end_;
  std::string buffer_;   // read, not yet given out
  size_t searched_ = 0;  // of buffer_, known to hold no line end
};

Status SystemChild::send(std::string_view bytes, int64_t deadline_ns) {
  const SigpipeGuard guard;
  while (!bytes.empty()) {
    const ssize_t n = ::write(requests.get(), bytes.data(), bytes.size());
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) {
      return environment_error("{} (process {}): expected to take a request, found: {}", program_,
                               pid_, std::strerror(errno));
    }
    pollfd waiting{requests.get(), POLLOUT, 0};
    if (::poll(&waiting, 1, poll_timeout_ms(deadline_ns)) == 0) {
      return environment_error("{} (process {}): expected to take a request in time, found it busy",
                               program_, pid_);
    }
  }
  return {};
}

std::optional<LineRead> SystemChild::buffered_line() {
  const size_t end = buffer_.find('\n', searched_);
  searched_ = end == std::string::npos ? buffer_.size() : 0;
  if (std::min(end, buffer_.size()) > max_line_bytes_)
    return LineRead{LineRead::Kind::kTooLong, {}};
  if (end == std::string::npos) return std::nullopt;
  LineRead read{LineRead::Kind::kLine, buffer_.substr(0, end)};
  buffer_.erase(0, end + 1);
  return read;
}

LineRead SystemChild::read_line(int64_t deadline_ns) {
  while (true) {
    if (auto read = buffered_line()) return *std::move(read);
    char block[1 << 14];
    const ssize_t n = ::read(replies.get(), block, sizeof block);
    if (n > 0) {
      buffer_.append(block, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || errno != EAGAIN) {
      searched_ = 0;
      return {LineRead::Kind::kEnd, std::exchange(buffer_, {})};
    }
    pollfd waiting{replies.get(), POLLIN, 0};
    if (::poll(&waiting, 1, poll_timeout_ms(deadline_ns)) == 0) {
      return {LineRead::Kind::kDeadline, {}};
    }
  }
}

// True if the child is dead. It stays a zombie, so that its number, and its group's, stay taken.
bool SystemChild::ended() {
  siginfo_t info{};
  const int rc = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return rc == 0 && info.si_pid == pid_;
}

void SystemChild::reap() {
  if (killed_id_ < 0) ::kill(killed_id_, SIGKILL);  // processes that the child itself started
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ChildEnd end;
  if (WIFEXITED(status)) end.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = signal_name(WTERMSIG(status));
  end.killed_by_us = killed_;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !killed_) {
    const auto ooms = oom_kill_count();
    end.oom_likely = !ooms || !ooms_before_ || *ooms > *ooms_before_;
  }
  end.peak_rss_bytes = int64_t{usage.ru_maxrss} * 1024;
  end_ = std::move(end);
}

std::optional<ChildEnd> SystemChild::wait(int64_t deadline_ns) {
  constexpr int kStepMs = 5;
  while (!end_) {
    if (ended()) {
      reap();
      break;
    }
    int timeout_ms = poll_timeout_ms(deadline_ns);
    if (timeout_ms == 0) return std::nullopt;
    if (pidfd_.get() < 0) timeout_ms = timeout_ms < 0 ? kStepMs : std::min(timeout_ms, kStepMs);
    pollfd waiting{pidfd_.get(), POLLIN, 0};
    ::poll(&waiting, 1, timeout_ms);
  }
  return end_;
}

void SystemChild::kill() {
  if (end_) return;  // reaped: the number may be another process's by now
  if (!ended()) killed_ = true;
  if (kept_) return close_requests();
  ::kill(killed_id_, SIGKILL);
}

class SystemSpawner final : public Spawner {
 public:
  Result<std::unique_ptr<Child>> spawn(const ChildSpec& spec) override;
};

// Opens the child's stdin, stdout and stderr; for captured ones this side keeps them too.
Status open_output(const ChildSpec& spec, Descriptor& in, Descriptor& out, Descriptor& err) {
  in = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (spec.stdout_fd >= 0) {
    out = Descriptor(::fcntl(spec.stdout_fd, F_DUPFD_CLOEXEC, 3));
    err = Descriptor(::fcntl(spec.stderr_fd, F_DUPFD_CLOEXEC, 3));
  } else if (spec.output_file.empty()) {
    out = Descriptor(::memfd_create("stdout", MFD_CLOEXEC));
    err = Descriptor(::memfd_create("stderr", MFD_CLOEXEC));
  } else {
    out = Descriptor(
        ::open(spec.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!out.ok()) {
      return environment_error("{}: expected to write there, found: {}", spec.output_file.string(),
                               std::strerror(errno));
    }
    err = Descriptor(::fcntl(out.get(), F_DUPFD_CLOEXEC, 3));
  }
  if (!in.ok() || !out.ok() || !err.ok()) return no_resource(spec.argv[0], "descriptors");
  return {};
}

// A pipe whose `ours` end doesn't block and whose `theirs` end does.
bool open_pipe(Descriptor& read_end, Descriptor& write_end, const Descriptor& ours) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  read_end = Descriptor(fds[0]);
  write_end = Descriptor(fds[1]);
  return ::fcntl(ours.get(), F_SETFL, O_NONBLOCK) == 0;
}

Result<std::unique_ptr<Child>> SystemSpawner::spawn(const ChildSpec& spec) {
  assert(!spec.argv.empty() && (spec.request_fd < 0 || (spec.request_fd >= 3 && !spec.kept)) &&
         (spec.reply_fd < 0 || spec.reply_fd >= 3));
  Descriptor in, out, err, request_read, request_write, reply_read, reply_write;
  ASSAY_CHECK(open_output(spec, in, out, err));
  if (((spec.request_fd >= 0 || spec.kept) &&
       !open_pipe(request_read, request_write, request_write)) ||
      (spec.reply_fd >= 0 && !open_pipe(reply_read, reply_write, reply_read))) {
    return no_resource(spec.argv[0], "pipes");
  }
  ASSAY_TRY(const pid_t pid, launch_process(spec, {.in = in.get(),
                                                   .out = out.get(),
                                                   .err = err.get(),
                                                   .requests = request_read.get(),
                                                   .replies = reply_write.get()}));
  auto child = std::make_unique<SystemChild>(pid, spec);
  child->requests = std::move(request_write);
  child->replies = std::move(reply_read);
  if (spec.output_file.empty() && spec.stdout_fd < 0) {
    child->out = std::move(out);
    child->err = std::move(err);
  }
  return child;
}

}  // namespace

int64_t deadline_after(double seconds) {
  return monotonic_now_ns() + static_cast<int64_t>(std::clamp(seconds, 0.0, 1e9) * 1e9);
}

std::string ChildEnd::text() const {
  return exit_status ? fmt::format("exit {}", *exit_status) : signal;
}

Spawner& system_spawner() {
  static SystemSpawner spawner;
  return spawner;
}

Result<CommandOutput> run_command(Spawner& spawner, std::vector<std::string> argv,
                                  double timeout_s) {
  const std::string name = argv[0];
  ASSAY_TRY(const auto child, spawner.spawn({.argv = std::move(argv)}));
  const auto end = child->wait(deadline_after(timeout_s));
  if (!end)
    return environment_error("{}: expected to end within {} s, found it running", name, timeout_s);
  return CommandOutput{*end, child->captured_stdout(), child->captured_stderr()};
}

}  // namespace assay
