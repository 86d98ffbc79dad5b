// The screen's first lines: the measured study, and the warnings about it.
#include "base/add_once.h"
#include "base/text/listed.h"
#include "report/screen/parts.h"

#include <algorithm>
#include <set>

#include "base/text/counts.h"
#include "base/text/shown_text.h"
#include "report/fitting.h"
#include "report/sections/finding_groups.h"

namespace assay {
namespace {

std::string identity_value(const Findings& findings, const std::string& key) {
  const auto at = std::ranges::find(findings.identity, key,
                                    [](const auto& line) { return std::string_view(line.first); });
  return at == findings.identity.end() ? "" : at->second;
}

// "Intel(R) Xeon(R) Processor (family 6 model 207 stepping 2) x 2" without the brackets' content.
std::string without_brackets(std::string_view name) {
  std::string out;
  size_t depth = 0;
  for (const char c : name) {
    if (c == '(') ++depth;
    if (depth == 0 && !(c == ' ' && out.ends_with(' '))) out += c;
    if (c == ')' && depth > 0) --depth;
  }
  return out;
}

// The devices that the arms ran on: a GPU is an arm's own, the processor the machine's. Native arms
// say more of a GPU than its name, which is the same for arms of other backends.
std::string devices(const Findings& findings) {
  const std::string host = identity_value(findings, "device");
  std::vector<std::string> names;
  for (const std::string& arm : findings.study.arms) {
    std::string device = identity_value(findings, fmt::format("arms.{}.device", arm));
    device = without_brackets(device.empty() ? host : device);
    device.resize(std::min(device.size(), device.find(", compute capability")));
    if (!device.empty()) add_once(names, std::move(device));
  }
  return listed(names);
}

std::string models(const Findings& findings) {
  std::set<std::string> names;
  for (const Stratum& stratum : findings.strata) names.insert(stratum.model);
  if (names.size() > 1) return fmt::format("{} models", names.size());
  return names.empty() ? "" : *names.begin();
}

std::string rows_text(const Findings& findings) {
  int64_t lost = 0;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (!outcome.stratum) lost += outcome.failed;
  }
  const std::string rows = counted(findings.study.rows, "row");
  return lost == 0 ? rows : fmt::format("{}, {} lost", rows, lost);
}

}  // namespace

std::string measured_line(const Findings& findings, size_t width) {
  std::optional<PromptRange> prompts;
  for (const PromptRange& range : findings.prompts) {
    if (!prompts) prompts = range;
    prompts->shortest = std::min(prompts->shortest, range.shortest);
    prompts->longest = std::max(prompts->longest, range.longest);
  }
  std::vector<std::string> names = {shown_line(findings.study.name), shown_line(models(findings)),
                                    shown_line(devices(findings))};
  const auto line = [&] {
    std::vector<std::string> parts = {
        counted(static_cast<int64_t>(findings.study.arms.size()), "arm")};
    if (!names[1].empty()) parts.insert(parts.begin(), names[1]);
    if (prompts) parts.push_back(tokens_text(*prompts) + " prompt tokens");
    parts.push_back(rows_text(findings));
    std::string text = join(parts, ", ");
    if (!names[0].empty()) text = names[0] + ": " + text;
    if (!names[2].empty()) text += "; " + names[2];
    const std::string day =
        findings.study.started_at.substr(0, findings.study.started_at.find('T'));
    if (!day.empty()) text += "; " + shown_line(day);
    return text;
  };
  constexpr size_t kLeastName = 8;
  while (display_width(line()) > width) {
    std::string& widest = *std::ranges::max_element(names, {}, display_width);
    if (display_width(widest) <= kLeastName) break;
    widest = shortened(widest, display_width(widest) - 1);
  }
  return shortened(line(), width);
}

std::string requirement_line(const Findings& findings) {
  if (!findings.requirements) return "";
  const std::vector<Criterion>& all = findings.requirements->criteria;
  const auto names_of = [&](Criterion::Status status) {
    std::vector<std::string> names;
    for (const Criterion& one : all) {
      if (one.status == status) names.push_back(fmt::format("{} {}", one.name, one.expected));
    }
    return names;
  };
  if (findings.requirements->verdict == Requirements::Verdict::kPassed) {
    return all.size() == 1 ? "Requirements PASSED: the only one holds."
                           : fmt::format("Requirements PASSED: all {} hold.", all.size());
  }
  if (findings.requirements->verdict == Requirements::Verdict::kNotDecided) {
    return fmt::format("Requirements NOT DECIDED: none failed, but this run cannot show {}.",
                       findings.study.complete
                           ? join(names_of(Criterion::Status::kNotApplicable), ", ")
                           : "its end");
  }
  const auto failed = names_of(Criterion::Status::kNotMet);
  const auto first = std::ranges::find(all, Criterion::Status::kNotMet, &Criterion::status);
  const std::string others = failed.size() > 1
                                 ? fmt::format(" {} more {} not met.", failed.size() - 1,
                                               failed.size() == 2 ? "is" : "are")
                                 : "";
  return fmt::format("Requirements FAILED: {} is not met: {}.{}", failed.front(), first->reason,
                     others);
}

std::vector<std::string> warning_lines(const Findings& findings) {
  std::vector<std::string> lines;
  for (const FindingGroup& group : finding_groups(findings)) {
    if (group.worst->severity == Severity::kWarning) lines.push_back(group_line(findings, group));
  }
  return lines;
}

std::vector<std::string> warning_kinds(const Findings& findings) {
  std::vector<std::string> kinds;
  for (const FindingGroup& group : finding_groups(findings)) {
    if (group.worst->severity == Severity::kWarning) kinds.push_back(shown_line(group.worst->kind));
  }
  return kinds;
}

}  // namespace assay
