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
  const bool paired = units.paired(group.stratum);
  return hash_of(paired ? what : fmt::format("{}\n{}", what, samples.arms[group.arm]));
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
          .confidence = kConfidence,
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
    // A constant group's ratio to an arm that varies has an interval, by the other's resamples.
    resampled[g] = constant_mean(samples.groups[g].sorted_ms[0], options);
  }
  return resampled;
}

PairResamples::PairResamples(const Samples& samples, const Units& units, const Resampled& groups,
                             std::span<const GroupPair> pairs, const AnalysisOptions& options,
                             ThreadPool* pool)
    : groups_(groups) {
  std::vector<std::pair<GroupPair, PairUnits>> parts;
  for (const GroupPair& pair : pairs) {
    PairUnits of_pair = units.pair(pair);
    if (!of_pair.whole) parts.emplace_back(pair, std::move(of_pair));
  }
  std::vector<stats::BootstrapSample> all;
  for (const auto& [pair, values] : parts) {
    all.push_back({values.arm, unit_stream(samples, units, samples.groups[pair.arm])});
    all.push_back({values.baseline, unit_stream(samples, units, samples.groups[pair.baseline])});
  }
  auto resampled = stats::resample_means(all, mean_bootstrap(options), pool);
  const auto take = [&](size_t at, size_t g) {
    const Group& group = samples.groups[g];
    if (resampled[at] || !is_constant(group)) return std::move(resampled[at]);
    return std::optional(constant_mean(group.sorted_ms[0], options));
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const GroupPair& pair = parts[i].first;
    pairs_[{pair.arm, pair.baseline}] = {take(2 * i, pair.arm), take(2 * i + 1, pair.baseline)};
  }
}

const PairResamples::Sides* PairResamples::find(const GroupPair& pair) const {
  const auto at = pairs_.find({pair.arm, pair.baseline});
  return at == pairs_.end() ? nullptr : &at->second;
}

const std::optional<stats::ResampledMean>& PairResamples::arm(const GroupPair& pair) const {
  const Sides* sides = find(pair);
  return sides != nullptr ? (*sides)[0] : groups_[pair.arm];
}

const std::optional<stats::ResampledMean>& PairResamples::baseline(const GroupPair& pair) const {
  const Sides* sides = find(pair);
  return sides != nullptr ? (*sides)[1] : groups_[pair.baseline];
}

}  // namespace assay
