// Waiting for another thread of one's own for microseconds, on a machine whose CPUs others use too.
//
// Who spins on the CPU that the other thread needs keeps it from doing what is waited for, until
// the kernel takes the CPU away: milliseconds, once for each wait. So every thread leaves word of
// the CPU that it is on, and one that finds another there yields at once.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <memory>

namespace assay {

class SharedCpus {
 public:
  // Of threads that are numbered from 0.
  explicit SharedCpus(size_t threads);

  // Says where this thread is now, and whether another one was last there. To be asked again after
  // a while: threads move.
  bool crowded(size_t thread);

 private:
  const size_t threads_;
  std::unique_ptr<std::atomic<int>[]> cpus_;  // by thread; -1: not known yet
};

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until done() or, where `rounds` isn't 0, for so many rounds; returns done(). Pauses for the
// first kPausedRounds of them, or not at all where another thread of `cpus` needs this CPU; from
// there on it yields.
template <typename Done>
bool spin_until(SharedCpus& cpus, size_t thread, const Done& done, int rounds = 0) {
  constexpr int kPausedRounds = 4096;
  constexpr int kRoundsBetweenLooks = 64;
  bool yields = false;
  for (int round = 0; !done(); ++round) {
    if (rounds > 0 && round == rounds) return false;
    if (round % kRoundsBetweenLooks == 0) yields = cpus.crowded(thread);
    if (yields || round >= kPausedRounds) {
      sched_yield();
    } else {
      pause_cpu();
    }
  }
  return true;
}

}  // namespace assay
