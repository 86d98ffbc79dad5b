// Description of groups: outcomes and latencies.
#include "analysis/describe.h"

#include <algorithm>

#include "analysis/each.h"
#include "stats/few_values.h"
#include "stats/summary.h"

namespace assay {
namespace {

constexpr double kTrimmedShare = 0.1;

void count(OutcomeCounts& outcome, const Group& group) {
  for (const Row* row : group.rows) {
    ++outcome.attempted;
    if (row->status == RowStatus::kOk) continue;
    ++outcome.failed;
    ++outcome.by_status[std::string(row_status_name(row->status))];
    if (!row->error_class.empty()) ++outcome.by_error_class[row->error_class];
  }
}

// Tokens over time: the harmonic mean of the rows' rates, each row's work weighing the same.
void describe_energy(const Group& group, Latency& latency) {
  double joules = 0, tokens = 0;
  for (const Row* row : group.warm) {
    if (!row->energy_j || row->tokens.value_or(0) <= 0) continue;
    joules += *row->energy_j;
    tokens += static_cast<double>(*row->tokens);
    ++latency.energy_n;
  }
  if (latency.energy_n > 0) latency.joules_per_token = joules / tokens;
}

std::optional<double> tokens_per_s(const Group& group) {
  double seconds_a_token = 0;
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

}  // namespace

uint64_t stream_of(const Samples& samples, const Group& group) {
  const Stratum& stratum = samples.strata[group.stratum];
  const std::string name =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", phase_name(stratum.phase), stratum.model,
                  stratum.scenario, stratum.new_tokens, stratum.batch, samples.arms[group.arm]);
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a, 64 bits
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

std::vector<OutcomeCounts> describe_outcomes(const Samples& samples,
                                             const AnalysisOptions& options) {
  std::map<std::pair<Phase, size_t>, OutcomeCounts> phases;
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
    strata.push_back(std::move(part));
  }
  std::vector<OutcomeCounts> all;
  for (auto& [key, outcome] : phases) all.push_back(std::move(outcome));
  for (OutcomeCounts& outcome : strata) all.push_back(std::move(outcome));
  for (OutcomeCounts& outcome : all) {
    outcome.failed_interval =
        stats::wilson_interval(outcome.failed, outcome.attempted, options.confidence);
  }
  return all;
}

stats::BootstrapOptions mean_bootstrap(const AnalysisOptions& options) {
  return {.resamples = options.resamples,
          .seed = options.seed,
          .confidence = options.confidence,
          .method = stats::BootstrapMethod::kBca};
}

stats::BootstrapOptions ratio_bootstrap(const AnalysisOptions& options) {
  stats::BootstrapOptions bootstrap = mean_bootstrap(options);
  bootstrap.method = stats::BootstrapMethod::kPercentile;
  return bootstrap;
}

std::vector<std::optional<stats::ResampledMean>> resample_groups(const Samples& samples,
                                                                 const AnalysisOptions& options,
                                                                 ThreadPool* pool) {
  std::vector<stats::BootstrapSample> all;
  all.reserve(samples.groups.size());
  for (const Group& group : samples.groups) {
    all.push_back({group.warm_ms, stream_of(samples, group)});
  }
  auto resampled = stats::resample_means(all, mean_bootstrap(options), pool);
  for (size_t g = 0; g < resampled.size(); ++g) {
    if (resampled[g] || !is_constant(samples.groups[g])) continue;
    // Beside an arm that varies it has a ratio whose interval is the other's doing.
    stats::ResampledMean constant;
    constant.mean = samples.groups[g].sorted_ms[0];
    constant.replicates.assign(static_cast<size_t>(options.resamples), constant.mean);
    resampled[g] = std::move(constant);
  }
  return resampled;
}

std::vector<Latency> describe_latencies(
    const Samples& samples, const std::vector<std::optional<stats::ResampledMean>>& resampled,
    const std::vector<Dependence>& dependence, const AnalysisOptions& options, ThreadPool* pool) {
  std::vector<Latency> all(samples.groups.size());
  for_each_index(all.size(), pool, [&](size_t g) {
    const Group& group = samples.groups[g];
    const std::vector<double>& order = group.sorted_ms;
    Latency& latency = all[g];
    latency.stratum = group.stratum;
    latency.arm = samples.arms[group.arm];
    latency.parity_failed = group.parity_failed;
    latency.n = static_cast<int64_t>(order.size());
    latency.mean = stats::mean(group.warm_ms);
    const stats::Widening& widening = dependence[g].widening;
    if (resampled[g] && !is_constant(group)) {
      const auto interval = stats::calibrated_mean_interval(*resampled[g], mean_bootstrap(options));
      if (interval) {
        const auto df = static_cast<double>(latency.n - 1);
        latency.mean_interval =
            stats::stretched(*interval, resampled[g]->mean,
                             stats::interval_widening(df, widening, options.confidence));
      }
      latency.n_effective = static_cast<double>(latency.n) / dependence[g].inflation;
      latency.widening = widening.error;
    }
    latency.median = stats::median(order);
    latency.sd = stats::standard_deviation(group.warm_ms);
    latency.mad = stats::median_absolute_deviation(order);
    latency.trimmed_mean = stats::trimmed_mean(order, kTrimmedShare);
    latency.p90 = stats::percentile(order, 0.90);
    latency.p95 = stats::percentile(order, 0.95);
    latency.p99 = stats::percentile(order, 0.99);
    if (!order.empty()) {
      latency.min = order.front();
      latency.max = order.back();
    }
    latency.tokens_per_s = tokens_per_s(group);
    describe_energy(group, latency);
    if (order.size() > 1) {
      latency.mean_without_first = stats::mean(std::span(group.warm_ms).subspan(1));
    }
    describe_cold(group, latency);
  });
  return all;
}

}  // namespace assay
