// Descriptors, signals and exceptions of the whole program.
#include "cli/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "base/files/mapped_file.h"

namespace assay::cli {
namespace {

void open_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one. Opened the wrong way round: text that can't reach anybody
    // must not look written.
    const int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != fd) ::_exit(kExitEnvironment);
  }
}

// Stdout is a pipe (or a socket) that nobody reads any more: "| head -1".
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Ends as programs do that don't ignore SIGPIPE: quietly, and its parent sees the signal.
void end_by_sigpipe() {
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGPIPE);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(SIGPIPE);
}

int line_and_status(int status, std::string text) {
  std::ranges::replace(text, '\n', ' ');
  tell("assay: " + text + "\n");
  return status;
}

}  // namespace

void prepare_process() {
  open_standard_descriptors();
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  report_truncated_mappings();
  std::set_terminate([] {
    if (!std::current_exception()) std::abort();
    ::_exit(report_exception());
  });
}

void tell(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int report_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return line_and_status(kExitEnvironment,
                           "memory: expected enough for this command, found too little");
  } catch (const std::filesystem::filesystem_error& error) {
    return line_and_status(kExitBadInput,
                           fmt::format("{}: expected an accessible path, found: {}",
                                       error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return kExitEnvironment;  // close_output() says it
    return line_and_status(kExitEnvironment, error.what());
  } catch (const std::exception& error) {
    return line_and_status(
        kExitBadInput,
        fmt::format("expected an input that this program can work on, found: {}", error.what()));
  } catch (...) {
    return line_and_status(kExitBadInput,
                           "expected an input that this program can work on, found another");
  }
}

int close_output(int status) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return status;
  if (reader_is_gone()) end_by_sigpipe();
  const char* why = errno != 0 ? std::strerror(errno) : "an error of an earlier write";
  return line_and_status(
      kExitEnvironment,
      fmt::format("standard output: expected to write everything there, found: {}", why));
}

}  // namespace assay::cli
