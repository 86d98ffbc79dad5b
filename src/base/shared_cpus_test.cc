#include "base/shared_cpus.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace assay {
namespace {

// This thread runs on one CPU alone until the end of the scope.
class OnOneCpu {
 public:
  explicit OnOneCpu(int cpu) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    moved_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OnOneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  bool moved() const { return moved_; }

 private:
  cpu_set_t before_{};
  bool moved_ = false;
};

TEST(SharedCpus, NobodyIsInTheWayOfAThreadThatIsAlone) {
  SharedCpus one(1);
  EXPECT_FALSE(one.crowded(0));
  SharedCpus three(3);
  EXPECT_FALSE(three.crowded(1)) << "the others haven't said where they are";
  EXPECT_FALSE(three.crowded(1)) << "a thread isn't in its own way";
}

TEST(SharedCpus, TwoThreadsOfOneCpuAreInEachOthersWay) {
  const OnOneCpu here(sched_getcpu());
  ASSERT_TRUE(here.moved());
  SharedCpus cpus(2);
  cpus.crowded(0);
  bool second = false;
  std::thread([&] { second = cpus.crowded(1); }).join();  // a thread inherits the CPUs
  EXPECT_TRUE(second);
  EXPECT_TRUE(cpus.crowded(0));
}

TEST(SharedCpus, ThreadsOfTwoCpusAreNot) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  std::vector<int> numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable)) numbers.push_back(cpu);
  }
  if (numbers.size() < 2) GTEST_SKIP() << "one CPU";
  SharedCpus cpus(2);
  {
    const OnOneCpu first(numbers[0]);
    ASSERT_TRUE(first.moved());
    cpus.crowded(0);
  }
  {
    const OnOneCpu second(numbers[1]);
    ASSERT_TRUE(second.moved());
    EXPECT_FALSE(cpus.crowded(1));
  }
  const OnOneCpu same(numbers[0]);
  EXPECT_TRUE(cpus.crowded(1)) << "it has moved to where the first one was";
}

TEST(SpinUntil, EndsWhenItIsDoneOrAfterSoManyRounds) {
  SharedCpus cpus(2);
  int asked = 0;
  EXPECT_TRUE(spin_until(cpus, 0, [&] { return ++asked == 5; }));
  EXPECT_EQ(asked, 5);
  asked = 0;
  EXPECT_FALSE(spin_until(
      cpus, 0, [&] { return ++asked < 0; }, 10));
  EXPECT_EQ(asked, 11) << "once more after the last round";
}

TEST(SpinUntil, LetsTheThreadRunThatItWaitsForOnTheSameCpu) {
  const OnOneCpu here(sched_getcpu());
  ASSERT_TRUE(here.moved());
  SharedCpus cpus(2);
  std::atomic<int> turn = 0;
  constexpr int kTurns = 2000;
  std::thread other([&] {
    for (int i = 1; i < kTurns; i += 2) {
      spin_until(cpus, 1, [&] { return turn == i; });
      turn = i + 1;
    }
  });
  for (int i = 0; i < kTurns; i += 2) {
    spin_until(cpus, 0, [&] { return turn == i; });
    turn = i + 1;
  }
  other.join();
  EXPECT_EQ(turn, kTurns);
}

}  // namespace
}  // namespace assay
