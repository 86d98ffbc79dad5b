// Named findings: the worst of each kind in the summary, all of them with their rows in full.
#include <algorithm>

#include "base/text/text.h"
#include "report/sections/finding_groups.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

constexpr size_t kRangesShown = 12;

// "0, 3-7, 9": repetitions ascending, runs joined.
std::string ranges(std::vector<int64_t> numbers) {
  std::ranges::sort(numbers);
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (parts.size() == kRangesShown) return join(parts, ", ") + ", ...";
    parts.push_back(end - i > 1 ? fmt::format("{}..{}", numbers[i], numbers[end - 1])
                                : std::to_string(numbers[i]));
    i = end;
  }
  return join(parts, ", ");
}

std::string_view severity_name(Severity severity) {
  return severity == Severity::kWarning ? "warning" : "note";
}

std::string full_line(const Findings& findings, const Finding& finding) {
  std::string line = fmt::format("{}: {}{}: {}", severity_name(finding.severity), finding.kind,
                                 finding_place(findings, finding), finding.text);
  for (const auto& [cell, repetitions] : finding.rows) {
    line += fmt::format(" (rows {}: {})", cell, ranges(repetitions));
  }
  return line;
}

std::vector<std::string> summary_lines(const Findings& findings) {
  std::vector<std::string> lines;
  for (const FindingGroup& group : finding_groups(findings)) {
    lines.push_back(
        fmt::format("{}: {}", severity_name(group.worst->severity), group_line(findings, group)));
  }
  return lines;
}

}  // namespace

ReportSection findings_section(const Findings& findings, Detail detail) {
  ReportSection section{"Findings", {}, {}};
  if (findings.named.empty()) {
    section.lines.emplace_back("None of the named defects was found.");
  } else if (detail != Detail::kFull) {
    section.lines = summary_lines(findings);
  } else {
    for (const Finding& finding : findings.named) {
      section.lines.push_back("- " + full_line(findings, finding));
    }
  }
  return section;
}

}  // namespace assay
