// Findings about compilation itself: limits, fallbacks, labels without proof, and compiling once.
#include <algorithm>
#include <map>

#include "analysis/lenient.h"
#include "analysis/named.h"
#include "base/text.h"
#include "stats/summary.h"

namespace assay {
namespace {

std::string ms(double value) {
  return format_significant(value) + " ms";
}

// "kv_len failed 8 times": the guard that most recompiles came from.
std::string guard_text(const CompileEvidence& evidence) {
  std::map<std::string, int64_t> failed;
  for (const Recompile& recompile : evidence.recompiles) ++failed[recompile.guard];
  if (failed.empty()) return "";
  const auto most =
      std::ranges::max_element(failed, {}, [](const auto& one) { return one.second; });
  return fmt::format(" (guard {} failed {} times)", most->first, most->second);
}

bool hit_limit(const Group& group) {
  return group.evidence && group.evidence->counter("recompile_limit_hits") > 0;
}

// The first of the rows from which on all ran eager; the end if there is none.
auto eager_for_good(const Group& group) {
  auto first = group.timed.end();
  while (first != group.timed.begin() && ran_eager(**(first - 1))) --first;
  return first;
}

std::optional<double> median_ms(const std::vector<const Row*>& rows) {
  return stats::median(stats::sorted(latencies_ms(rows)));
}

void find_limit(const Samples& samples, const Group& group, std::vector<Finding>& findings) {
  if (!hit_limit(group)) return;
  const auto first = eager_for_good(group);
  if (first == group.timed.end()) return;
  std::vector<const Row*> before;
  std::vector<const Row*> after;
  for (const Row* row : group.warm) {
    if (carries_compilation(*row)) continue;
    (row->order_index < (*first)->order_index ? before : after).push_back(row);
  }
  Finding finding = about("recompile_limit", Severity::kWarning, samples, group);
  const std::string guard = guard_text(*group.evidence);
  if (!before.empty() && !after.empty()) {
    finding.text = fmt::format(
        "the recompile limit was hit{}: eager from repetition {} on; p50 {} before, {} after",
        guard, (*first)->repetition, ms(*median_ms(before)), ms(*median_ms(after)));
    finding.size = *median_ms(after) / *median_ms(before);
  } else {
    const bool at_once = first == group.timed.begin() && !carries_compilation(**first);
    finding.text = fmt::format("the recompile limit was hit{}: eager {}", guard,
                               at_once ? "from the first row on, the limit being used up before"
                                       : "in every timed row, the limit being hit in the warm-ups");
    if (const auto p50 = median_ms(after)) finding.text += fmt::format("; p50 {}", ms(*p50));
  }
  add_rows(finding, {first, group.timed.end()});
  findings.push_back(std::move(finding));
}

std::string fallback_reason(const Group& group) {
  if (!group.evidence) return "no evidence says why";
  const CompileEvidence& evidence = *group.evidence;
  if (!evidence.fallback_error.empty()) {
    return fmt::format("{} (whole in cells/{}/evidence.json)", first_line(evidence.fallback_error),
                       group.rows.front()->cell_id);
  }
  if (hit_limit(group)) return "the recompile limit";
  return evidence.reasons.empty() ? "no evidence says why" : join(evidence.reasons, "; ");
}

void find_fallback(const Samples& samples, const Group& group, std::vector<Finding>& findings) {
  const Execution execution = group.execution();
  const bool other_mode = execution == Execution::kOtherMode;
  const bool ran_eager_too = execution == Execution::kFellBack || execution == Execution::kPartly;
  if (!other_mode && !ran_eager_too) return;
  Finding finding = about("fallback", Severity::kWarning, samples, group);
  if (other_mode) {
    finding.size = 1;
    finding.text = fmt::format("asked for {}, ran as {}: {}", group.rows.front()->compile_mode,
                               group.evidence->fallback, fallback_reason(group));
    add_rows(finding, group.warm);
    findings.push_back(std::move(finding));
    return;
  }
  for (const Row* row : group.warm) {
    if (!ran_eager(*row)) continue;
    finding.size += 1 / static_cast<double>(group.warm.size());
    add_row(finding, *row);
  }
  const auto count =
      std::ranges::count_if(group.warm, [](const Row* row) { return ran_eager(*row); });
  const std::string rows =
      count > 0 ? fmt::format("{} of {} timed rows", count, group.warm.size())
                : std::string(execution == Execution::kFellBack ? "its rows" : "some of its runs");
  finding.text = fmt::format("asked for compiled, {} ran eager: {}", rows, fallback_reason(group));
  findings.push_back(std::move(finding));
}

void find_unearned_label(const Samples& samples, const Group& group,
                         std::vector<Finding>& findings) {
  const Execution execution = group.execution();
  const bool label_only = execution == Execution::kLabelOnly;
  if (!label_only && execution != Execution::kUnproven) return;
  Finding finding =
      about(label_only ? "label_only" : "unproven_compiler", Severity::kWarning, samples, group);
  finding.size = 1;
  finding.text = label_only ? "asked for compiled, and no compiler was called"
                            : "asked for compiled, and nothing proves that it was";
  if (group.evidence && !group.evidence->reasons.empty()) {
    finding.text += ": " + join(group.evidence->reasons, "; ");
  }
  findings.push_back(std::move(finding));
}

void find_stable(const Samples& samples, const Group& group, std::vector<Finding>& findings) {
  if (group.execution() != Execution::kCompiled || group.warm.empty()) return;
  int64_t before = 0;
  for (const Row* row : group.timed) {
    if (!row->unique_graphs_delta || !row->recompiles_delta) return;
    if (!row->cold && carries_compilation(*row)) return;
    before += row->cold ? *row->unique_graphs_delta : 0;
  }
  Finding finding = about("stable_compile", Severity::kNote, samples, group);
  const std::string made = before == 0   ? "compiled beforehand"
                           : before == 1 ? "compiled once, in the warm-ups"
                                         : fmt::format("{} graphs made in the warm-ups", before);
  finding.text = fmt::format("{}, and 0 recompiles in the {} timed rows", made, group.warm.size());
  findings.push_back(std::move(finding));
}

}  // namespace

void find_compilation(const Samples& samples, std::vector<Finding>& findings) {
  for (const Group& group : samples.groups) {
    if (!group.wants_compiler || group.timed.empty()) continue;
    find_unearned_label(samples, group, findings);
    find_limit(samples, group, findings);
    find_fallback(samples, group, findings);
    find_stable(samples, group, findings);
  }
}

}  // namespace assay
