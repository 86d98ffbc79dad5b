// One run of any benchmark command: its whole output, its end, and nothing of it left behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/subprocess.h"

namespace assay {

// Most bytes that one invocation may print, stdout and stderr together. One that prints more is
// killed.
inline constexpr size_t kMostOutputBytes = size_t{64} << 20;

struct InvocationSpec {
  std::vector<std::string> argv;  // a program's path is relative to the folder it starts in
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::filesystem::path folder = {};  // empty: this process's
  double timeout_s = 0;               // 0: none
  int interrupt_fd = -1;              // readable once the invocation is to end; -1: never
  // Gets the output as it comes, stdout's and stderr's.
  std::function<void(std::string_view)> echo = {};
};

struct Invocation {
  enum class Stopped { kNo, kTimeout, kFlood, kInterrupted };
  Stopped stopped = Stopped::kNo;  // by us, and why; else it ended by itself
  ChildEnd end;
  std::string out;
  std::string err;
  int64_t started_at_ns = 0;  // wall clock
  double seconds = 0;
};

// The command stays in this process's group, and everything that it leaves running is killed at its
// end, or where this process ends before it (ChildSpec::kept). Errors as Spawner::spawn, and
// bad_input for a folder that isn't there.
Result<Invocation> invoke(Spawner& spawner, const InvocationSpec& spec);

}  // namespace assay
