// Findings from the file or from the rows.
#include "gates/bundle_findings.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "analysis/analyze.h"
#include "analysis/rows/summary.h"

namespace assay {
namespace {

bool same_study(const StudySummary& a, const StudySummary& b) {
  return a.name == b.name && a.baseline == b.baseline && a.arms == b.arms && a.order == b.order &&
         a.seed == b.seed && a.started_at == b.started_at && a.complete == b.complete &&
         a.rows == b.rows;
}

// Written with every digit; the sum may be made in another order.
bool same_figure(const std::optional<double>& found, double expected) {
  return found && std::abs(*found - expected) <= 1e-9 * std::abs(expected);
}

bool same_latency(const Latency& latency, const Group& group) {
  const auto n = std::ssize(group.sorted_ms);
  if (latency.n != n || latency.parity_failed != group.parity_failed) return false;
  if (n == 0) return !latency.mean;
  const double sum = std::accumulate(group.sorted_ms.begin(), group.sorted_ms.end(), 0.0);
  return same_figure(latency.mean, sum / static_cast<double>(n)) &&
         same_figure(latency.min, group.sorted_ms.front()) &&
         same_figure(latency.max, group.sorted_ms.back());
}

std::string place(const Samples& samples, const Group& group) {
  const Stratum& stratum = samples.strata[group.stratum];
  return fmt::format("{} in {} at {}", samples.arms[group.arm], phase_name(stratum.phase),
                     prompt_name(stratum));
}

using PlaceOfArm = std::pair<size_t, std::string>;

}  // namespace

std::string disagreement(const Findings& findings, const Bundle& bundle, const Samples& samples) {
  if (!same_study(findings.study, summarize(bundle))) return "they are of another study or run";
  if (findings.identity != identity_lines(bundle.manifest)) return "they are of another identity";
  if (findings.strata != samples.strata) return "they are of other strata";
  std::map<PlaceOfArm, const Latency*> latencies;
  for (const Latency& latency : findings.latencies) {
    latencies[PlaceOfArm{latency.stratum, latency.arm}] = &latency;
  }
  std::map<PlaceOfArm, const OutcomeCounts*> outcomes;
  for (const OutcomeCounts& outcome : findings.outcomes) {
    if (outcome.stratum) outcomes[PlaceOfArm{*outcome.stratum, outcome.arm}] = &outcome;
  }
  if (latencies.size() != samples.groups.size() || outcomes.size() != samples.groups.size()) {
    return "they are of other cells";
  }
  for (const Group& group : samples.groups) {
    const PlaceOfArm key{group.stratum, samples.arms[group.arm]};
    const auto latency = latencies.find(key);
    const auto outcome = outcomes.find(key);
    if (latency == latencies.end() || outcome == outcomes.end()) return "they are of other cells";
    if (outcome->second->attempted != std::ssize(group.rows) ||
        outcome->second->failed != group.failed() || !same_latency(*latency->second, group)) {
      return fmt::format("their figures of {} aren't those of its rows", place(samples, group));
    }
  }
  return "";
}

Result<BundleFindings> findings_of_bundle(const Bundle& bundle, const Samples& samples,
                                          ThreadPool* pool) {
  BundleFindings result;
  if (auto read = read_findings(bundle.folder)) {
    result.why_anew = disagreement(*read, bundle, samples);
    if (result.why_anew.empty()) {
      result.findings = *std::move(read);
      result.from_file = true;
      return result;
    }
  } else {
    std::error_code unknown;  // the reader of the bundle has reported it
    const bool there = std::filesystem::exists(bundle.folder / "analysis/findings.json", unknown);
    result.why_anew = there ? read.error().message : "there is no analysis/findings.json";
  }
  ASSAY_TRY(result.findings, analyze(bundle, AnalysisOptions{}, pool));
  return result;
}

Result<Findings> findings_against(Bundle bundle, const std::string& arm,
                                  const std::optional<Phase>& phase, ThreadPool* pool) {
  if (phase) std::erase_if(bundle.rows, [&](const Row& row) { return row.phase != *phase; });
  bundle.manifest["study"]["baseline"] = arm;
  return analyze_contrasts(bundle, AnalysisOptions{}, pool);
}

}  // namespace assay
