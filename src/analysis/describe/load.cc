// Every run by itself, then over the runs.
#include "analysis/describe/load.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "analysis/contrast/process_range.h"
#include "analysis/findings/options.h"
#include "analysis/rows/load.h"
#include "analysis/rows/processes.h"
#include "load/load_run.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

struct Run {
  int64_t process = 0;
  LoadRunFigures figures;
};

std::optional<stats::Interval> interval_over(std::span<const double> units) {
  const auto moments = stats::moments(units);
  if (!moments || std::ssize(units) < kLeastProcessesOfInterval) return std::nullopt;
  return stats::t_interval(moments->mean, stats::error_of_mean(*moments), kConfidence);
}

// Means of the runs of each process; of one process, the runs themselves.
std::vector<double> units_of(const std::vector<Run>& runs, std::span<const double> values) {
  std::map<int64_t, std::vector<double>> by_process;
  for (size_t i = 0; i < runs.size(); ++i) by_process[runs[i].process].push_back(values[i]);
  if (by_process.size() == 1) return {values.begin(), values.end()};
  std::vector<double> units;
  for (const auto& [process, of] : by_process) units.push_back(*stats::mean(of));
  return units;
}

OverRuns over(const std::vector<Run>& runs,
              const std::function<double(const LoadRunFigures&)>& figure) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(figure(run.figures));
  OverRuns result{.mean = *stats::mean(values)};
  result.least = *std::ranges::min_element(values);
  result.most = *std::ranges::max_element(values);
  result.interval = interval_over(units_of(runs, values));
  if (result.interval) result.interval->low = std::max(result.interval->low, 0.0);
  return result;
}

LatencyOverRuns latency_over(const std::vector<Run>& runs,
                             std::optional<LoadSpread> LoadRunFigures::*of) {
  LatencyOverRuns result;
  if (!std::ranges::all_of(runs, [&](const Run& run) { return (run.figures.*of).has_value(); }))
    return result;
  result.mean = over(runs, [&](const LoadRunFigures& figures) { return (figures.*of)->mean; });
  for (const auto& [quantile, into] : {std::pair(&LoadSpread::p50, &LatencyOverRuns::p50),
                                       std::pair(&LoadSpread::p95, &LatencyOverRuns::p95),
                                       std::pair(&LoadSpread::p99, &LatencyOverRuns::p99)}) {
    const auto tells = [&](const Run& run) { return ((*(run.figures.*of)).*quantile).has_value(); };
    if (!std::ranges::all_of(runs, tells)) continue;
    result.*into =
        over(runs, [&](const LoadRunFigures& figures) { return *((*(figures.*of)).*quantile); });
  }
  return result;
}

// Runs that all kept their bounds differ by nothing, which proves little: the number of requests
// says how much.
void widen_share(const LoadFigures& figures, OverRuns& share) {
  const double kept = share.mean * static_cast<double>(figures.requests);
  const auto wilson = stats::wilson_interval(
      std::clamp<int64_t>(std::llround(kept), 0, figures.requests), figures.requests, kConfidence);
  if (!share.interval || !wilson) return;
  share.interval = stats::Interval{std::min(share.interval->low, wilson->low),
                                   std::min(1.0, std::max(share.interval->high, wilson->high))};
}

void judge_bounds(const std::vector<Run>& runs, LoadFigures& figures) {
  figures.within_bounds =
      over(runs, [](const LoadRunFigures& of) { return of.within_bounds.value_or(0); });
  widen_share(figures, *figures.within_bounds);
  figures.good_per_s =
      over(runs, [](const LoadRunFigures& of) { return of.good_per_s.value_or(0); });
  if (2 * figures.growing_runs > figures.runs) {
    figures.kept = BoundsKept::kNo;  // the longer the run, the fewer keep them
  } else if (const auto& interval = figures.within_bounds->interval) {
    figures.kept = interval->low >= kShareToKeep   ? BoundsKept::kYes
                   : interval->high < kShareToKeep ? BoundsKept::kNo
                                                   : BoundsKept::kUndecided;
  }
}

LoadFigures figures_of(const std::vector<Run>& runs, const ServiceBounds& slo) {
  LoadFigures figures;
  figures.runs = std::ssize(runs);
  for (const Run& run : runs) {
    const LoadRunFigures& of = run.figures;
    figures.window_s += of.window.seconds() / static_cast<double>(runs.size());
    figures.requests += of.requests;
    for (const auto& [error_class, count] : of.failed) figures.failed[error_class] += count;
    figures.most_in_flight = std::max(figures.most_in_flight, of.most_in_flight);
    figures.late_p99_ms = std::max(figures.late_p99_ms, of.late_ms->p99.value_or(of.late_ms->most));
    figures.growing_runs += of.queue_grows ? 1 : 0;
  }
  const auto mean_of = [&](double LoadRunFigures::*of) {
    return over(runs, [of](const LoadRunFigures& one) { return one.*of; });
  };
  figures.offered_per_s = mean_of(&LoadRunFigures::offered_per_s);
  figures.requests_per_s = mean_of(&LoadRunFigures::requests_per_s);
  figures.tokens_per_s = mean_of(&LoadRunFigures::tokens_per_s);
  figures.in_flight = mean_of(&LoadRunFigures::in_flight);
  if (std::ranges::all_of(runs, [](const Run& run) { return run.figures.cached.has_value(); })) {
    figures.cached = over(runs, [](const LoadRunFigures& of) { return *of.cached; });
  }
  figures.latency_ms = latency_over(runs, &LoadRunFigures::latency_ms);
  figures.ttft_ms = latency_over(runs, &LoadRunFigures::ttft_ms);
  figures.tpot_ms = latency_over(runs, &LoadRunFigures::tpot_ms);
  figures.itl_ms = latency_over(runs, &LoadRunFigures::itl_ms);
  if (slo.any()) judge_bounds(runs, figures);
  return figures;
}

}  // namespace

LoadSummary describe_load(const Bundle& bundle, const Samples& samples) {
  LoadSummary summary;
  if (bundle.requests.empty()) return summary;
  const LoadOfStudy study = load_of_study(bundle);
  const auto requests = requests_by_run(bundle);
  summary.slo = study.slo;
  for (const Group& group : samples.groups) {
    const Stratum& stratum = samples.strata[group.stratum];
    const auto load = study.offered.find(stratum.scenario);
    if (stratum.phase != Phase::kLoad || load == study.offered.end()) continue;
    std::vector<Run> runs;
    for (const Row* row : group.warm) {
      const auto sent = requests.find({row->cell_id.str(), row->repetition});
      if (sent == requests.end()) continue;
      if (auto figures = load_run_figures(load->second, study.slo, sent->second))
        runs.push_back({process_of(*row), *std::move(figures)});
    }
    if (runs.empty()) {
      LostLoadPoint lost{group.stratum, samples.arms[group.arm], {}};
      for (const Row* row : group.rows) ++lost.runs[row->error_class];
      summary.lost.push_back(std::move(lost));
      continue;
    }
    LoadFigures figures = figures_of(runs, study.slo);
    figures.stratum = group.stratum;
    figures.arm = samples.arms[group.arm];
    figures.point = load->second.point;
    figures.lost_runs = std::ssize(group.rows) - std::ssize(group.timed);
    // A run that the server lost, and one that a queue may have grown in, prove no bound.
    if (figures.kept == BoundsKept::kYes && (figures.lost_runs > 0 || figures.growing_runs > 0))
      figures.kept = BoundsKept::kUndecided;
    summary.points.push_back(std::move(figures));
  }
  return summary;
}

}  // namespace assay
