#include "base/process/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/process/executable.h"
#include "base/process/thread_pool.h"

namespace assay {
namespace {

using Kind = LineRead::Kind;

// A shell with requests on 3 and replies on 4.
std::unique_ptr<Child> shell(const std::string& script, size_t max_line_bytes = 1 << 20) {
  auto child = system_spawner().spawn({.argv = {"sh", "-c", script},
                                       .request_fd = 3,
                                       .reply_fd = 4,
                                       .max_line_bytes = max_line_bytes});
  EXPECT_TRUE(child) << child.error().message;
  return child ? *std::move(child) : nullptr;
}

bool process_exists(int64_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) == 0;
}

TEST(Subprocess, TalksInLines) {
  auto child = shell("while read -r line <&3; do echo \"got $line\" >&4; done; exit 7");
  ASSERT_TRUE(child->send("one\ntwo\n", kNoDeadline));
  EXPECT_EQ(child->read_line(kNoDeadline).line, "got one");
  EXPECT_EQ(child->read_line(kNoDeadline).line, "got two");
  child->close_requests();
  EXPECT_EQ(child->read_line(kNoDeadline).kind, Kind::kEnd);
  const auto end = child->wait(kNoDeadline);
  EXPECT_EQ(end->exit_status, 7);
  EXPECT_EQ(end->text(), "exit 7");
  EXPECT_GT(end->peak_rss_bytes, 100'000);
  EXPECT_EQ(child->wait(0)->exit_status, 7) << "asking again must not reap twice";
}

// The program that is executed may have another name than argv[0].
TEST(Subprocess, TheImageRunsUnderTheNameOfArgv0) {
  auto child = system_spawner().spawn(
      {.argv = {"/no/such/program", "-c", "echo \"$0\""}, .image = "/bin/sh"});
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE((*child)->wait(kNoDeadline)->ok());
  EXPECT_EQ((*child)->captured_stdout(), "/no/such/program\n");
  const auto missing = system_spawner().spawn({.argv = {"sh"}, .image = "/no/such/image"});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("/no/such/image"));
}

TEST(Subprocess, ChildRunsOnTheCpusItIsGiven) {
  const std::vector<int> allowed = allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  const auto cpus_of = [](const std::vector<int>& cpus) {
    auto child = system_spawner().spawn(
        {.argv = {"grep", "Cpus_allowed_list", "/proc/self/status"}, .cpus = cpus});
    EXPECT_TRUE(child && (*child)->wait(kNoDeadline)->ok());
    return child ? (*child)->captured_stdout() : "";
  };
  EXPECT_EQ(cpus_of({allowed.back()}), fmt::format("Cpus_allowed_list:\t{}\n", allowed.back()));
  const std::string unchanged = cpus_of({});
  EXPECT_EQ(cpus_of({CPU_SETSIZE - 1}), unchanged) << "a CPU that isn't there";
  EXPECT_EQ(cpus_of({-1, 1 << 20}), unchanged);
}

TEST(Subprocess, ChildHasItsDescriptorsAndNoOthers) {
  const Descriptor inherited(::open("/dev/null", O_RDONLY));  // no O_CLOEXEC
  ASSERT_TRUE(inherited.ok());
  auto child = shell(
      "fd=0; while [ $fd -lt 256 ]; do [ -e /proc/$$/fd/$fd ] && echo $fd; fd=$((fd + 1)); done; "
      "readlink /proc/$$/fd/0");
  ASSERT_TRUE(child->wait(kNoDeadline)->ok());
  EXPECT_EQ(child->captured_stdout(), "0\n1\n2\n3\n4\n/dev/null\n");
}

TEST(Subprocess, DescriptorNumbersMayBeAny) {
  // Whatever numbers this process's own ends have, the child's land where they were asked for.
  for (const auto& [request, reply] : std::vector<std::pair<int, int>>{{4, 3}, {9, 5}, {63, 3}}) {
    auto child = system_spawner().spawn(
        {.argv = {"bash", "-c", fmt::format("read -r line <&{}; echo $line >&{}", request, reply)},
         .request_fd = request,
         .reply_fd = reply});
    ASSERT_TRUE(child);
    ASSERT_TRUE((*child)->send("hello\n", kNoDeadline));
    EXPECT_EQ((*child)->read_line(kNoDeadline).line, "hello") << request << " " << reply;
  }
}

TEST(Subprocess, EnvironmentIsAddedAndReplaced) {
  auto child =
      system_spawner().spawn({.argv = {"sh", "-c", "echo $ASSAY_TEST $HOME; env | grep -c ^HOME="},
                              .environment = {{"ASSAY_TEST", "a b"}, {"HOME", "/x"}}});
  ASSERT_TRUE(child);
  ASSERT_TRUE((*child)->wait(kNoDeadline)->ok());
  EXPECT_EQ((*child)->captured_stdout(), "a b /x\n1\n");
}

TEST(Subprocess, OutputIsCapturedApartOrAppendedTogether) {
  auto result = run_command(system_spawner(), {"sh", "-c", "echo out; echo err >&2"}, 60);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");

  const std::filesystem::path log = testing::TempDir() + "subprocess_output.log";
  std::filesystem::remove(log);
  for (int i = 0; i < 2; ++i) {
    auto child = system_spawner().spawn(
        {.argv = {"sh", "-c", "echo out; echo err >&2"}, .output_file = log});
    ASSERT_TRUE(child);
    (*child)->wait(kNoDeadline);
  }
  EXPECT_EQ(read_file(log), "out\nerr\nout\nerr\n");
}

TEST(Subprocess, AnUnwritableOutputFileIsAnError) {
  const auto child =
      system_spawner().spawn({.argv = {"true"}, .output_file = "/dev/null/stderr.log"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(child.error().message, testing::HasSubstr("/dev/null/stderr.log: expected"));
}

TEST(Subprocess, AMissingOrBrokenProgramIsAnError) {
  const std::string text_file = testing::TempDir() + "not_a_program";
  ASSERT_TRUE(write_file(text_file,
                         "\x7f"
                         "ELF is what this only claims to be"));
  ASSERT_EQ(::chmod(text_file.c_str(), 0755), 0);
  for (const std::string program :
       {"no-such-program-at-all", "/no/such/program", "/etc/passwd", "/", "", text_file.c_str()}) {
    const auto child = system_spawner().spawn({.argv = {program}});
    ASSERT_FALSE(child) << program;
    EXPECT_EQ(child.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(child.error().message, testing::HasSubstr("expected"));
  }
}

TEST(Subprocess, AFolderInPathIsNoProgram) {
  const std::string place = testing::TempDir() + "folders_in_path";
  const std::string path = std::getenv("PATH");
  std::filesystem::create_directories(place + "/sh");
  std::filesystem::create_directories(place + "/only_a_folder");
  ASSERT_EQ(::setenv("PATH", (place + ":" + path).c_str(), 1), 0);
  EXPECT_TRUE(system_spawner().spawn({.argv = {"sh", "-c", "true"}}));
  EXPECT_FALSE(find_executable("only_a_folder"));
  const auto child = system_spawner().spawn({.argv = {"only_a_folder"}});
  ASSERT_EQ(::setenv("PATH", path.c_str(), 1), 0);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().message, "only_a_folder: expected a program in PATH, found none");
}

TEST(Subprocess, SignalsHaveNames) {
  for (const std::string name : {"SEGV", "ABRT", "KILL"}) {
    auto child = shell("ulimit -c 0; kill -" + name + " $$");
    const auto end = child->wait(kNoDeadline);
    EXPECT_EQ(end->text(), "SIG" + name);
    EXPECT_FALSE(end->exit_status);
    EXPECT_FALSE(end->ok());
    EXPECT_FALSE(end->killed_by_us);
  }
}

TEST(Subprocess, AKillOfOursIsNotTakenForTheKernels) {
  auto child = shell("echo up >&4; read -r line <&3");
  EXPECT_EQ(child->read_line(kNoDeadline).line, "up");
  EXPECT_FALSE(child->wait(0)) << "it still runs";
  child->kill();
  const auto end = child->wait(kNoDeadline);
  EXPECT_EQ(end->signal, "SIGKILL");
  EXPECT_TRUE(end->killed_by_us);
  EXPECT_FALSE(end->oom_likely);
}

TEST(Subprocess, KillingAfterTheEndClaimsNothing) {
  auto child = shell("exit 3");
  EXPECT_EQ(child->read_line(kNoDeadline).kind, Kind::kEnd);
  ASSERT_TRUE(child->wait(kNoDeadline));
  child->kill();
  EXPECT_FALSE(child->wait(0)->killed_by_us);
  EXPECT_EQ(child->wait(0)->exit_status, 3);
}

TEST(Subprocess, TheWholeGroupDies) {
  // The grandchild holds the reply pipe: its end shows that the grandchild is gone as well.
  for (const bool by_us : {true, false}) {
    auto child = shell("sleep 1000 & echo $! >&4; " + std::string(by_us ? "wait" : "exit 0"));
    ASSERT_EQ(child->read_line(kNoDeadline).kind, Kind::kLine);
    if (by_us) child->kill();
    ASSERT_TRUE(child->wait(kNoDeadline));
    EXPECT_EQ(child->read_line(kNoDeadline).kind, Kind::kEnd);
  }
}

TEST(Subprocess, TheDestructorKillsAndReaps) {
  int64_t pid = 0;
  {
    auto child = shell("read -r line <&3");
    pid = child->pid();
    EXPECT_TRUE(process_exists(pid));
  }
  EXPECT_FALSE(process_exists(pid));
}

TEST(Subprocess, ReadingHasADeadlineAndKeepsHalfALine) {
  auto child = shell("printf half >&4; read -r line <&3; echo ' whole' >&4; printf rest >&4");
  EXPECT_EQ(child->read_line(monotonic_now_ns()).kind, Kind::kDeadline);
  ASSERT_TRUE(child->send("go\n", kNoDeadline));
  EXPECT_EQ(child->read_line(kNoDeadline).line, "half whole");
  const LineRead last = child->read_line(kNoDeadline);
  EXPECT_EQ(last.kind, Kind::kEnd);
  EXPECT_EQ(last.line, "rest");
  EXPECT_EQ(child->read_line(kNoDeadline).line, "");
}

TEST(Subprocess, ALineTooLongIsRefusedWholeOrNot) {
  for (const char* script : {"echo 123456789 >&4", "printf 123456789 >&4; read -r line <&3"}) {
    auto child = shell(script, 8);
    EXPECT_EQ(child->read_line(kNoDeadline).kind, Kind::kTooLong) << script;
  }
  auto child = shell("echo 12345678 >&4", 8);
  EXPECT_EQ(child->read_line(kNoDeadline).line, "12345678");
}

TEST(Subprocess, LinesLargerThanAPipePassBothWays) {
  auto child = shell("read -r line <&3; echo \"$line\" >&4");
  const std::string line(300'000, 'x');
  std::thread sender([&] { EXPECT_TRUE(child->send(line + "\n", kNoDeadline)); });
  sender.join();  // the shell takes all of it before it answers
  EXPECT_EQ(child->read_line(kNoDeadline).line, line);
}

TEST(Subprocess, SendingToADeadOrBusyChildIsAnError) {
  auto dead = shell("exit 0");
  dead->wait(kNoDeadline);
  const Status broken = dead->send("hello\n", kNoDeadline);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, testing::HasSubstr("Broken pipe"));
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);

  auto busy = shell("echo up >&4; exec sleep 1000");
  busy->read_line(kNoDeadline);
  const Status full = busy->send(std::string(1 << 20, 'x'), monotonic_now_ns());
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().message, testing::HasSubstr("busy"));
}

TEST(Subprocess, TheChildDiesWithItsParent) {
  // A process in between spawns the child and is killed; the child's end of the pipe then closes.
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t between = ::fork();
  if (between == 0) {
    auto child = system_spawner().spawn({.argv = {"sleep", "1000"}});
    const int64_t pid = child ? (*child)->pid() : -1;
    [[maybe_unused]] const ssize_t n = ::write(fds[1], &pid, sizeof pid);
    ::raise(SIGKILL);
  }
  int64_t pid = 0;
  ASSERT_EQ(::read(fds[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ASSERT_GT(pid, 0);
  ::waitpid(between, nullptr, 0);
  const int64_t give_up_ns = deadline_after(60);
  const auto dead = [&] {
    const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
    return !stat || stat->find(") Z ") != std::string::npos;  // nobody may reap it here
  };
  while (!dead() && monotonic_now_ns() < give_up_ns) std::this_thread::yield();
  EXPECT_TRUE(dead());
  ::close(fds[0]);
  ::close(fds[1]);
}

// A shell that is kept, and what it starts: one process in its group and one in a session of its
// own. Their numbers are the first line of its replies.
constexpr const char* kFamily =
    "sleep 1000 & a=$!; setsid sleep 1000 & b=$!; trap 'exit 5' TERM; echo $$ $a $b >&4; "
    "while :; do sleep 1000 & wait $!; done";

std::vector<int64_t> numbers_in(const std::string& line) {
  std::vector<int64_t> numbers;
  std::istringstream words(line);
  for (int64_t one = 0; words >> one;) numbers.push_back(one);
  return numbers;
}

bool is_gone(int64_t pid) {
  const int64_t give_up_ns = deadline_after(60);
  while (process_exists(pid) && monotonic_now_ns() < give_up_ns) std::this_thread::yield();
  return !process_exists(pid);
}

TEST(Subprocess, TheFamilyOfAKeptChildEndsWithIt) {
  for (const std::string how : {"kill", "signal", "crash", "destructor"}) {
    auto child =
        system_spawner().spawn({.argv = {"sh", "-c", kFamily}, .kept = true, .reply_fd = 4});
    ASSERT_TRUE(child) << child.error().message;
    const auto family = numbers_in((*child)->read_line(kNoDeadline).line);
    ASSERT_EQ(family.size(), 3u);
    for (const int64_t pid : family) EXPECT_TRUE(process_exists(pid)) << how;
    EXPECT_FALSE((*child)->wait(0)) << "it still runs";
    std::string end = "SIGKILL";
    if (how == "kill") (*child)->kill();
    if (how == "signal") {
      ASSERT_TRUE((*child)->send(std::string(1, SIGTERM), kNoDeadline));
      end = "exit 5";
    }
    if (how == "crash") {
      ASSERT_TRUE((*child)->send(std::string(1, SIGSEGV), kNoDeadline));
      end = "SIGSEGV";
    }
    if (how == "destructor") {
      child->reset();
    } else {
      EXPECT_EQ((*child)->wait(kNoDeadline)->text(), end) << how;
      EXPECT_EQ((*child)->wait(0)->killed_by_us, how == "kill");
    }
    for (const int64_t pid : family) EXPECT_FALSE(process_exists(pid)) << how;
  }
}

TEST(Subprocess, TheFamilyOfAKeptChildEndsWithAKilledParent) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t between = ::fork();
  if (between == 0) {
    auto child = system_spawner().spawn(
        {.argv = {"sh", "-c", kFamily}, .own_group = false, .kept = true, .reply_fd = 4});
    const std::string line = child ? (*child)->read_line(kNoDeadline).line : "";
    [[maybe_unused]] const ssize_t n = ::write(fds[1], line.data(), line.size());
    ::raise(SIGKILL);
  }
  char line[100] = {};
  ASSERT_GT(::read(fds[0], line, sizeof line - 1), 0);
  ::waitpid(between, nullptr, 0);
  const auto family = numbers_in(line);
  ASSERT_EQ(family.size(), 3u);
  for (const int64_t pid : family) EXPECT_TRUE(is_gone(pid)) << pid;
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(Subprocess, AKeptChildHasItsDescriptorsAndNoOthers) {
  auto child = system_spawner().spawn(
      {.argv = {"sh", "-c", "ls /proc/$$/fd; cat /proc/$PPID/comm"}, .kept = true, .reply_fd = 4});
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_TRUE((*child)->wait(kNoDeadline)->ok());
  EXPECT_EQ((*child)->captured_stdout(), "0\n1\n2\n4\nkeeper\n");
  const auto absent = system_spawner().spawn({.argv = {"/etc/passwd"}, .kept = true});
  EXPECT_FALSE(absent);
}

TEST(Subprocess, ACommandThatTakesTooLongIsAnError) {
  const auto result = run_command(system_spawner(), {"sleep", "1000"}, 0.01);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, testing::HasSubstr("sleep: expected to end within 0.01 s"));
}

}  // namespace
}  // namespace assay
