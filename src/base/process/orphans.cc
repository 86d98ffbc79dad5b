// Children are found in /proc, which is there on every Linux. Nothing here allocates, since a
// process may do so only before its fork or behind its exec.
#include "base/process/orphans.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/process/process_parent.h"

namespace assay {
namespace {

constexpr int kSweeps = 200;

// The parent of the process with this number in /proc.
std::optional<pid_t> parent_of(int proc, const char* number) {
  std::array<char, 300> path{};
  if (std::strlen(number) + sizeof "/stat" > path.size()) return std::nullopt;
  std::strcat(std::strcpy(path.data(), number), "/stat");
  const int fd = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t n = ::read(fd, text.data(), text.size());
  ::close(fd);
  return n > 0 ? parent_in_stat({text.data(), static_cast<size_t>(n)}) : std::nullopt;
}

void kill_if_child(int proc, const char* name) {
  pid_t pid = 0;
  const char* const end = name + std::strlen(name);
  const auto [stop, error] = std::from_chars(name, end, pid);
  if (error != std::errc() || stop != end || pid <= 0) return;
  if (parent_of(proc, name) != ::getpid()) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void kill_children() {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(dirent64) std::array<char, 4096> entries;
  ssize_t n = 0;
  while ((n = ::getdents64(proc, entries.data(), entries.size())) > 0) {
    for (ssize_t at = 0; at < n;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      kill_if_child(proc, entry->d_name);
      at += entry->d_reclen;
    }
  }
  ::close(proc);
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void kill_orphans() {
  for (int sweep = 0; sweep < kSweeps && has_children(); ++sweep) kill_children();
}

}  // namespace assay
