// Children are found in /proc, which is there on every Linux.
#include "base/process/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/files.h"
#include "base/process/process_parent.h"

namespace assay {
namespace {

constexpr int kSweeps = 200;

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    char* rest = nullptr;
    const std::string name = it->path().filename();
    const long pid = std::strtol(name.c_str(), &rest, 10);
    if (pid <= 0 || *rest != '\0') continue;
    const auto stat = read_file(it->path() / "stat");
    if (stat && parent_in_stat(*stat) == ::getpid()) found.push_back(static_cast<pid_t>(pid));
  }
  return found;
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
  for (int sweep = 0; sweep < kSweeps && has_children(); ++sweep) {
    for (const pid_t pid : children()) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
}

}  // namespace assay
