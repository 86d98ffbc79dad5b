// Reads the evidence's facts that become findings.
#include "analysis/rows/worker_facts.h"

#include <algorithm>
#include <map>
#include <ranges>

#include "base/records/lenient_json.h"
#include "base/text/text.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// A failure outweighs a fallback, which outweighs the gate's reason.
std::string problem(const Evidence& evidence) {
  if (!evidence.failures.empty()) {
    const EvidenceFailure& first = evidence.failures.front();
    return fmt::format("{}: {}", first.error_class, first_line(first.message));
  }
  if (evidence.reported && !evidence.reported->fallback.empty()) {
    return fmt::format("ran as {}: {}", evidence.reported->fallback,
                       first_line(evidence.reported->fallback_error));
  }
  return evidence.gate ? evidence.gate->reason : "";
}

// Evidence of before schema version 3 knows of one process.
void read_preparing(const Evidence& evidence, CompileCost& cost) {
  std::map<int64_t, double> seconds;
  std::map<int64_t, bool> loaded;
  for (const EvidenceProcess& process : evidence.processes) {
    if (!process.prepare_seconds) continue;
    seconds[process.process] = *process.prepare_seconds;
    const Counts counts = process.counters.value_or(Counts());
    loaded[process.process] = count_of(counts, Counter::kKernelsCompiled) == 0 &&
                              count_of(counts, Counter::kKernelsLoaded).value_or(0) > 0;
  }
  if (seconds.empty()) {
    if (evidence.worker) cost.prepare_s = evidence.worker->prepare_seconds;
    return;
  }
  cost.prepare_s = seconds.begin()->second;
  cost.first_loaded = loaded.begin()->second;
  std::vector<double> later;
  for (const double one : seconds | std::views::values | std::views::drop(1)) later.push_back(one);
  std::ranges::sort(later);
  cost.later_processes = std::ssize(later);
  cost.later_prepare_s = stats::median(later);
}

CompileCost read_cost(const Evidence& evidence) {
  CompileCost cost;
  cost.compiler_real = evidence.compiler_real;
  read_preparing(evidence, cost);
  if (evidence.reported) {
    cost.compile_s = evidence.reported->compile_seconds;
    cost.counts = evidence.reported->counts;
  }
  cost.problem = problem(evidence);
  return cost;
}

CellProfile read_profile(const EvidenceProfile& found) {
  CellProfile profile;
  if (!found.summary) {
    profile.missing = found.error ? fmt::format("{}: {}", found.error->error_class,
                                                first_line(found.error->message))
                                  : found.skipped;
    return profile;
  }
  const Json& summary = *found.summary;
  profile.missing = text_member(summary, "problem");
  profile.device = text_member(summary, "device");
  profile.counts = text_member(summary, "counts");
  profile.wall_ns = whole_member(summary, "wall_ns");
  profile.kernels = whole_member(summary, "kernels_launched");
  profile.distinct_kernels = whole_member(summary, "distinct_kernels");
  profile.launch_calls = whole_member(summary, "launch_calls");
  profile.gpu_busy_ns = whole_member(summary, "gpu_busy_ns");
  profile.gpu_gap_ns = whole_member(summary, "gpu_gap_ns");
  profile.copies = whole_member(summary, "copies");
  profile.synchronizations = whole_member(summary, "synchronizations");
  const Json& top = member(summary, "top");
  if (!top.is_array()) return profile;
  for (const Json& entry : top) {
    profile.top.push_back({text_member(entry, "name"), whole_member(entry, "calls").value_or(0),
                           whole_member(entry, "total_ns").value_or(0)});
  }
  return profile;
}

}  // namespace

std::vector<CompileCost> compile_costs(const Samples& samples) {
  std::vector<CompileCost> costs;
  for (const Group& group : samples.groups) {
    if (!group.evidence) continue;
    CompileCost cost = read_cost(*group.evidence);
    const int64_t captures = count_of(cost.counts, Counter::kCudagraphCaptures).value_or(0);
    if (!group.wants_compiler && captures == 0) continue;
    cost.stratum = group.stratum;
    cost.arm = samples.arms[group.arm];
    if (group.parity_cost) cost.parity_compile_s = group.parity_cost->compile_seconds;
    costs.push_back(std::move(cost));
  }
  return costs;
}

std::vector<CellProfile> cell_profiles(const Samples& samples) {
  std::vector<CellProfile> profiles;
  for (const Group& group : samples.groups) {
    if (!group.evidence || !group.evidence->profile) continue;
    CellProfile& profile = profiles.emplace_back(read_profile(*group.evidence->profile));
    profile.stratum = group.stratum;
    profile.arm = samples.arms[group.arm];
  }
  return profiles;
}

}  // namespace assay
