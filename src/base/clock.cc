// The machine's clocks.
#include "base/clock.h"

#include <ctime>

namespace assay {
namespace {

int64_t read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class SystemClock final : public Clock {
 public:
  int64_t monotonic_ns() override { return read_clock(CLOCK_MONOTONIC); }
  int64_t wall_ns() override { return read_clock(CLOCK_REALTIME); }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

int64_t monotonic_now_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

std::string format_utc(int64_t wall_ns) {
  const time_t seconds = wall_ns / 1'000'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool is_utc(const std::string& text) {
  tm parts{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return false;
  const int64_t seconds = timegm(&parts);
  constexpr int64_t kMost = INT64_MAX / 1'000'000'000;
  return seconds >= -kMost && seconds <= kMost && format_utc(seconds * 1'000'000'000) == text;
}

}  // namespace assay
