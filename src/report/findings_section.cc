// Named findings: the worst of each kind in the summary, all of them with their rows in full.
#include <algorithm>

#include "base/text.h"
#include "report/sections.h"

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

std::string place(const Findings& findings, const Finding& finding, bool with_stratum) {
  std::string text;
  if (finding.phase) text += fmt::format(" {}", phase_name(*finding.phase));
  if (with_stratum && finding.stratum) {
    text += " " + stratum_label(findings, *finding.stratum);
  }
  if (!finding.arm.empty()) text += " " + finding.arm;
  return text;
}

std::string_view severity_name(Severity severity) {
  return severity == Severity::kWarning ? "warning" : "note";
}

std::string full_line(const Findings& findings, const Finding& finding) {
  std::string line = fmt::format("{}: {}{}: {}", severity_name(finding.severity), finding.kind,
                                 place(findings, finding, true), finding.text);
  for (const auto& [cell, repetitions] : finding.rows) {
    line += fmt::format(" (rows {}: {})", cell, ranges(repetitions));
  }
  return line;
}

// Good news has no size, and is gathered over phases too.
bool alike(const Finding& a, const Finding& b) {
  const bool same_phase = a.phase == b.phase || (a.size == 0 && b.size == 0);
  return a.kind == b.kind && a.severity == b.severity && same_phase && a.arm == b.arm &&
         a.stratum && b.stratum;
}

// Findings of one kind, phase and arm as one line about the worst of them.
std::vector<std::string> summary_lines(const Findings& findings) {
  std::vector<std::pair<const Finding*, size_t>> groups;
  for (const Finding& finding : findings.named) {
    const auto group =
        std::ranges::find_if(groups, [&](const auto& g) { return alike(*g.first, finding); });
    if (group == groups.end()) {
      groups.emplace_back(&finding, 1);
    } else {
      ++group->second;
      if (finding.size > group->first->size) group->first = &finding;
    }
  }
  std::vector<std::string> lines;
  for (const auto& [worst, count] : groups) {
    std::string line = fmt::format("{}: {}", severity_name(worst->severity), worst->kind);
    if (count == 1) {
      line += place(findings, *worst, true);
    } else if (worst->size > 0) {
      line += fmt::format("{} on {} strata, worst {}", place(findings, *worst, false), count,
                          stratum_label(findings, *worst->stratum));
    } else {
      line += fmt::format(" {} on {} strata, such as {} {}", worst->arm, count,
                          phase_name(*worst->phase), stratum_label(findings, *worst->stratum));
    }
    lines.push_back(fmt::format("{}: {}", line, worst->text));
  }
  return lines;
}

}  // namespace

ReportSection findings_section(const Findings& findings, Detail detail) {
  ReportSection section{"Findings", {}, {}};
  if (findings.named.empty()) {
    section.lines.emplace_back("None of the named defects was found.");
  } else if (detail == Detail::kSummary) {
    section.lines = summary_lines(findings);
  } else {
    for (const Finding& finding : findings.named) {
      section.lines.push_back("- " + full_line(findings, finding));
    }
  }
  return section;
}

}  // namespace assay
