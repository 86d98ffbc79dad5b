// A client against real processes that die, hang, lie and babble: each end has its kind and class.
#include "backend/worker_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "tests/support/places.h"

namespace assay {
namespace {

constexpr double kPatience_s = 60;  // never reached by a worker that is alive
constexpr double kImpatience_s = 0.2;

const WireShape kShape{Phase::kKvDecode, 1, 4, 8};
const WirePrompt kPrompt{{{5, 6, 7}}, {0}};

WorkerLog& shared_log() {
  static WorkerLog log = WorkerLog::create().value();
  return log;
}

ClientResult<WorkerClient> start(const std::string& fault, double timeout_s = kPatience_s,
                                 int interrupt_fd = -1) {
  return WorkerClient::start(system_spawner(), {{built("fake_worker").string(), fault}, {}},
                             shared_log(), interrupt_fd, "test", timeout_s);
}

// The whole conversation up to the samples; the failure, wherever it comes.
ClientResult<int> converse(const std::string& fault, double timeout_s = kPatience_s) {
  auto client = start(fault, timeout_s);
  if (!client) return std::unexpected(client.error());
  const auto loaded = client->load({"model", "", "eager", "static", "", 1, true, {}}, timeout_s);
  if (!loaded) return std::unexpected(loaded.error());
  const auto prepared = client->prepare({kShape, {3}}, timeout_s);
  if (!prepared) return std::unexpected(prepared.error());
  int samples = 0;
  const auto measured = client->measure({kShape, {kPrompt}, {{0, 0}, {1, 0}, {2, 0}}}, timeout_s,
                                        [&](const SampleReply&) { ++samples; });
  if (!measured) return std::unexpected(measured.error());
  client->shutdown(kPatience_s);
  return samples;
}

TEST(WorkerClient, StreamsASampleARepetition) {
  const auto samples = converse("none:never");
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_EQ(*samples, 3);
}

struct Case {
  const char* fault;
  FailureKind kind;
  const char* error_class;

  friend void PrintTo(const Case& tested, std::ostream* out) { *out << tested.fault; }
};

class WorkerEnds : public ::testing::TestWithParam<Case> {};
TEST_P(WorkerEnds, HaveTheirKindAndClass) {
  const auto result = converse(GetParam().fault);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, GetParam().kind) << result.error().message;
  EXPECT_EQ(result.error().error_class, GetParam().error_class);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, WorkerEnds,
    ::testing::Values(Case{"segv:measure:1", FailureKind::kCrash, "SIGSEGV"},
                      Case{"abort:measure:1", FailureKind::kCrash, "SIGABRT"},
                      Case{"exit3:load", FailureKind::kCrash, "exit 3"},
                      Case{"exit0:prepare", FailureKind::kCrash, "exit 0"},
                      Case{"segv:hello", FailureKind::kCrash, "SIGSEGV"},
                      Case{"half:measure:0", FailureKind::kCrash, "exit 3"},
                      Case{"throw:measure:2", FailureKind::kError, "FakeError"},
                      Case{"throw:load", FailureKind::kError, "FakeError"},
                      Case{"oom:measure:0", FailureKind::kOutOfMemory, "FakeOutOfMemory"},
                      Case{"garbage:measure:1", FailureKind::kError, "protocol_error"},
                      Case{"binary:load", FailureKind::kError, "protocol_error"},
                      Case{"array:hello", FailureKind::kError, "protocol_error"},
                      Case{"deep:prepare", FailureKind::kError, "protocol_error"},
                      Case{"huge:measure:0", FailureKind::kError, "protocol_error"},
                      Case{"wrong_id:measure:1", FailureKind::kError, "protocol_error"},
                      Case{"negative:measure:1", FailureKind::kError, "protocol_error"}));

TEST(WorkerClient, AHangIsATimeout) {
  const auto result = converse("hang:measure:1", kImpatience_s);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, FailureKind::kTimeout);
  EXPECT_EQ(result.error().error_class, "timeout");
}

TEST(WorkerClient, KilledFromOutside) {
  const auto result = converse("kill:measure:1");
  ASSERT_FALSE(result);
  // The kernel's count of memory kills is the machine's: another process may have raised it.
  EXPECT_TRUE(result.error().kind == FailureKind::kCrash ||
              result.error().kind == FailureKind::kOutOfMemory);
  EXPECT_EQ(result.error().error_class, "SIGKILL");
}

TEST(WorkerClient, AnErrorReplyKeepsItsWholeMessage) {
  const auto result = converse("throw:measure:0");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "first line\nsecond line");
}

TEST(WorkerClient, SurvivesAnErrorReply) {
  auto client = start("throw:load");
  ASSERT_TRUE(client);
  EXPECT_FALSE(client->load({"m", "", "eager", "static", "", 1, false, {}}, kPatience_s));
  const auto refused = client->prepare({kShape, {3}}, kPatience_s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "expected load first");
}

TEST(WorkerClient, MeasureNeedsItsOwnPreparation) {
  auto client = start("none:never");
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->load({"m", "", "eager", "static", "", 1, false, {}}, kPatience_s));
  ASSERT_TRUE(client->prepare({kShape, {3}}, kPatience_s));
  WireShape other = kShape;
  other.capacity += 1;
  const auto refused =
      client->measure({other, {kPrompt}, {{0, 0}}}, kPatience_s, [](const SampleReply&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error_class, "protocol_error");
}

TEST(WorkerClient, AProgramThatIsNotThere) {
  const auto client = WorkerClient::start(system_spawner(), {{"/no/such/worker"}, {}}, shared_log(),
                                          -1, "test", kPatience_s);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().error_class, "spawn_error");
}

TEST(WorkerClient, AnInterruptEndsTheWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  const auto client = start("hang:hello", kPatience_s, ends[0]);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind, FailureKind::kInterrupted);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace assay
