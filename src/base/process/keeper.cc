// A subreaper that sleeps until its child or its pipe ends. Async-signal-safe calls only.
#include "base/process/keeper.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/process/orphans.h"

namespace assay {
namespace {

// The keeper has its pipe as stdin and nothing else of what it was forked with: no pipe of others
// may stay open because it lives.
void leave_but(int pipe_fd) {
  ::dup2(pipe_fd, 0);
  if (::close_range(1, ~0u, 0) == 0) return;
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (int fd = 1; fd < std::min(limit, 65536L); ++fd) ::close(fd);
}

// Reaps what has ended; true if `child` is among that.
bool reap(pid_t child, int& status) {
  bool ended = false;
  int one = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &one, WNOHANG)) > 0;) {
    if (pid != child) continue;
    status = one;
    ended = true;
  }
  return ended;
}

[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int signal = WTERMSIG(status);
  ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::raise(signal);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // only now it is delivered
  ::_exit(127);
}

[[noreturn]] void keep(pid_t child, int pipe_fd) {
  ::setpgid(0, 0);  // a kill of the group that it was forked in leaves it
  leave_but(pipe_fd);
  ::prctl(PR_SET_NAME,
          "keeper");  // whoever kills the program by its name leaves this process alone
  sigset_t of_children;
  sigemptyset(&of_children);
  sigaddset(&of_children, SIGCHLD);
  const int ends = ::signalfd(-1, &of_children, SFD_CLOEXEC);
  int status = SIGKILL;  // as of one that is killed here
  bool let_go = false;
  while (!let_go && !reap(child, status)) {
    pollfd waits[] = {{0, POLLIN, 0}, {ends, POLLIN, 0}};
    ::poll(waits, 2, -1);
    if (waits[1].revents != 0) {
      signalfd_siginfo taken;
      [[maybe_unused]] const ssize_t n = ::read(ends, &taken, sizeof taken);
    }
    if (waits[0].revents == 0) continue;
    unsigned char signal = 0;
    let_go = ::read(0, &signal, 1) != 1;
    if (!let_go) ::kill(child, signal);
  }
  kill_orphans();
  end_as(status);
}

}  // namespace

bool fork_below_keeper(int pipe_fd) {
  adopt_orphans();
  ::signal(SIGCHLD, SIG_DFL);  // children that are ignored can't be waited for
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t child = ::fork();
  if (child > 0) keep(child, pipe_fd);
  return child == 0;
}

}  // namespace assay
