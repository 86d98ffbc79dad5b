// Bytes over time, with and without those that a cache can hold.
#include "engine/device/step_reads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"

namespace assay::engine {

std::string against_limit(const StepReads& reads, double limit_gb_per_s, std::string_view reader) {
  const auto cache = static_cast<double>(reads.cache_bytes.value_or(0));
  if (reads.fit_cache()) {
    return fmt::format("the {} of a step fit the last-level cache ({}), so memory is no limit",
                       format_bytes(reads.bytes), format_bytes(cache));
  }
  const double share = reads.gb_per_s() / limit_gb_per_s;
  const double of_memory = (reads.bytes - cache) / reads.nanoseconds / limit_gb_per_s;
  if (share <= 1) {
    return fmt::format("{:.0f} % of the {:.2f} GB/s that {} can read", 100 * share, limit_gb_per_s,
                       reader);
  }
  if (reads.cache_bytes && of_memory <= 1) {
    return fmt::format(
        "{:.0f} to 100 % of the {:.2f} GB/s that {} can read: {} of each step's "
        "{} may come from the last-level cache",
        100 * of_memory, limit_gb_per_s, reader, format_bytes(cache), format_bytes(reads.bytes));
  }
  return fmt::format(
      "more than the {:.2f} GB/s that {} read when that was measured afterwards, "
      "so the memory's speed varies",
      limit_gb_per_s, reader);
}

}  // namespace assay::engine
