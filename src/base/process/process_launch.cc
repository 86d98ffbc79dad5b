// Fork and exec: everything that allocates happens before the fork, and between fork and exec only
// async-signal-safe calls are made.
#include "base/process/process_launch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/files/descriptor.h"
#include "base/process/executable.h"
#include "base/process/keeper.h"

namespace assay {
namespace {

Result<std::string> find_program(const std::string& name) {
  if (const auto found = find_executable(name)) return found->string();
  if (name.find('/') == std::string::npos)
    return bad_input("{}: expected a program in PATH, found none", name);
  const bool may_run = ::access(name.c_str(), X_OK) == 0;
  return bad_input("{}: expected an executable file, found: {}", name,
                   may_run ? "no regular file" : std::strerror(errno));
}

std::vector<std::string> merged_environment(const ChildSpec& spec) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view key = text.substr(0, text.find('='));
    const bool replaced =
        std::ranges::any_of(spec.environment, [&](const auto& pair) { return pair.first == key; });
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [key, value] : spec.environment) merged.push_back(key + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Everything that the child needs between fork and exec, ready to use.
struct Launch {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int sources[5] = {-1, -1, -1, -1, -1};
  int targets[5] = {-1, -1, -1, -1, -1};  // 0, 1, 2, request, reply
  int error_fd = -1;
  pid_t parent = 0;
  bool own_group = true;
  int keeper_fd = -1;            // -1: no keeper
  const char* folder = nullptr;  // null: stay
  cpu_set_t cpus = {};
};

// From here down to run_child() everything runs between fork and exec: async-signal-safe calls
// only.

void close_on_exec_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < std::min(limit, 65536L); ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Moves each source to its target. All sources are first put above all targets, so that no dup2
// can close a source that is still to be moved.
bool place_descriptors(Launch& launch) {
  int above = 3;
  for (int target : launch.targets) above = std::max(above, target + 1);
  launch.error_fd = ::fcntl(launch.error_fd, F_DUPFD_CLOEXEC, above);
  if (launch.error_fd < 0) return false;
  for (int& source : launch.sources) {
    if (source >= 0 && (source = ::fcntl(source, F_DUPFD_CLOEXEC, above)) < 0) return false;
  }
  for (size_t i = 0; i < std::size(launch.sources); ++i) {
    if (launch.sources[i] >= 0 && ::dup2(launch.sources[i], launch.targets[i]) < 0) return false;
  }
  close_on_exec_from(3);
  for (size_t i = 3; i < std::size(launch.targets); ++i) {
    if (launch.targets[i] >= 0 && ::fcntl(launch.targets[i], F_SETFD, 0) != 0) return false;
  }
  return true;
}

[[noreturn]] void give_up(int error_fd) {
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void run_child(Launch& launch) {
  if (launch.keeper_fd >= 0) {
    launch.parent = ::getpid();
    if (!fork_below_keeper(launch.keeper_fd)) give_up(launch.error_fd);
  }
  if (launch.own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(127);  // the parent died before prctl
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (CPU_COUNT(&launch.cpus) > 0) ::sched_setaffinity(0, sizeof launch.cpus, &launch.cpus);
  const int report_to = launch.error_fd;
  const bool there = launch.folder == nullptr || ::chdir(launch.folder) == 0;
  if (there && place_descriptors(launch)) ::execve(launch.program, launch.argv, launch.envp);
  give_up(launch.error_fd >= 0 ? launch.error_fd : report_to);
}

}  // namespace

Result<pid_t> launch_process(const ChildSpec& spec, const ChildDescriptors& descriptors) {
  ASSAY_TRY(const std::string program,
            find_program(spec.image.empty() ? spec.argv[0] : spec.image.string()));
  std::error_code ignored;
  if (!spec.working_folder.empty() &&
      !std::filesystem::is_directory(spec.working_folder, ignored)) {
    return bad_input("{}: expected a folder to start {} in, found none",
                     spec.working_folder.string(), program);
  }
  std::vector<std::string> arguments = spec.argv;
  std::vector<std::string> environment = merged_environment(spec);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) {
    return environment_error("{}: expected a pipe for a child process, found: {}", program,
                             std::strerror(errno));
  }
  const Descriptor error_read(error_pipe[0]);
  Descriptor error_write(error_pipe[1]);
  Launch launch{
      .program = program.c_str(),
      .argv = argv.data(),
      .envp = envp.data(),
      .sources = {descriptors.in, descriptors.out, descriptors.err,
                  spec.kept ? -1 : descriptors.requests, descriptors.replies},
      .targets = {0, 1, 2, spec.request_fd, spec.reply_fd},
      .error_fd = error_write.get(),
      .parent = ::getpid(),
      .own_group = spec.own_group,
      .keeper_fd = spec.kept ? descriptors.requests : -1,
      .folder = spec.working_folder.empty() ? nullptr : spec.working_folder.c_str(),
  };
  for (const int cpu : spec.cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &launch.cpus);
  }
  const pid_t pid = ::fork();
  if (pid == 0) run_child(launch);
  if (pid < 0) {
    return environment_error("{}: expected one more process, found: {}", program,
                             std::strerror(errno));
  }
  error_write.reset();
  int error = 0;
  ssize_t n = 0;
  while ((n = ::read(error_read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (n != sizeof error) return pid;  // exec closed the pipe
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return bad_input("{}: expected a program that can be run, found: {}", program,
                   std::strerror(error));
}

}  // namespace assay
