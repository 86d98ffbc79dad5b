// The table of the counters' names.
#include "base/counter.h"

#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<Counter, std::string_view>, kCounters> kNames = {{
    {Counter::kUniqueGraphs, "unique_graphs"},
    {Counter::kRecompiles, "recompiles"},
    {Counter::kKernelsCompiled, "kernels_compiled"},
    {Counter::kGraphReplays, "graph_replays"},
    {Counter::kFallbacks, "fallbacks"},
    {Counter::kGraphBreaks, "graph_breaks"},
    {Counter::kRecompileLimitHits, "recompile_limit_hits"},
    {Counter::kCudagraphCaptures, "cudagraph_captures"},
    {Counter::kCudagraphSkips, "cudagraph_skips"},
    {Counter::kFxCacheHits, "fx_cache_hits"},
    {Counter::kKernelsLoaded, "kernels_loaded"},
    {Counter::kCompileNs, "compile_ns"},
    {Counter::kFreshCache, "fresh_cache"},
    {Counter::kKernelLaunches, "kernel_launches"},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kCounters; ++i) {
    if (static_cast<size_t>(kNames[i].first) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::string_view counter_name(Counter counter) {
  return kNames[static_cast<size_t>(counter)].second;
}

std::optional<Counter> parse_counter(std::string_view name) {
  for (const auto& [counter, known] : kNames) {
    if (known == name) return counter;
  }
  return std::nullopt;
}

std::optional<int64_t> count_of(const Counts& counts, Counter counter) {
  const auto at = counts.find(counter);
  return at == counts.end() ? std::nullopt : std::optional(at->second);
}

Json counts_to_json(const Counts& counts) {
  Json json = Json::object();
  for (const auto& [counter, count] : counts) json[std::string(counter_name(counter))] = count;
  return json;
}

Counts counts_from_json(const Json& json) {
  Counts counts;
  if (!json.is_object()) return counts;
  for (const auto& [name, value] : json.items()) {
    const auto counter = parse_counter(name);
    if (!counter || !value.is_number_integer()) continue;
    if (value.is_number_unsigned() ? std::in_range<int64_t>(value.get<uint64_t>())
                                   : value.get<int64_t>() >= 0) {
      counts[*counter] = value.get<int64_t>();
    }
  }
  return counts;
}

}  // namespace assay
