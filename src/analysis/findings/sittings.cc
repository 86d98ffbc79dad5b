// Sittings in words.
#include "analysis/findings/sittings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/listed.h"

namespace assay {
namespace {

constexpr size_t kShortValue = 48;

}  // namespace

std::string sitting_rows(const SittingSummary& sitting) {
  if (sitting.rows <= 0) return "no rows";
  return fmt::format("rows {}..{}", sitting.first_row, sitting.first_row + sitting.rows - 1);
}

std::string difference_text(const std::vector<EnvironmentDifference>& differences, size_t most,
                            bool with_values) {
  std::vector<std::string> parts;
  for (const auto& [field, before, now] : differences) {
    const bool shown = with_values && std::max(before.size(), now.size()) <= kShortValue;
    const auto value = [](const std::string& text) { return text.empty() ? "none" : text; };
    parts.push_back(shown ? fmt::format("{} ({}, then {})", field, value(before), value(now))
                          : field);
  }
  return first_listed(parts, most);
}

}  // namespace assay
