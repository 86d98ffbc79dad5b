// Finds runs under load whose figures mean less than they seem to.
#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/named/named.h"
#include "base/records/lenient_json.h"
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

bool is_in_process(const Group& group) {
  return group.rows.front()->backend == "native";
}

// True if the arm asks the server of this very engine.
bool asks_own_server(const Group& group) {
  if (group.evidence == nullptr) return false;
  const Json& server = member(member(group.report().whole, "actual"), "server");
  return text_member(server, "server") == "assay";
}

}  // namespace

void find_server_cost(const Samples& samples, const std::vector<Contrast>& contrasts,
                      std::vector<Finding>& findings) {
  for (const Contrast& contrast : contrasts) {
    if (contrast.phase != Phase::kLoad || !contrast.stratum) continue;
    const Group* own = samples.find(*contrast.stratum, samples.place_of(contrast.baseline));
    const Group* served = samples.find(*contrast.stratum, samples.place_of(contrast.arm));
    double ratio = contrast.ratio;
    std::optional<stats::Interval> between =
        contrast.ratio_interval ? contrast.ratio_interval : contrast.ratio_process_range;
    if (is_in_process(*served)) {
      std::swap(own, served);
      ratio = 1 / ratio;
      if (between) between = stats::Interval{1 / between->high, 1 / between->low};
    }
    if (!is_in_process(*own) || !asks_own_server(*served)) continue;
    Finding finding = about("server_cost", Severity::kNote, samples, *served);
    finding.size = ratio - 1;
    std::string interval;
    if (between) {
      const std::string low = format_significant(between->low, 3);
      const std::string high = format_significant(between->high, 3);
      interval = contrast.ratio_interval ? fmt::format(" [{}, {}]", low, high)
                                         : fmt::format(" (range {} to {})", low, high);
    }
    finding.text = fmt::format(
        "a request over HTTP to the engine's own server takes {} times{} as long as one to the "
        "engine in process ({}): what HTTP, its API and the client add",
        format_significant(ratio, 3), interval, samples.arms[own->arm]);
    findings.push_back(std::move(finding));
  }
}

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
