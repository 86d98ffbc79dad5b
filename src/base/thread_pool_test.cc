#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace assay {
namespace {

TEST(ThreadPool, EveryIndexRunsOnceOnAThreadOfItsOwn) {
  for (size_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (int round = 0; round < 200; ++round) {
      std::mutex mutex;
      std::multiset<size_t> indexes;
      std::set<std::thread::id> ids;
      pool.run([&](size_t i) {
        const std::lock_guard lock(mutex);
        indexes.insert(i);
        ids.insert(std::this_thread::get_id());
      });
      ASSERT_EQ(indexes.size(), threads);
      ASSERT_EQ(std::set<size_t>(indexes.begin(), indexes.end()).size(), threads);
      ASSERT_EQ(*indexes.rbegin(), threads - 1);
      ASSERT_EQ(ids.size(), threads);
      ASSERT_TRUE(ids.contains(std::this_thread::get_id())) << "the caller takes part";
    }
  }
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
  std::atomic<int> prepared = 0;
  {
    ThreadPool pool(3, [&] {
      ++prepared;
      this_one_is = true;
    });
    std::array<std::atomic<bool>, 3> seen{};
    pool.run([&](size_t i) { seen[i] = this_one_is; });
    EXPECT_FALSE(seen[0]) << "the caller is prepared by nobody";
    EXPECT_TRUE(seen[1]);
    EXPECT_TRUE(seen[2]);
  }
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
