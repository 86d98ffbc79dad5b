// Description of groups: outcomes and latencies.
#include "analysis/describe/describe.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/contrast/process_range.h"
#include "analysis/contrast/shared_processes.h"
#include "analysis/contrast/verdict.h"
#include "analysis/contrast/widenings.h"
#include "analysis/rows/each.h"
#include "analysis/rows/losses.h"
#include "analysis/rows/processes.h"
#include "stats/distributions/distributions.h"
#include "stats/estimates/few_values.h"
#include "stats/hypotheses/tests.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

void count(OutcomeCounts& outcome, const Group& group) {
  for (const Row* row : group.rows) {
    ++outcome.attempted;
    if (row->status == RowStatus::kOk) continue;
    ++outcome.failed;
    ++outcome.by_status[std::string(row_status_name(row->status))];
    if (!row->error_class.empty()) ++outcome.by_error_class[row->error_class];
  }
}

// Analysis of variance of a group's rows by process.
struct BetweenProcesses {
  double f = 1;     // mean square between over that within
  double df1 = 0;   // of the processes
  double df2 = 0;   // of their rows
  double rows = 1;  // of a process: (n - sum n_i^2 / n) / (processes - 1)
  // Share of a row's variance that lies between processes.
  double intraclass() const { return std::max(0.0, (f - 1) / (f - 1 + rows)); }
};

// Absent: one process, one row each, or rows without spread.
std::optional<BetweenProcesses> describe_processes(const Group& group, Latency& latency) {
  const auto told = [](const Row* row) { return row->process.has_value(); };
  if (!std::ranges::all_of(group.warm, told)) return std::nullopt;
  std::map<int64_t, std::vector<double>> by_process;
  for (size_t i = 0; i < group.warm.size(); ++i) {
    by_process[process_of(*group.warm[i])].push_back(group.warm_ms[i]);
  }
  latency.processes = static_cast<int64_t>(by_process.size());
  double within = 0;
  double between = 0;
  double squares = 0;
  for (const auto& [number, ms] : by_process) {
    const double mean = *stats::mean(ms);
    const auto size = static_cast<double>(ms.size());
    within += stats::variance(ms).value_or(0) * (size - 1);
    between += size * (mean - *latency.mean) * (mean - *latency.mean);
    squares += size * size;
  }
  const auto n = static_cast<double>(group.warm.size());
  BetweenProcesses found;
  found.df1 = static_cast<double>(by_process.size()) - 1;
  found.df2 = n - found.df1 - 1;
  if (found.df1 < 1 || found.df2 < 1 || !(within > 0)) return std::nullopt;
  found.f = between / found.df1 / (within / found.df2);
  found.rows = (n - squares / n) / found.df1;
  latency.intraclass = found.intraclass();
  return found;
}

// Neighbours that are alike within a process make the processes' means differ too, and the rows of
// one less: F is judged without that part. `inflations`: of means by what lies within processes.
void judge_processes(const Samples& samples,
                     std::span<const std::optional<BetweenProcesses>> processes,
                     std::span<const double> inflations, const AnalysisOptions& options,
                     std::vector<Latency>& all) {
  for (const Phase phase : kPhases) {
    std::vector<size_t> family;
    std::vector<std::optional<double>> p;
    for (size_t g = 0; g < all.size(); ++g) {
      if (samples.strata[all[g].stratum].phase != phase || !processes[g]) continue;
      const BetweenProcesses& of = *processes[g];
      const double inflation = std::min(inflations[g], std::max(1.0, of.rows / 2));
      const double alike = inflation * (of.rows - 1) / (of.rows - inflation);
      const auto area = stats::f_upper(of.f / std::max(1.0, alike), of.df1, of.df2);
      family.push_back(g);
      p.push_back(area ? std::optional(area->p) : std::nullopt);
    }
    p = holm_of(p);
    for (size_t i = 0; i < family.size(); ++i) {
      Latency& latency = all[family[i]];
      latency.processes_p_holm = p[i];
      if (!p[i] || *p[i] >= options.alpha || !latency.n_effective) continue;
      const double rows = processes[family[i]]->rows;
      latency.n_effective = static_cast<double>(latency.n) / (1 + (rows - 1) * *latency.intraclass);
    }
  }
}

// Joules and tokens of rows.
struct Energy {
  double joules = 0, tokens = 0;
};

// Tokens that a row's energy is for: of prefill the prompts'.
double energy_tokens(const Row& row) {
  const int64_t tokens =
      row.phase == Phase::kPrefill ? row.prompt_tokens * row.batch : row.tokens.value_or(0);
  return static_cast<double>(tokens);
}

std::optional<stats::Interval> t_interval_of(const std::vector<double>& values) {
  const auto moments = stats::moments(values);
  if (!moments) return std::nullopt;
  return stats::t_interval(moments->mean, stats::error_of_mean(*moments), kConfidence);
}

void describe_energy(const Group& group, Latency& latency) {
  Energy all;
  std::map<int64_t, Energy> by_process;
  std::vector<double> of_rows;
  for (const Row* row : group.warm) {
    const double tokens = energy_tokens(*row);
    if (!row->energy_j || tokens <= 0) continue;
    for (Energy* sum : {&all, &by_process[process_of(*row)]}) {
      sum->joules += *row->energy_j;
      sum->tokens += tokens;
    }
    of_rows.push_back(*row->energy_j / tokens);
  }
  latency.energy_n = std::ssize(of_rows);
  if (of_rows.empty()) return;
  latency.joules_per_token = all.joules / all.tokens;
  if (by_process.size() == 1) {
    latency.joules_interval = t_interval_of(of_rows);
  } else if (std::ssize(by_process) >= kLeastProcessesOfInterval) {
    std::vector<double> of_processes;
    for (const auto& [process, sum] : by_process) of_processes.push_back(sum.joules / sum.tokens);
    latency.joules_interval = t_interval_of(of_processes);
  }
}

// Tokens over time: the harmonic mean of the rows' rates, each row's work weighing the same. Runs
// under load are as long as one another: their mean.
std::optional<double> tokens_per_s(const Group& group) {
  double seconds_a_token = 0;
  if (!group.warm.empty() && group.warm.front()->phase == Phase::kLoad) {
    double sum = 0;
    for (const Row* row : group.warm) sum += row->tokens_per_s.value_or(0);
    return sum / static_cast<double>(group.warm.size());
  }
  for (const Row* row : group.warm) {
    if (!row->tokens_per_s || !(*row->tokens_per_s > 0)) return std::nullopt;
    seconds_a_token += 1 / *row->tokens_per_s;
  }
  if (group.warm.empty()) return std::nullopt;
  return static_cast<double>(group.warm.size()) / seconds_a_token;
}

void describe_cold(const Group& group, Latency& latency) {
  std::vector<double> cold;
  for (const Row* row : group.timed) {
    if (row->cold) cold.push_back(*row->latency_ms);
  }
  latency.cold_n = static_cast<int64_t>(cold.size());
  latency.cold_median = stats::median(stats::sorted(cold));
  if (!cold.empty()) latency.cold_max = *std::ranges::max_element(cold);
  latency.mean_with_cold = stats::mean(latencies_ms(group.timed));
}

void add_losses(const Losses& losses, OutcomeCounts& outcome) {
  outcome.failed_interval = losses.interval();
  outcome.processes = std::ssize(losses.processes);
  outcome.died = losses.died;
  outcome.died_interval = losses.died_interval();
}

}  // namespace

std::vector<OutcomeCounts> describe_outcomes(const Samples& samples) {
  std::map<std::pair<Phase, size_t>, OutcomeCounts> phases;
  std::map<std::pair<Phase, size_t>, Losses> phase_losses;
  std::vector<OutcomeCounts> strata;
  for (const Group& group : samples.groups) {
    const Phase phase = samples.strata[group.stratum].phase;
    OutcomeCounts& whole = phases[{phase, group.arm}];
    OutcomeCounts part;
    for (OutcomeCounts* outcome : {&whole, &part}) {
      outcome->phase = phase;
      outcome->arm = samples.arms[group.arm];
      count(*outcome, group);
    }
    part.stratum = group.stratum;
    const Losses losses = losses_of(group);
    add_losses(losses, part);
    phase_losses[{phase, group.arm}].add(losses);
    strata.push_back(std::move(part));
  }
  std::vector<OutcomeCounts> all;
  for (auto& [key, outcome] : phases) {
    add_losses(phase_losses[key], outcome);
    all.push_back(std::move(outcome));
  }
  for (OutcomeCounts& outcome : strata) all.push_back(std::move(outcome));
  return all;
}

namespace {

// On the scale of logarithms, since a time has no bound above.
std::optional<stats::Interval> t_interval_of_mean(std::span<const double> units,
                                                  const stats::Widening& widening) {
  const auto moments = stats::moments(units);
  if (!moments || !(moments->mean > 0)) return std::nullopt;
  stats::StandardError error = stats::error_of_mean(*moments).widened(widening);
  error.value /= moments->mean;
  const auto factor = stats::t_interval_of_ratio(0, error, kConfidence);
  if (!factor) return std::nullopt;
  return stats::Interval{moments->mean * factor->low, moments->mean * factor->high};
}

}  // namespace

std::vector<Latency> describe_latencies(const ContrastInputs& in, ThreadPool* pool) {
  const Samples& samples = in.samples;
  const Resampled& resampled = in.resampled;
  const AnalysisOptions& options = in.options;
  const std::vector<Dependence> of_rows = group_dependences(samples);
  const std::vector<Dependence> dependence = unit_dependences(samples, in.units, of_rows);
  const std::vector<double> inflations = inflations_within_processes(samples);
  const std::vector<SharedSpread> spreads = spreads_of_groups(samples, in.units);
  std::vector<Latency> all(samples.groups.size());
  std::vector<std::optional<BetweenProcesses>> processes(all.size());
  for_each_index(all.size(), pool, [&](size_t g) {
    const Group& group = samples.groups[g];
    const std::vector<double>& order = group.sorted_ms;
    Latency& latency = all[g];
    latency.stratum = group.stratum;
    latency.arm = samples.arms[group.arm];
    latency.parity_failed = group.parity_failed;
    latency.n = static_cast<int64_t>(order.size());
    latency.mean = stats::mean(group.warm_ms);
    const stats::Widening widening = both(dependence[g].widening, spreads[g].own);
    const UnitSeries& series = in.units.series(g);
    latency.mean_process_range = mean_process_range(in.units.of(group.stratum), series);
    if (latency.mean_process_range && spreads[g].df.value_or(0) >= kLeastFreedomOfInterval) {
      latency.mean_process_range.reset();
      latency.mean_interval = t_interval_of_mean(unit_values(series), widening);
    }
    if (resampled[g] && !is_constant(group)) {
      const auto interval = stats::calibrated_mean_interval(*resampled[g], mean_bootstrap(options));
      if (interval && !latency.mean_process_range && !latency.mean_interval) {
        const auto df = static_cast<double>(series.keys.size() - 1);
        latency.mean_interval = stats::stretched(
            *interval, resampled[g]->mean, stats::interval_widening(df, widening, kConfidence));
      }
      latency.n_effective = static_cast<double>(latency.n) / inflations[g];
      latency.widening = dependence[g].widening.error;
    }
    latency.median = stats::median(order);
    latency.sd = stats::standard_deviation(group.warm_ms);
    latency.p90 = stats::percentile(order, 0.90);
    latency.p95 = stats::percentile(order, 0.95);
    latency.p99 = stats::percentile(order, 0.99);
    if (!order.empty()) {
      latency.min = order.front();
      latency.max = order.back();
    }
    latency.tokens_per_s = tokens_per_s(group);
    describe_energy(group, latency);
    processes[g] = describe_processes(group, latency);
    describe_cold(group, latency);
  });
  judge_processes(samples, processes, inflations, options, all);
  return all;
}

}  // namespace assay
