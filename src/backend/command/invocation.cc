// Pipes are read as they fill, so that a command never waits for us and its log is there if we die.
// A process that it left behind may hold them open, so that its own end is the one that counts.
#include "backend/command/invocation.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/files/descriptor.h"
#include "base/process/executable.h"

namespace assay {
namespace {

constexpr int kLongestWaitMs = 50;  // where the kernel doesn't tell of a child's end

bool open_output_pipe(Descriptor& ours, Descriptor& theirs) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  ours = Descriptor(ends[0]);
  theirs = Descriptor(ends[1]);
  return ::fcntl(ours.get(), F_SETFL, O_NONBLOCK) == 0;
}

class Running {
 public:
  Running(const InvocationSpec& spec, Invocation& invocation)
      : spec_(spec), invocation_(invocation) {}

  Status start(Spawner& spawner) {
    Descriptor out, err;
    if (!open_output_pipe(out_, out) || !open_output_pipe(err_, err)) {
      return environment_error("{}: expected pipes for a command, found: {}", spec_.argv[0],
                               std::strerror(errno));
    }
    ChildSpec child{.argv = spec_.argv};
    child.argv[0] = program_in(child.argv[0], spec_.folder);
    child.environment = spec_.environment;
    child.working_folder = spec_.folder;
    child.stdout_fd = out.get();
    child.stderr_fd = err.get();
    child.own_group = false;
    child.kept = true;
    invocation_.started_at_ns = system_clock().wall_ns();
    start_ns_ = monotonic_now_ns();
    ASSAY_TRY(child_, spawner.spawn(child));
    return {};
  }

  void run() {
    const int64_t deadline = spec_.timeout_s > 0 ? deadline_after(spec_.timeout_s) : kNoDeadline;
    while (true) {
      if (auto end = child_->wait(0)) {
        invocation_.seconds = static_cast<double>(monotonic_now_ns() - start_ns_) * 1e-9;
        invocation_.end = *std::move(end);
        break;
      }
      if (const auto why = reason_to_stop(deadline)) {
        invocation_.stopped = *why;
        child_->kill();
        invocation_.end = child_->wait(kNoDeadline).value_or(ChildEnd());
        invocation_.seconds = static_cast<double>(monotonic_now_ns() - start_ns_) * 1e-9;
        break;
      }
      wait(deadline);
      take(out_, invocation_.out);
      take(err_, invocation_.err);
    }
    while (take(out_, invocation_.out)) continue;
    while (take(err_, invocation_.err)) continue;
    if (full() && invocation_.stopped == Invocation::Stopped::kNo) {
      invocation_.stopped = Invocation::Stopped::kFlood;
    }
  }

 private:
  bool full() const { return invocation_.out.size() + invocation_.err.size() >= kMostOutputBytes; }

  std::optional<Invocation::Stopped> reason_to_stop(int64_t deadline) const {
    pollfd interrupt{spec_.interrupt_fd, POLLIN, 0};
    if (::poll(&interrupt, 1, 0) > 0) return Invocation::Stopped::kInterrupted;
    if (full()) return Invocation::Stopped::kFlood;
    if (deadline != kNoDeadline && monotonic_now_ns() >= deadline) {
      return Invocation::Stopped::kTimeout;
    }
    return std::nullopt;
  }

  // Waits until there is output, an end or an interruption; the caller finds out which.
  void wait(int64_t deadline) const {
    std::array<pollfd, 4> waits{{{out_.get(), POLLIN, 0},
                                 {err_.get(), POLLIN, 0},
                                 {child_->end_descriptor(), POLLIN, 0},
                                 {spec_.interrupt_fd, POLLIN, 0}}};
    int timeout_ms = child_->end_descriptor() < 0 ? kLongestWaitMs : -1;
    if (deadline != kNoDeadline) {
      const int64_t left_ms = std::max<int64_t>(0, (deadline - monotonic_now_ns()) / 1'000'000 + 1);
      const auto left = static_cast<int>(std::min<int64_t>(left_ms, 60'000));
      timeout_ms = timeout_ms < 0 ? left : std::min(timeout_ms, left);
    }
    ::poll(waits.data(), waits.size(), timeout_ms);
  }

  // Takes a block of output; false if there is none, or no room for more.
  bool take(Descriptor& from, std::string& text) {
    std::array<char, size_t{1} << 16> block;
    if (from.get() < 0 || full()) return false;
    const ssize_t n = ::read(from.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) return true;
    if (n == 0 || (n < 0 && errno != EAGAIN)) from = Descriptor();  // its end: nothing to wait for
    if (n <= 0) return false;
    const std::string_view bytes(block.data(), static_cast<size_t>(n));
    text += bytes;
    if (spec_.echo) spec_.echo(bytes);
    return true;
  }

  const InvocationSpec& spec_;
  Invocation& invocation_;
  Descriptor out_, err_;  // this side's ends
  std::unique_ptr<Child> child_;
  int64_t start_ns_ = 0;
};

}  // namespace

Result<Invocation> invoke(Spawner& spawner, const InvocationSpec& spec) {
  Invocation invocation;
  Running running(spec, invocation);
  ASSAY_CHECK(running.start(spawner));
  running.run();
  return invocation;
}

}  // namespace assay
