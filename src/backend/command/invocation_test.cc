// Commands that behave and commands that don't: each ends, with its output and nothing left behind.
#include "backend/command/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "base/files/descriptor.h"
#include "base/files/files.h"
#include "base/files/temporary_folder.h"

namespace assay {
namespace {

using testing::HasSubstr;
using Stopped = Invocation::Stopped;

Invocation ran(const std::string& shell, double timeout_s = 60) {
  InvocationSpec spec{.argv = {"/bin/sh", "-c", shell}};
  spec.timeout_s = timeout_s;
  auto invocation = invoke(system_spawner(), spec);
  EXPECT_TRUE(invocation) << invocation.error().message;
  return invocation.value_or(Invocation{});
}

// The number that the output holds.
pid_t number_in(const std::string& text) {
  return static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
}

// Waits until the process has ended, whoever's child it is.
void await_end(pid_t pid) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return;
  pollfd ended{process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1) << pid << " lives on";
}

TEST(Invocation, KeepsBothOutputsApartAndWholeInAnyBytes) {
  const Invocation invocation = ran("printf 'a\\000\\377no newline'; printf 'err' >&2; exit 3");
  EXPECT_EQ(invocation.out, std::string("a\0\xffno newline", 13));
  EXPECT_EQ(invocation.err, "err");
  EXPECT_EQ(invocation.end.text(), "exit 3");
  EXPECT_EQ(invocation.stopped, Stopped::kNo);
  EXPECT_GT(invocation.started_at_ns, 0);
  EXPECT_EQ(ran("kill -SEGV $$").end.text(), "SIGSEGV");
}

TEST(Invocation, MuchOutputPassesAndAFloodIsStopped) {
  const Invocation much = ran("head -c 20000000 /dev/zero; echo end >&2");
  EXPECT_EQ(much.out.size(), 20'000'000u);
  EXPECT_EQ(much.err, "end\n");
  const Invocation flood = ran("exec yes");
  EXPECT_EQ(flood.stopped, Stopped::kFlood);
  EXPECT_LT(flood.out.size(), kMostOutputBytes + (size_t{1} << 20));
}

TEST(Invocation, AllOfBothOutputsIsEchoed) {
  InvocationSpec spec{.argv = {"/bin/sh", "-c",
                               "head -c 300000 /dev/zero | tr '\\0' e >&2; "
                               "head -c 200000 /dev/zero | tr '\\0' o"}};
  std::string echoed;
  spec.echo = [&](std::string_view bytes) { echoed += bytes; };
  const auto invocation = invoke(system_spawner(), spec);
  ASSERT_TRUE(invocation) << invocation.error().message;
  EXPECT_EQ(invocation->err, std::string(300'000, 'e'));
  EXPECT_EQ(invocation->out, std::string(200'000, 'o'));
  EXPECT_EQ(std::ranges::count(echoed, 'e'), 300'000);
  EXPECT_EQ(std::ranges::count(echoed, 'o'), 200'000);
}

// The last bytes, which are too many, are still in the pipe when the command's keeper, its parent,
// has ended.
TEST(Invocation, AFloodIsOneAlsoIfItsEndIsReadAfterTheCommand) {
  constexpr size_t kRead = kMostOutputBytes - 1000;
  const std::string text =
      fmt::format("echo $PPID; head -c {} /dev/zero; head -c 2000 /dev/zero", kRead);
  InvocationSpec spec{.argv = {"/bin/sh", "-c", text}};
  pid_t keeper = 0;
  size_t echoed = 0;
  spec.echo = [&](std::string_view bytes) {
    if (echoed == 0) keeper = number_in(std::string(bytes));
    echoed += bytes.size();
    if (echoed >= kRead) await_end(keeper);
  };
  const auto invocation = invoke(system_spawner(), spec);
  ASSERT_TRUE(invocation) << invocation.error().message;
  EXPECT_EQ(invocation->end.text(), "exit 0");
  EXPECT_EQ(invocation->stopped, Stopped::kFlood);
}

TEST(Invocation, WhatIsLeftBehindIsKilledAndNotWaitedFor) {
  for (const char* start :
       {"sleep 1000 & echo $!", "setsid sleep 1000 & echo $!", "(sleep 1000 & echo $!) "}) {
    const int64_t before_ns = monotonic_now_ns();
    const Invocation invocation = ran(start);
    EXPECT_EQ(invocation.end.text(), "exit 0");
    const pid_t left = number_in(invocation.out);
    ASSERT_GT(left, 1) << start;
    EXPECT_EQ(::kill(left, 0), -1) << start << ": its child holds the pipe no more";
    EXPECT_LT(monotonic_now_ns() - before_ns, int64_t{500'000'000'000});
  }
}

TEST(Invocation, ATimeOutTakesAllOfIt) {
  // A busy machine may take longer to start it.
  Invocation invocation;
  for (double seconds = 0.3; invocation.out.empty() && seconds < 60; seconds *= 10)
    invocation = ran("setsid sleep 1000 & echo $!; exec sleep 1000", seconds);
  ASSERT_GT(number_in(invocation.out), 1);
  EXPECT_EQ(invocation.stopped, Stopped::kTimeout);
  EXPECT_EQ(::kill(number_in(invocation.out), 0), -1);
}

TEST(Invocation, AllOfItEndsWithTheProcessThatAskedForIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t asking = ::fork();
  if (asking == 0) {
    InvocationSpec spec{.argv = {"/bin/sh", "-c", "setsid sleep 1000 & echo $!; exec sleep 1000"}};
    spec.echo = [&](std::string_view bytes) {
      if (::write(write_end.get(), bytes.data(), bytes.size()) < 0) ::_exit(1);
    };
    (void)invoke(system_spawner(), spec);
    ::_exit(0);
  }
  write_end.reset();
  std::string said(32, '\0');
  ASSERT_GT(::read(read_end.get(), said.data(), said.size()), 0);
  const pid_t started = number_in(said);
  ASSERT_EQ(::kill(started, 0), 0);
  ::kill(asking, SIGKILL);
  ::waitpid(asking, nullptr, 0);
  await_end(started);
}

TEST(Invocation, AnInterruptionEndsIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor read_end(ends[0]);
  const Descriptor write_end(ends[1]);
  ASSERT_EQ(::write(write_end.get(), "x", 1), 1);
  InvocationSpec spec{.argv = {"sleep", "1000"}};
  spec.interrupt_fd = read_end.get();
  const auto invocation = invoke(system_spawner(), spec);
  ASSERT_TRUE(invocation);
  EXPECT_EQ(invocation->stopped, Stopped::kInterrupted);
}

TEST(Invocation, StartsInItsFolderWithItsVariables) {
  const auto folder = TemporaryFolder::make("assay-invocation-");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file(folder->path() / "run", "#!/bin/sh\necho $X; pwd\n"));
  std::filesystem::permissions(folder->path() / "run", std::filesystem::perms::owner_all);
  InvocationSpec spec{.argv = {"./run"}};
  spec.folder = folder->path();
  spec.environment = {{"X", "seen"}};
  std::string echoed;
  spec.echo = [&](std::string_view bytes) { echoed += bytes; };
  const auto invocation = invoke(system_spawner(), spec);
  ASSERT_TRUE(invocation) << invocation.error().message;
  EXPECT_THAT(invocation->out, HasSubstr("seen\n"));
  EXPECT_THAT(invocation->out, HasSubstr(folder->path().filename().string()));
  EXPECT_EQ(echoed, invocation->out);
}

TEST(Invocation, WhatCantBeStartedIsAnErrorThatNamesIt) {
  const auto missing = invoke(system_spawner(), {.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no-such-program-anywhere"));
  InvocationSpec nowhere{.argv = {"true"}};
  nowhere.folder = "/no/such/folder";
  const auto folder = invoke(system_spawner(), nowhere);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace assay
