// Each group has a random stream of its own.
#include "analysis/contrast/resampling.h"

namespace assay {

namespace {

uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a, 64 bits
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

std::string name_of(const Stratum& stratum) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", phase_name(stratum.phase), stratum.model,
                     stratum.scenario, stratum.new_tokens, stratum.batch);
}

// Groups of one stream are resampled alike: the same places of each.
uint64_t unit_stream(const Samples& samples, const Units& units, const Group& group) {
  const Stratum& stratum = samples.strata[group.stratum];
  const bool processes = units.of(group.stratum) == ContrastUnit::kProcesses;
  const std::string what = processes ? stratum.model : name_of(stratum);
  return hash_of(units.paired() ? what : fmt::format("{}\n{}", what, samples.arms[group.arm]));
}

stats::ResampledMean constant_mean(double value, const AnalysisOptions& options) {
  stats::ResampledMean constant;
  constant.mean = value;
  constant.replicates.assign(static_cast<size_t>(options.resamples), value);
  return constant;
}

}  // namespace

uint64_t stream_of(const Samples& samples, const Group& group) {
  return hash_of(
      fmt::format("{}\n{}", name_of(samples.strata[group.stratum]), samples.arms[group.arm]));
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

Resampled resample_groups(const Samples& samples, const Units& units,
                          const AnalysisOptions& options, ThreadPool* pool) {
  std::vector<std::vector<double>> values;
  std::vector<stats::BootstrapSample> all;
  values.reserve(samples.groups.size());
  all.reserve(samples.groups.size());
  for (size_t g = 0; g < samples.groups.size(); ++g) {
    values.push_back(unit_values(units.series(g)));
    all.push_back({values.back(), unit_stream(samples, units, samples.groups[g])});
  }
  auto resampled = stats::resample_means(all, mean_bootstrap(options), pool);
  for (size_t g = 0; g < resampled.size(); ++g) {
    if (resampled[g] || !is_constant(samples.groups[g])) continue;
    // Beside an arm that varies it has a ratio whose interval is the other's doing.
    resampled[g] = constant_mean(samples.groups[g].sorted_ms[0], options);
  }
  return resampled;
}

std::optional<stats::ResampledMean> resample_units(const Samples& samples, const Units& units,
                                                   const Group& group,
                                                   std::span<const double> values,
                                                   const AnalysisOptions& options) {
  auto mean =
      stats::resample_mean(values, mean_bootstrap(options), unit_stream(samples, units, group));
  if (mean || !is_constant(group)) return mean;
  return constant_mean(group.sorted_ms[0], options);
}

}  // namespace assay
