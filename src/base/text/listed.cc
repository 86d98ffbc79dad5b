// Names and clauses in a row.
#include "base/text/listed.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text/text.h"

namespace assay {

std::string listed(std::span<const std::string> parts, size_t most) {
  if (parts.empty()) return "";
  const bool whole = parts.size() <= most;
  const size_t shown = whole ? parts.size() - 1 : std::max<size_t>(most, 1) - 1;
  const std::string last = whole ? parts.back() : fmt::format("{} more", parts.size() - shown);
  if (shown == 0) return last;
  return fmt::format("{} and {}", join(parts.first(shown), ", "), last);
}

std::string first_listed(std::span<const std::string> parts, size_t most) {
  if (parts.size() <= most) return join(parts, ", ");
  return fmt::format("{} and {} more", join(parts.first(most), ", "), parts.size() - most);
}

}  // namespace assay
