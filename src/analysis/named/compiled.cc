// Findings about compilation itself: limits, fallbacks, labels without proof, and compiling once.
#include <algorithm>
#include <map>

#include "analysis/named/named.h"
#include "analysis/rows/eager_rows.h"
#include "base/text/counts.h"
#include "base/text/listed.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

std::string compile_ms(double value) {
  return format_significant(value) + " ms";
}

// "kv_len failed 8 times": the guard that most recompiles came from.
std::string guard_text(const Group& group) {
  std::map<std::string, int64_t> failed;
  for (const Recompile& recompile : group.report().recompiles) ++failed[recompile.guard];
  if (failed.empty()) return "";
  const auto most =
      std::ranges::max_element(failed, {}, [](const auto& one) { return one.second; });
  return fmt::format(" (guard {} failed {})", most->first, counted(most->second, "time"));
}

bool hit_limit(const Group& group) {
  return count_of(group.report().counts, Counter::kRecompileLimitHits).value_or(0) > 0;
}

// The first of the rows from which on all had calls that ran eager; the end if there is none.
auto eager_for_good(const Group& group) {
  auto first = group.timed.end();
  while (first != group.timed.begin() && group.ran_eager(**(first - 1))) --first;
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
  const std::string guard = guard_text(group);
  if (!before.empty() && !after.empty()) {
    finding.text = fmt::format(
        "the recompile limit was hit{}: calls ran eager from repetition {} on; p50 was {} before "
        "and {} after",
        guard, (*first)->repetition, compile_ms(*median_ms(before)), compile_ms(*median_ms(after)));
    finding.size = *median_ms(after) / *median_ms(before);
  } else {
    const bool at_once = first == group.timed.begin() && !carries_compilation(**first);
    finding.text =
        fmt::format("the recompile limit was hit{}: calls ran eager {}", guard,
                    at_once ? "from the first row on, because the limit was used up before"
                            : "in every timed row, because the warm-ups hit the limit");
    if (const auto p50 = median_ms(after))
      finding.text += fmt::format("; p50 {}", compile_ms(*p50));
  }
  add_rows(finding, {first, group.timed.end()});
  findings.push_back(std::move(finding));
}

std::string fallback_reason(const Group& group) {
  const WorkerReport& report = group.report();
  if (!report.fallback_error.empty()) {
    return fmt::format("{} (see cells/{}/evidence.json)", first_line(report.fallback_error),
                       group.rows.front()->cell_id);
  }
  if (hit_limit(group)) return "the recompile limit";
  return report.reasons.empty() ? "no evidence says why" : join(report.reasons, "; ");
}

void find_fallback(const Samples& samples, const Group& group, std::vector<Finding>& findings) {
  const Execution execution = group.execution();
  const bool other_mode = execution == Execution::kOtherMode;
  const bool ran_eager_too = execution == Execution::kFellBack || execution == Execution::kPartly;
  if (!other_mode && !ran_eager_too) return;
  Finding finding = about("fallback", Severity::kWarning, samples, group);
  if (other_mode) {
    finding.size = 1;
    finding.text =
        fmt::format("the arm requested {} and ran as {}: {}", group.rows.front()->compile_mode,
                    group.report().fallback, fallback_reason(group));
    add_rows(finding, group.warm);
    findings.push_back(std::move(finding));
    return;
  }
  for (const Row* row : group.warm) {
    if (!group.ran_eager(*row)) continue;
    finding.size += 1 / static_cast<double>(group.warm.size());
    add_row(finding, *row);
  }
  const EagerRows eager = eager_rows(group);
  const std::string what =
      eager.most_calls > 0
          ? fmt::format("calls to be compiled ran eager in {} of {} ({})", eager.rows,
                        counted(eager.timed, "timed row"), eager_calls_text(eager))
          : "the arm requested compilation, but " + shortfall_text(execution, eager);
  finding.text = fmt::format("{}: {}", what, fallback_reason(group));
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
  finding.text = label_only
                     ? "the arm requested compilation, but no compiler was called"
                     : "the arm requested compilation, but nothing proves that it was compiled";
  const std::vector<std::string>& reasons = group.report().reasons;
  if (!reasons.empty()) finding.text += ": " + join(reasons, "; ");
  findings.push_back(std::move(finding));
}

// The cell's kernels would have other constants if it had been measured first, or alone.
void find_order_dependence(const Samples& samples, const Group& group,
                           std::vector<Finding>& findings) {
  const std::vector<std::string>& symbols = group.report().became_symbols;
  if (symbols.empty()) return;
  Finding finding = about("form_depends_on_order", Severity::kWarning, samples, group);
  finding.size = static_cast<double>(symbols.size());
  finding.text = fmt::format(
      "{} became {} because the same process ran other sizes before, so the cell ran on kernels "
      "for any size; measured first it would have run on kernels for its own. dynamic: false or "
      "true makes all cells alike",
      listed(symbols), symbols.size() == 1 ? "a symbol" : "symbols");
  add_rows(finding, group.warm);
  findings.push_back(std::move(finding));
}

void find_stable(const Samples& samples, const Group& group, std::vector<Finding>& findings) {
  if (group.execution() != Execution::kCompiled || group.warm.empty()) return;
  int64_t before = 0;
  for (const Row* row : group.timed) {
    if (!row->counts[Counter::kUniqueGraphs] || !row->counts[Counter::kRecompiles]) return;
    if (!row->cold && carries_compilation(*row)) return;
    before += row->cold ? *row->counts[Counter::kUniqueGraphs] : 0;
  }
  Finding finding = about("stable_compile", Severity::kNote, samples, group);
  const std::string made = before == 0   ? "the arm was compiled beforehand"
                           : before == 1 ? "the arm was compiled once, in the warm-ups"
                                         : fmt::format("the warm-ups compiled {} graphs", before);
  finding.text = fmt::format("{}, and it did not recompile in the {}", made,
                             counted(std::ssize(group.warm), "timed row"));
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
    find_order_dependence(samples, group, findings);
  }
}

}  // namespace assay
