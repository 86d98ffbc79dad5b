// Groups findings of one kind, with the number of cells that they are about.
#include "report/sections/finding_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text/counts.h"
#include "report/sections/sections.h"

namespace assay {
namespace {

// "7 of 60 cells", "2 of 15 strata", "1 time", "3 times".
std::string count_text(const Findings& findings, const FindingGroup& group) {
  if (group.cells > 0) {
    return fmt::format("{} of {}", group.cells, counted(findings.latencies.size(), "cell"));
  }
  if (group.strata > 0) {
    return fmt::format("{} of {}", group.strata,
                       counted(findings.strata.size(), "stratum", "strata"));
  }
  return counted(group.findings, "time");
}

}  // namespace

std::vector<FindingGroup> finding_groups(const Findings& findings) {
  std::vector<FindingGroup> groups;
  std::map<std::pair<std::string, Severity>, size_t> place;
  std::vector<std::set<std::pair<size_t, std::string>>> cells;
  for (const Finding& finding : findings.named) {
    const auto [at, is_new] = place.try_emplace({finding.kind, finding.severity}, groups.size());
    if (is_new) {
      groups.push_back({&finding});
      cells.emplace_back();
    }
    FindingGroup& group = groups[at->second];
    ++group.findings;
    if (finding.size > group.worst->size) group.worst = &finding;
    if (!finding.stratum) continue;
    if (cells[at->second].emplace(*finding.stratum, finding.arm).second) {
      ++(finding.arm.empty() ? group.strata : group.cells);
    }
  }
  return groups;
}

std::string finding_place(const Findings& findings, const Finding& finding) {
  std::string text;
  if (finding.phase) text += fmt::format(" {}", phase_name(*finding.phase));
  if (finding.stratum) text += " " + stratum_label(findings, *finding.stratum);
  if (!finding.arm.empty()) text += " " + finding.arm;
  return text;
}

std::string group_line(const Findings& findings, const FindingGroup& group) {
  const Finding& worst = *group.worst;
  std::string place = finding_place(findings, worst);
  if (group.findings > 1) {
    // Good news has no size, so that none of it is the worst.
    place = fmt::format(" {}, {}:{}", count_text(findings, group),
                        worst.size > 0 ? "worst" : "first", place);
    if (place.ends_with(':')) place.pop_back();
  }
  if (place.empty()) return fmt::format("{}: {}", worst.kind, worst.text);
  return fmt::format("{} ({}): {}", worst.kind, place.substr(1), worst.text);
}

}  // namespace assay
