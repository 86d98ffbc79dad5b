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
    for (const Latency& latency : latencies) {
      if (samples.strata[latency.stratum].phase != phase) continue;
      if (latency.between_processes) shares.push_back(*latency.between_processes);
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

void find_single_processes(const Samples& samples, const std::vector<Latency>& latencies,
                           const std::vector<Contrast>& contrasts, const AnalysisOptions& options,
                           std::vector<Finding>& findings) {
  for (const Phase phase : kPhases) {
    int64_t cells = 0;
    int64_t alone = 0;
    for (const Latency& latency : latencies) {
      if (samples.strata[latency.stratum].phase != phase || latency.n == 0) continue;
      ++cells;
      alone += latency.processes == 1;
    }
    int64_t compared = 0;
    int64_t open = 0;
    for (const Contrast& contrast : contrasts) {
      if (contrast.phase != phase || !contrast.one_process) continue;
      ++compared;
      open += contrast.verdict == Verdict::kInconclusive;
    }
    if (compared == 0 && (cells == 0 || alone < cells)) continue;
    Finding finding = of_phase("one_process", phase);
    const std::string ran = fmt::format(
        "{} of {} ran in one worker process, so no interval of theirs includes what differs "
        "between "
        "processes of one program",
        alone, counted(cells, "cell"));
    if (compared == 0) {
      finding.text = ran;
    } else if (options.allow_single_process) {
      finding.text = ran + "; their rows decide, since --allow-single-process is given";
    } else {
      if (open > 0) finding.severity = Severity::kWarning;
      finding.text = fmt::format(
          "{}: {} of {} stay undecided, as does any ratio between {:.1f} and {:.1f} (processes: 5 "
          "measures the difference; --allow-single-process leaves it out)",
          ran, open, counted(compared, "comparison"), 1 / kMostBetweenProcesses,
          kMostBetweenProcesses);
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace assay
