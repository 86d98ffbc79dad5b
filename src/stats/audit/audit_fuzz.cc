// Any bytes as a table of published figures: refused in one line, or audited to finite figures.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stats/audit/published_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::stats;
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = parse_published_table(text, "fuzz");
  if (!table) {
    if (table.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const PublishedTable::Row& row : table->rows) {
    for (const AuditedFigure& figure : audit_row(row.figures)) {
      const bool determined = figure.verdict != Verdict::kNotDetermined;
      if (determined && !figure.range) std::abort();
      if (!determined && figure.recomputed) std::abort();
      if (figure.recomputed && !std::isfinite(*figure.recomputed)) std::abort();
      if (figure.range && !(figure.range->low <= figure.range->high)) std::abort();
    }
  }
  return 0;
}
