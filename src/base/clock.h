// Time behind an interface, so that tests can fake it.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic nanoseconds since an arbitrary start; for durations.
  virtual int64_t monotonic_ns() = 0;
  // Nanoseconds since the Unix epoch; for time stamps, never for durations.
  virtual int64_t wall_ns() = 0;
};

// The machine's clocks; lives as long as the program.
Clock& system_clock();

// The monotonic clock without the virtual call, for timed regions.
int64_t monotonic_now_ns();

// "2026-11-20T10:44:22Z" for nanoseconds since the Unix epoch.
std::string format_utc(int64_t wall_ns);
// True if format_utc() gives this text for some time.
bool is_utc(const std::string& text);

}  // namespace assay
