// Processes of the run and of others, by a driver and a process table that the tests make.
#include "harness/gpu_watch.h"

#include <gtest/gtest.h>

#include "identity/fake_machine.h"

namespace assay {
namespace {

constexpr pid_t kSelf = 100;
constexpr int64_t kStart_ns = 1'000'000'000'000;

class ListedGpus final : public GpuSensors {
 public:
  std::vector<GpuInfo> list() override { return {}; }
  GpuState read(const std::string&) override { return {}; }
  std::optional<std::vector<GpuProcess>> processes(const std::string& uuid) override {
    if (uuid != "GPU-1") return std::nullopt;
    auto found = listed;
    if (!ending.empty()) found.insert(found.end(), ending.begin(), ending.end());
    ending.clear();
    return found;
  }
  std::optional<std::vector<GpuUse>> uses_since(const std::string&, int64_t since_us) override {
    std::vector<GpuUse> later;
    for (const GpuUse& use : uses) {
      if (use.at_us > since_us) later.push_back(use);
    }
    return later;
  }
  std::vector<GpuProcess> listed;
  std::vector<GpuProcess> ending;  // listed once more
  std::vector<GpuUse> uses;
};

class GpuWatchTest : public testing::Test {
 protected:
  void process(int64_t pid, int64_t parent) {
    machine_.put(fmt::format("/proc/{}/stat", pid),
                 fmt::format("{} (a) b) S {} 1 1\n", pid, parent));
  }
  std::vector<GpuNeighbour> unit() {
    watch_.begin("GPU-1", kStart_ns);
    watch_.look();
    return watch_.end();
  }
  FakeMachine machine_;
  ListedGpus gpus_;
  GpuWatch watch_{gpus_, machine_.files(), kSelf};
};

TEST_F(GpuWatchTest, ProcessesOfTheRunAreNoNeighbours) {
  process(kSelf, 1);
  process(101, kSelf);
  process(102, 101);
  gpus_.listed = {{kSelf, "assay", 1}, {101, "sh", 2}, {102, "python", 3}};
  gpus_.uses = {{102, kStart_ns / 1000 + 1, 1.0}};
  EXPECT_TRUE(unit().empty());
}

TEST_F(GpuWatchTest, AnotherProgramHasItsShareOfTheWindows) {
  process(kSelf, 1);
  process(101, kSelf);
  process(7, 1);
  process(8, 1);
  gpus_.listed = {{101, "assay", 1}, {7, "train", 500}, {8, "serve", {}}};
  const int64_t start = kStart_ns / 1000;
  gpus_.uses = {{7, start - 300'000, 1.0},  // long before the unit
                {7, start - 100'000, 0.9},
                {101, start + 100'000, 1.0},
                {7, start + 300'000, 0.6}};
  const auto found = unit();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].pid, 7);
  EXPECT_EQ(found[0].process, "train");
  EXPECT_EQ(found[0].memory_bytes, 500u);
  EXPECT_DOUBLE_EQ(found[0].share, 0.5);
  EXPECT_EQ(found[1].share, 0) << "it holds memory";
  EXPECT_FALSE(found[1].memory_bytes);
  gpus_.listed.pop_back();
  EXPECT_EQ(unit().size(), 1u) << "neighbours are a unit's";
}

TEST_F(GpuWatchTest, AProcessOfTheRunThatEndsIsStillItsOwn) {
  process(kSelf, 1);
  process(101, kSelf);
  gpus_.listed = {{101, "assay", 1}};
  watch_.begin("GPU-1", kStart_ns);
  machine_.put("/proc/101/stat", "");
  EXPECT_TRUE(watch_.end().empty());
  gpus_.listed.clear();
  gpus_.ending = {{102, "assay", 1}};  // never seen alive
  EXPECT_TRUE(unit().empty());
}

// A driver may number processes as another namespace does.
TEST_F(GpuWatchTest, NumbersThatThisNamespaceDoesNotShowCountOnceOneOfTheRunWasListed) {
  process(kSelf, 1);
  process(101, kSelf);
  gpus_.listed = {{90001, "train", 1}};
  EXPECT_TRUE(unit().empty()) << "it may be this run's worker";
  gpus_.listed.push_back({101, "assay", 1});
  const auto found = unit();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, 90001);
}

TEST_F(GpuWatchTest, ADriverThatTellsNothingNamesNobody) {
  watch_.begin("GPU-2", kStart_ns);
  EXPECT_TRUE(watch_.end().empty());
}

}  // namespace
}  // namespace assay
