// Finds cells whose worker processes differ from one another.
#include <algorithm>
#include <cmath>

#include "analysis/named/named.h"
#include "base/text/counts.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// Share by which an interval gets narrower when `share` of its variance stays as it is and the rest
// is halved.
double gain(double share) {
  return 1 - std::sqrt(share + (1 - share) / 2);
}

Finding of_phase(std::string kind, Phase phase) {
  Finding finding;
  finding.kind = std::move(kind);
  finding.severity = Severity::kNote;
  finding.phase = phase;
  return finding;
}

}  // namespace

void find_process_spread(const Samples& samples, const std::vector<Latency>& latencies,
                         std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) {
    std::vector<double> shares;
    int64_t cells = 0;
    int64_t alone = 0;
    for (const Latency& latency : latencies) {
      if (samples.strata[latency.stratum].phase != phase || latency.n == 0) continue;
      ++cells;
      alone += latency.processes == 1;
      if (latency.between_processes) shares.push_back(*latency.between_processes);
    }
    if (cells > 0 && alone == cells) {
      Finding finding = of_phase("one_process", phase);
      finding.text =
          "each arm ran in one worker process, so no interval includes the variance between "
          "processes of one program (processes: 5 measures it)";
      findings.push_back(std::move(finding));
    }
    if (shares.empty()) continue;
    std::ranges::sort(shares);
    const double middle = *stats::median(shares);
    Finding finding = of_phase("process_spread", phase);
    finding.size = middle;
    finding.text = fmt::format(
        "{:.0f} % of the variance of a mean lies between worker processes (median of {}, {:.0f} "
        "to {:.0f} %): twice the repetitions would make intervals {:.0f} % narrower, twice the "
        "processes {:.0f} %",
        middle * 100, counted(shares.size(), "cell"), shares.front() * 100, shares.back() * 100,
        gain(middle) * 100, gain(0) * 100);
    findings.push_back(std::move(finding));
  }
}

}  // namespace assay
