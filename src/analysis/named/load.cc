// Finds runs under load whose figures mean less than they seem to.
#include <algorithm>

#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "base/text/text.h"

namespace assay {
namespace {

Finding about_point(const char* kind, const Samples& samples, const LoadFigures& point) {
  const Group* const group = samples.find(point.stratum, point.arm);
  Finding finding = about(kind, Severity::kWarning, samples, *group);
  add_rows(finding, group->warm);
  return finding;
}

}  // namespace

void find_load_troubles(const Samples& samples, const LoadSummary& load,
                        std::vector<Finding>& findings) {
  for (const LoadFigures& point : load.points) {
    if (point.growing_runs > 0) {
      Finding finding = about_point("queue_grows", samples, point);
      finding.size = static_cast<double>(point.growing_runs) / static_cast<double>(point.runs);
      finding.text = fmt::format(
          "in {} of {} more requests came than the server ended, {} a second for {}: their "
          "latencies "
          "grow with the run's length and aren't those of a server that keeps up",
          point.growing_runs, counted(point.runs, "run"),
          format_significant(point.offered_per_s.mean, 3),
          format_significant(point.requests_per_s.mean, 3));
      findings.push_back(std::move(finding));
    }
    if (point.failed.empty()) continue;
    int64_t failed = 0;
    std::string classes;
    for (const auto& [error_class, count] : point.failed) {
      failed += count;
      classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", count, error_class);
    }
    Finding finding = about_point("requests_failed", samples, point);
    finding.size = static_cast<double>(failed) / static_cast<double>(point.requests);
    finding.text = fmt::format("{} of {} failed ({}): latencies are of the others alone", failed,
                               counted(point.requests, "request"), classes);
    findings.push_back(std::move(finding));
  }
}

}  // namespace assay
