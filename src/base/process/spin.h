// A wait that looks again and again, for what comes within microseconds.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace assay {

// Leaves the core to its other thread for some tens of cycles.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// True if done() within this time.
template <typename Done>
bool spin(const Done& done, int64_t most_ns) {
  constexpr int kRoundsBetweenLooks = 16;
  int64_t begin_ns = 0;
  for (int round = 1; !done(); ++round) {
    pause_cpu();
    if (round % kRoundsBetweenLooks != 0) continue;
    const int64_t now_ns = monotonic_now_ns();
    if (begin_ns == 0) begin_ns = now_ns;
    if (now_ns - begin_ns >= most_ns) return done();
  }
  return true;
}

}  // namespace assay
