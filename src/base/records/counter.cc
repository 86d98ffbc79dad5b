// Counters by name.
#include "base/records/counter.h"

namespace assay {
namespace {

constexpr bool in_order() {
  for (size_t i = 0; i < kCounters; ++i) {
    if (static_cast<size_t>(kCounterTable[i].counter) != i) return false;
    if ((kCounterTable[i].schema_version > 0) != (i < kDeltaColumns)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::string_view counter_name(Counter counter) {
  return kCounterTable[static_cast<size_t>(counter)].name;
}

std::optional<Counter> parse_counter(std::string_view name) {
  for (const CounterEntry& entry : kCounterTable) {
    if (entry.name == name) return entry.counter;
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
