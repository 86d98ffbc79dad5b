// Runs of one study, one behind the other.
#include "routing/merge.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/arm_facts.h"
#include "analysis/compare/environment_facts.h"
#include "analysis/compare/identity_axes.h"
#include "analysis/rows/summary.h"
#include "artifact/each_once.h"
#include "artifact/manifest.h"
#include "base/process/thread_pool.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

Status check_same_study(const Bundle& first, const Bundle& other) {
  const StudySummary a = summarize(first);
  const StudySummary b = summarize(other);
  const auto refuse = [&](const char* what, const std::string& expected, const std::string& found) {
    return bad_input("{}: expected a run of {}'s study, found another {} ({} beside {})",
                     other.folder.string(), first.folder.string(), what, quoted_excerpt(found),
                     quoted_excerpt(expected));
  };
  if (a.name != b.name) return refuse("study", a.name, b.name);
  if (a.baseline != b.baseline) return refuse("baseline", a.baseline, b.baseline);
  if (a.arms != b.arms) return refuse("list of arms", join(a.arms, ", "), join(b.arms, ", "));
  const std::string plan_a = text_member(first.manifest, "plan_sha256");
  const std::string plan_b = text_member(other.manifest, "plan_sha256");
  if (!plan_a.empty() && !plan_b.empty() && plan_a != plan_b) return refuse("plan", plan_a, plan_b);
  const auto differences = identity_differences(first, other);
  if (differences.empty()) return {};
  const AxisDifference& one = differences.front();
  const auto shown = [](const std::string& value) {
    return value.empty() ? "nothing" : quoted_excerpt(value);
  };
  return bad_input(
      "{}: expected the identity of {}, found another {}{} (expected {}, found {}); a policy is "
      "for "
      "one identity",
      other.folder.string(), first.folder.string(), one.axis,
      one.about.empty() ? "" : " of " + one.about, shown(one.base), shown(one.cand));
}

// Numbers from which a run's own numbers are counted on.
struct RunOffsets {
  int64_t process = 0;
  int64_t repetition = 0;
  int64_t block = 0;
  int64_t order = 0;
};

RunOffsets behind(const std::vector<Row>& rows, const RunOffsets& before) {
  RunOffsets next = before;
  for (const Row& row : rows) {
    next.process = std::max(next.process, row.process.value_or(before.process) + 1);
    next.repetition = std::max(next.repetition, row.repetition + 1);
    next.block = std::max(next.block, row.block + 1);
    next.order = std::max(next.order, row.order_index + 1);
  }
  return next;
}

void count_on(Row& row, const RunOffsets& by) {
  row.process = row.process.value_or(0) + by.process;
  if (row.repetition >= 0) row.repetition += by.repetition;
  row.block += by.block;
  row.order_index += by.order;
}

void merge_evidence(std::map<std::string, Evidence>& all, std::map<std::string, Evidence> more,
                    const RunOffsets& by) {
  for (auto& [cell, evidence] : more) {
    for (EvidenceProcess& process : evidence.processes) process.process += by.process;
    if (evidence.reported_by) *evidence.reported_by += by.process;
    const auto [at, fresh] = all.try_emplace(cell, evidence);
    if (fresh) continue;
    // The counts of every run's processes are looked at, whichever run's verdict stands.
    std::vector<EvidenceProcess> processes = at->second.processes;
    processes.insert(processes.end(), evidence.processes.begin(), evidence.processes.end());
    if (claim_rank(evidence.compiler_real) < claim_rank(at->second.compiler_real)) {
      at->second = std::move(evidence);
    }
    at->second.processes = std::move(processes);
  }
}

bool parity_passed(const Json& record) {
  const Json& passed = member(record, "passed");
  return passed.is_boolean() && passed.get<bool>();
}

void merge_parity(std::map<std::string, Json>& all, std::map<std::string, Json> more) {
  for (auto& [cell, record] : more) {
    const auto [at, fresh] = all.try_emplace(cell, record);
    // A record without a verdict is the reader's to refuse, so it isn't hidden either.
    if (!fresh && parity_passed(at->second) && !parity_passed(record)) at->second = record;
  }
}

}  // namespace

Result<Bundle> merge_runs(std::vector<Bundle> bundles) {
  if (bundles.empty()) return bad_input("route: expected a bundle, found none");
  for (const Bundle& bundle : bundles) {
    if (bundle.rows.empty()) {
      return bad_input("{}: expected rows, found none", bundle.folder.string());
    }
    ASSAY_CHECK(check_same_study(bundles.front(), bundle));
  }
  size_t rows = 0;
  for (const Bundle& bundle : bundles) rows += bundle.rows.size();
  Bundle merged = std::move(bundles.front());
  if (bundles.size() == 1) return merged;
  merged.rows.reserve(rows);
  RunOffsets offsets;
  for (Row& row : merged.rows) row.process = row.process.value_or(0);
  offsets = behind(merged.rows, offsets);
  for (size_t i = 1; i < bundles.size(); ++i) {
    Bundle& bundle = bundles[i];
    for (Row& row : bundle.rows) count_on(row, offsets);
    merge_evidence(merged.evidence, std::move(bundle.evidence), offsets);
    offsets = behind(bundle.rows, offsets);
    for (Sitting& sitting : bundle.sittings) {
      sitting.rows_before += std::ssize(merged.rows);
      merged.sittings.push_back(std::move(sitting));
    }
    merged.rows.insert(merged.rows.end(), std::make_move_iterator(bundle.rows.begin()),
                       std::make_move_iterator(bundle.rows.end()));
    merge_parity(merged.parity, std::move(bundle.parity));
    merged.complete = merged.complete && bundle.complete;
    bundle = Bundle();
  }
  return merged;
}

Result<Bundle> read_runs(const std::vector<std::string>& folders) {
  ASSAY_CHECK(check_each_once("route", folders));
  std::vector<std::optional<Result<Bundle>>> read(folders.size());
  std::vector<RunMark> marks(folders.size());
  ThreadPool pool(std::min(available_cpus(), std::max<size_t>(1, folders.size())));
  pool.parallel_for(folders.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      read[i] = read_bundle_or_rows(folders[i]);
      if (*read[i]) marks[i] = run_mark(**read[i]);
    }
  });
  std::vector<Bundle> bundles;
  for (auto& each : read) {
    ASSAY_TRY(Bundle bundle, *std::move(each));
    bundles.push_back(std::move(bundle));
  }
  ASSAY_TRY(Bundle merged, merge_runs(std::move(bundles)));
  ASSAY_CHECK(check_distinct_runs("route", marks));
  return merged;
}

std::vector<std::pair<std::string, std::string>> policy_identity(const Bundle& bundle) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::set<std::string> names;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty() && names.insert(name).second) lines.emplace_back(name, value);
  };
  for (const auto& [name, value] : identity_lines(bundle.manifest)) {
    // Another program of the same commit, and more repetitions of the study, change no arm.
    if (name != "assay_version" && name != "plan_sha256") add(name, value);
  }
  for (const auto& [axis, members] : environment_facts(bundle.environment)) {
    for (const auto& [name, value] : members) {
      add(name.empty() ? axis : fmt::format("{}.{}", axis, name), value);
    }
  }
  const auto joined = [](const std::set<std::string>& values) {
    return join(std::vector<std::string>(values.begin(), values.end()), ", ");
  };
  for (const auto& [arm, facts] : arm_facts(bundle)) {
    const std::string prefix = fmt::format("arms.{}.", arm);
    for (const auto& [axis, values] : facts.axes) add(prefix + axis, joined(values));
    for (const auto& [axis, members] : facts.parts) {
      for (const auto& [name, values] : members) {
        add(fmt::format("{}{}.{}", prefix, axis, name), joined(values));
      }
    }
  }
  return lines;
}

}  // namespace assay
