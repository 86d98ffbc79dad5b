// The counters that workers keep while they compile and run. Every counter is named here and
// nowhere else in the program: in a worker's messages, in evidence and in findings by its name, in
// metrics.csv as a column of that name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/enum_words.h"
#include "base/json.h"

namespace assay {

enum class Counter {
  // Those with a column of whole numbers, NAME_delta.
  kUniqueGraphs,
  kRecompiles,
  kKernelsCompiled,
  kGraphReplays,
  kFallbacks,
  kGraphBreaks,
  kRecompileLimitHits,
  kCudagraphCaptures,
  kCudagraphSkips,
  kFxCacheHits,
  kKernelsLoaded,
  // The others.
  kCompileNs,       // the column compile_ms_delta
  kFreshCache,      // 0 or 1; the column fresh_cache
  kKernelLaunches,  // evidence alone
};
inline constexpr size_t kDeltaColumns = static_cast<size_t>(Counter::kKernelsLoaded) + 1;
inline constexpr size_t kCounters = static_cast<size_t>(Counter::kKernelLaunches) + 1;

// docs/worker-protocol.md says what each one counts.
std::string_view counter_name(Counter counter);
std::optional<Counter> parse_counter(std::string_view name);

template <>
struct EnumWords<Counter> {
  static constexpr std::array<Counter, kCounters> kAll = [] {
    std::array<Counter, kCounters> all{};
    for (size_t i = 0; i < kCounters; ++i) all[i] = static_cast<Counter>(i);
    return all;
  }();
  static std::string_view name(Counter counter) { return counter_name(counter); }
};

// Counts that a worker gave; a counter that is missing wasn't counted.
using Counts = std::map<Counter, int64_t>;
std::optional<int64_t> count_of(const Counts& counts, Counter counter);
Json counts_to_json(const Counts& counts);
// The counters of an object that any worker may have written: a member is left out if it is no
// whole number from 0 on, or no counter that this program knows.
Counts counts_from_json(const Json& json);

}  // namespace assay
