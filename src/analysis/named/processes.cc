// Finds cells whose worker processes differ from one another.
#include <cmath>

#include "analysis/named/named.h"
#include "base/text/counts.h"

namespace assay {
namespace {

// Share by which an interval gets narrower when `share` of its variance stays as it is and the rest
// is halved.
double gain(double share) {
  return 1 - std::sqrt(share + (1 - share) / 2);
}

}  // namespace

void find_processes_that_differ(const Samples& samples, const std::vector<Latency>& latencies,
                                const AnalysisOptions& options, std::vector<Finding>& findings) {
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    const Latency& latency = latencies[g];
    if (!latency.processes_p_holm || *latency.processes_p_holm >= options.alpha) continue;
    const auto n = static_cast<double>(latency.n);
    if (!latency.n_effective || n < kNotableLoss * *latency.n_effective) continue;
    const double rows = n / static_cast<double>(latency.processes);
    // Share of the mean's variance that more rows of the same processes leave as it is.
    const double of_mean = rows * *latency.intraclass / (1 + (rows - 1) * *latency.intraclass);
    Finding finding = about("processes_differ", Severity::kNote, samples, samples.groups[g]);
    finding.size = *latency.intraclass;
    finding.text = fmt::format(
        "{:.0f} % of the rows' variance lies between the {} (p = {}, Holm-adjusted): {} have an "
        "effective sample size of {:.0f}; twice the repetitions would make an interval {:.0f} % "
        "narrower, twice the processes {:.0f} %",
        100 * *latency.intraclass, counted(latency.processes, "worker process", "worker processes"),
        format_significant(*latency.processes_p_holm, 2), counted(latency.n, "warm row"),
        *latency.n_effective, gain(of_mean) * 100, gain(0) * 100);
    add_rows(finding, samples.groups[g].warm);
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
    Finding finding = about_phase("one_process", Severity::kNote, phase);
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
