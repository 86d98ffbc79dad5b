// Child processes: spawned with pipes of their own, talked to in lines under a deadline, and always
// reaped. Behind interfaces, so that a harness can be tested against a child that crashes or hangs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

// Deadlines are absolute, in nanoseconds of monotonic_now_ns(); one in the past polls once.
inline constexpr int64_t kNoDeadline = INT64_MAX;
int64_t deadline_after(double seconds);

struct ChildSpec {
  std::vector<std::string> argv;  // argv[0]: a path, or a name that is looked up in PATH
  // The file that is executed, if it isn't the one that argv[0] names: "/proc/self/exe" is the very
  // program that runs here, whatever lies at its path by now.
  std::filesystem::path image = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to this process's own
  // stdout and stderr are appended here, in the order of the writes; the file is made if missing.
  // Empty: they are kept apart in memory, see Child::captured_stdout().
  std::filesystem::path output_file = {};
  // Descriptors of this process that the child gets as stdout and stderr in the place of all that;
  // both or neither (-1).
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::filesystem::path working_folder = {};  // where it starts; empty: where this process is
  // True: it leads a process group of its own. False: it stays in this process's, so that a kill of
  // that group ends it too, a Ctrl-C reaches it, and Child::kill() ends the child alone.
  bool own_group = true;
  // True: a process of its own, the keeper, stands between this one and the child. It kills the
  // child and everything that descends from it, in whatever session, once the child has ended, once
  // kill() is called, and once this process has ended, however that happens; then it ends as the
  // child did. pid() is the keeper's, and each byte that send() writes is the number of a signal
  // that the child gets. The keeper leads a group of its own; excludes `request_fd`.
  bool kept = false;
  // Numbers that the child's ends of the two pipes get; -1: no such pipe. Both must be >= 3, and
  // different. The child has these, stdin (empty), stdout and stderr, and no other descriptor.
  int request_fd = -1;  // the child reads what send() writes
  int reply_fd = -1;    // the child writes what read_line() reads
  size_t max_line_bytes = size_t{16} << 20;
  // The CPUs that it and its children may run on; empty: this process's. CPUs that the kernel
  // refuses change nothing.
  std::vector<int> cpus = {};
};

// The end of a child.
struct ChildEnd {
  std::optional<int> exit_status;  // absent if a signal ended it
  std::string signal;              // "SIGSEGV"; empty if it exited
  bool killed_by_us = false;       // Child::kill() came first
  // A SIGKILL that we did not send, and the kernel's count of out-of-memory kills rose meanwhile
  // (or can't be read): evidence, not proof, since the count is the machine's.
  bool oom_likely = false;
  // Peak of the child alone, not of its children. Linux counts the moment between fork and exec
  // too, so it is never below this process's own size.
  int64_t peak_rss_bytes = 0;

  bool ok() const { return exit_status == 0; }
  std::string text() const;  // "exit 1", "SIGSEGV": as a row's error_class has it
};

// The result of read_line().
struct LineRead {
  enum class Kind {
    kLine,      // `line`, without its line end
    kEnd,       // the child closed the pipe or died; `line` holds a last line that lacked its end
    kDeadline,  // none was whole in time; the bytes so far are kept for the next call
    kTooLong,   // longer than max_line_bytes; the stream has no use from here on: kill the child
  };
  Kind kind = Kind::kEnd;
  std::string line;
};

// A running child, leader of a process group of its own (a Ctrl-C in the terminal doesn't reach
// it) unless its spec says otherwise. The destructor kills the group and reaps. Use from one thread
// at a time.
class Child {
 public:
  virtual ~Child() = default;
  virtual int64_t pid() const = 0;
  // Writes all bytes to the request pipe; never raises SIGPIPE. environment_error if the child has
  // closed its end or doesn't read until the deadline: part of the bytes may have been written.
  virtual Status send(std::string_view bytes, int64_t deadline_ns) = 0;
  // Closes the request pipe: the child reads the end of the file.
  virtual void close_requests() = 0;
  virtual LineRead read_line(int64_t deadline_ns) = 0;
  // To poll several children at once, after read_line() answered kDeadline for each (a line that is
  // already buffered doesn't show here). Owned by the child; -1 without a reply pipe.
  virtual int reply_descriptor() const = 0;
  // Readable once the child has ended, also while something that it started holds its reply pipe
  // open. Owned by the child; -1 where the kernel has none.
  virtual int end_descriptor() const = 0;
  // The end, once there is one; absent if the deadline comes first. The rest of the group is killed
  // then. May be called again, and answers the same.
  virtual std::optional<ChildEnd> wait(int64_t deadline_ns) = 0;
  // SIGKILL to the whole group, or family if it is kept; wait() still has to be called to learn the
  // end.
  virtual void kill() = 0;
  // Output so far, if output_file was empty; the first 64 MiB.
  virtual std::string captured_stdout() const = 0;
  virtual std::string captured_stderr() const = 0;
};

class Spawner {
 public:
  virtual ~Spawner() = default;
  // bad_input if the program is not found or not executable, environment_error if the machine has
  // no more processes, memory or descriptors. The child is sent SIGKILL when the thread that
  // spawned it ends (PR_SET_PDEATHSIG), so also when this process is killed: spawn from a thread
  // that outlives the child. Children of the child are not covered by that, unless it is kept.
  virtual Result<std::unique_ptr<Child>> spawn(const ChildSpec& spec) = 0;
};

// Real processes; lives as long as the program.
Spawner& system_spawner();

// A command run to its end, for short questions ("gcc --version").
struct CommandOutput {
  ChildEnd end;
  std::string out;
  std::string err;
};
// bad_input if it isn't found, environment_error if it takes longer (it is killed then).
Result<CommandOutput> run_command(Spawner& spawner, std::vector<std::string> argv,
                                  double timeout_s);

}  // namespace assay
