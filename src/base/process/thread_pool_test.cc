#include "base/process/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace assay {
namespace {

TEST(ThreadPool, EveryIndexRunsOnce) {
  for (size_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (int round = 0; round < 200; ++round) {
      std::mutex mutex;
      std::multiset<size_t> indexes;
      pool.run([&](size_t i) {
        const std::lock_guard lock(mutex);
        indexes.insert(i);
      });
      ASSERT_EQ(indexes.size(), threads);
      ASSERT_EQ(std::set<size_t>(indexes.begin(), indexes.end()).size(), threads);
      ASSERT_EQ(*indexes.rbegin(), threads - 1);
    }
  }
}

TEST(ThreadPool, ThreadsShareTheIndexesWhereAllCome) {
  ThreadPool pool(2);
  std::set<std::thread::id> ids;
  while (ids.size() < 2) {  // until the worker came before the caller had done both
    std::array<std::thread::id, 2> of;
    pool.run([&](size_t i) { of[i] = std::this_thread::get_id(); });
    ids.insert(of.begin(), of.end());
  }
  EXPECT_TRUE(ids.contains(std::this_thread::get_id())) << "the caller takes part";
}

TEST(ThreadPool, NobodyWaitsForAThreadThatDoesNotCome) {
  std::atomic<bool> may_come = false;
  ThreadPool pool(3, [&] { may_come.wait(false); });
  std::vector<int> done(3);
  std::vector<std::thread::id> by(3);
  pool.run([&](size_t i) {
    ++done[i];
    by[i] = std::this_thread::get_id();
  });
  EXPECT_EQ(done, std::vector<int>(3, 1));
  EXPECT_EQ(by, std::vector<std::thread::id>(3, std::this_thread::get_id()));
  may_come = true;
  may_come.notify_all();
  for (int round = 0; round < 100; ++round) pool.run([&](size_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(3, 101)) << "who comes late does nothing again";
}

// Each stage reads what all shares of the one before have written, in plain memory.
void expect_stages_in_order(ThreadPool& pool, size_t stages, std::vector<size_t>& sums) {
  const size_t shares = pool.size();
  std::vector<std::vector<size_t>> values(stages + 1, std::vector<size_t>(shares, 1));
  pool.run_stages(stages, [&](size_t stage, size_t i) {
    for (const size_t value : values[stage]) values[stage + 1][i] += value;
  });
  sums = values[stages];
}

TEST(ThreadPool, AStageBeginsWhenTheOneBeforeIsDone) {
  for (size_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 300; ++round) {
      constexpr size_t kStages = 10;
      std::vector<size_t> sums;
      expect_stages_in_order(pool, kStages, sums);
      size_t expected = 1;
      for (size_t stage = 0; stage < kStages; ++stage) expected = 1 + threads * expected;
      ASSERT_EQ(sums, std::vector<size_t>(threads, expected)) << threads << " " << round;
    }
    pool.run_stages(0, [](size_t, size_t) { FAIL() << "there is no stage"; });
  }
}

// This thread, and those that it starts, run on one CPU alone until the end of the scope.
class OnOneCpu {
 public:
  OnOneCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OnOneCpu() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

TEST(ThreadPool, ThreadsOfOneCpuDoTheirStages) {
  const OnOneCpu here;
  ThreadPool pool(3);
  std::vector<size_t> sums;
  expect_stages_in_order(pool, 13, sums);
  EXPECT_EQ(sums, std::vector<size_t>(3, 2391484)) << "(3^14 - 1) / 2";
}

// Work of unequal length, so that threads come early, late, or find their share done.
void work_for(uint32_t rounds) {
  std::atomic<uint32_t> done = 0;
  while (done < rounds) ++done;
}

// A call that begins before all of the stage before have returned, or that comes twice, is counted.
struct StageWatch {
  StageWatch(size_t stages, size_t threads)
      : shares(threads), calls(stages * threads), returned(stages) {}
  void call(size_t stage, size_t i, uint32_t rounds) {
    if (stage > 0 && returned[stage - 1] != shares) ++faults;
    if (calls[stage * shares + i]++ != 0) ++faults;
    work_for(rounds);
    ++returned[stage];
  }
  bool whole() const {
    return faults == 0 && std::ranges::all_of(returned, [&](size_t of) { return of == shares; });
  }

  size_t shares;
  std::vector<std::atomic<size_t>> calls, returned;
  std::atomic<size_t> faults = 0;
};

TEST(ThreadPool, RandomStagesOfRandomLengthsAreWhole) {
  std::mt19937 random(20261126);
  const auto below = [&](uint32_t most) { return static_cast<uint32_t>(random() % most); };
  for (int trial = 0; trial < 40; ++trial) {
    ThreadPool pool(1 + below(9));
    for (int run = 0; run < 20; ++run) {
      const size_t stages = below(30);
      const uint32_t most_rounds = 1u << below(14);
      std::vector<uint32_t> rounds(stages * pool.size());
      for (uint32_t& of : rounds) of = below(most_rounds);
      StageWatch watch(stages, pool.size());
      pool.run_stages(stages, [&](size_t stage, size_t i) {
        watch.call(stage, i, rounds[stage * pool.size() + i]);
      });
      ASSERT_TRUE(watch.whole()) << "trial " << trial << ", run " << run;
      work_for(below(most_rounds));  // the workers spin or sleep meanwhile
    }
  }
}

// One share of each stage takes longer than the others spin for: a wake-up that is lost ends in the
// test's time limit.
TEST(ThreadPool, NoWakeUpIsLost) {
  ThreadPool pool(3);
  constexpr size_t kStages = 500;
  std::vector<size_t> done(pool.size());
  pool.run_stages(kStages, [&](size_t stage, size_t i) {
    if (stage % pool.size() == i) work_for(20'000);
    ++done[i];
  });
  EXPECT_EQ(done, std::vector<size_t>(pool.size(), kStages));
}

TEST(ThreadPoolDeathTest, ATaskThatThrowsEndsTheProgram) {
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        // One alone: two at a time may end it by another message.
        pool.run([](size_t i) {
          if (i == 0) throw std::runtime_error("of a task");
        });
      },
      "of a task");
}

// "R" where the thread runs or wants to, "S" where it sleeps.
char state_of(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '?' : text.at(name_end + 2);
}

// Waits until the thread sleeps; false if it has spun for far longer than any wait may.
bool falls_asleep(pid_t thread, pthread_t handle) {
  clockid_t clock{};
  EXPECT_EQ(pthread_getcpuclockid(handle, &clock), 0);
  timespec begin{}, now{};
  clock_gettime(clock, &begin);
  while (state_of(thread) != 'S') {
    clock_gettime(clock, &now);
    if (now.tv_sec - begin.tv_sec > 5) return false;  // of its own CPU time
    std::this_thread::yield();
  }
  return true;
}

TEST(ThreadPool, WhoWaitsLongGivesItsCpuAway) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  const auto caller_tid = static_cast<pid_t>(syscall(SYS_gettid));
  const pthread_t caller_handle = pthread_self();
  bool other_waited = false;  // the worker, for the caller; else the caller for the worker
  std::atomic<pid_t> worker_tid = 0;
  std::atomic<pthread_t> worker_handle = {};
  std::array<bool, 2> slept{};
  while (worker_tid == 0) {
    pool.run([&](size_t) {
      if (std::this_thread::get_id() == caller) return;
      worker_handle = pthread_self();
      worker_tid = static_cast<pid_t>(syscall(SYS_gettid));
    });
  }
  EXPECT_TRUE(falls_asleep(worker_tid, worker_handle)) << "without work";
  for (const size_t busy : {size_t{0}, size_t{1}}) {
    pool.run([&](size_t i) {
      if (i != busy) return;
      other_waited = std::this_thread::get_id() == caller;
      slept[busy] = other_waited ? falls_asleep(worker_tid, worker_handle)
                                 : falls_asleep(caller_tid, caller_handle);
    });
  }
  EXPECT_EQ(slept, (std::array{true, true}));
}

TEST(ThreadPool, RangesCoverEverythingOnceAtMultiplesOfTheGrain) {
  for (size_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (size_t count : {0, 1, 7, 8, 9, 64, 1000}) {
      for (size_t grain : {1, 8, 13, 2000}) {
        auto visits = std::make_unique<std::atomic<int>[]>(count);
        std::atomic<bool> aligned = true;
        pool.parallel_for(count, grain, [&](size_t begin, size_t end) {
          if (begin % grain != 0 || (end % grain != 0 && end != count) || begin >= end) {
            aligned = false;
          }
          for (size_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_TRUE(aligned) << count << " " << grain;
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(visits[i], 1) << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, WhatATaskWroteIsSeenAfterTheRun) {
  ThreadPool pool(4);
  std::vector<int> values(4);  // plain: run() itself must order the accesses
  for (int round = 1; round <= 1000; ++round) {
    pool.run([&](size_t i) { values[i] += 1; });
    ASSERT_EQ(values, std::vector<int>(4, round));
  }
}

TEST(ThreadPool, EachStartedThreadIsPreparedFirst) {
  static thread_local bool this_one_is = false;  // of each thread its own
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> prepared = 0, unprepared = 0, others = 0;
  {
    ThreadPool pool(3, [&] {
      ++prepared;
      this_one_is = true;
    });
    while (others == 0) {
      pool.run([&](size_t) {
        if (std::this_thread::get_id() == caller) return;
        ++others;
        if (!this_one_is) ++unprepared;
      });
    }
    EXPECT_FALSE(this_one_is) << "the caller is prepared by nobody";
  }
  EXPECT_EQ(unprepared, 0);
  EXPECT_EQ(prepared, 2) << "the caller is not a started thread";
}

TEST(ThreadPool, StopsWithoutEverHavingRun) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, ThereIsAtLeastOneCpu) {
  EXPECT_GE(available_cpus(), 1u);
}

}  // namespace
}  // namespace assay
