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

#include "base/records/enum_words.h"
#include "base/records/json.h"

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
  kCachedTokens,
  // The others.
  kCompileNs,       // the column compile_ms_delta
  kFreshCache,      // 0 or 1; the column fresh_cache
  kKernelLaunches,  // evidence alone
};
inline constexpr size_t kDeltaColumns = static_cast<size_t>(Counter::kCachedTokens) + 1;
inline constexpr size_t kCounters = static_cast<size_t>(Counter::kKernelLaunches) + 1;

struct CounterEntry {
  Counter counter;
  std::string_view name;
  int64_t schema_version;  // of the bundle, from which on there is a column NAME_delta; 0: none
};
// In the order of the enum.
inline constexpr std::array<CounterEntry, kCounters> kCounterTable = {{
    {Counter::kUniqueGraphs, "unique_graphs", 1},
    {Counter::kRecompiles, "recompiles", 1},
    {Counter::kKernelsCompiled, "kernels_compiled", 1},
    {Counter::kGraphReplays, "graph_replays", 1},
    {Counter::kFallbacks, "fallbacks", 1},
    {Counter::kGraphBreaks, "graph_breaks", 2},
    {Counter::kRecompileLimitHits, "recompile_limit_hits", 2},
    {Counter::kCudagraphCaptures, "cudagraph_captures", 2},
    {Counter::kCudagraphSkips, "cudagraph_skips", 2},
    {Counter::kFxCacheHits, "fx_cache_hits", 2},
    {Counter::kKernelsLoaded, "kernels_loaded", 4},
    {Counter::kCachedTokens, "cached_tokens", 6},
    {Counter::kCompileNs, "compile_ns", 0},
    {Counter::kFreshCache, "fresh_cache", 0},
    {Counter::kKernelLaunches, "kernel_launches", 0},
}};

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
