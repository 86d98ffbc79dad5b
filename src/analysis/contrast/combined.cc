// The contrasts of one arm in one phase as one figure.
#include <algorithm>
#include <cmath>

#include "analysis/contrast/contrast.h"
#include "analysis/contrast/estimate.h"
#include "analysis/contrast/process_range.h"
#include "stats/estimates/few_values.h"
#include "stats/power/power.h"
#include "stats/samples/summary.h"

namespace assay {
namespace {

// One stratum of a combined contrast. Null: not resampled.
struct Part {
  PairUnits units;
  std::vector<int64_t> baseline_keys;  // of the baseline's units
  bool paired = false;
  stats::StratumMoments moments;
  const stats::ResampledMean* arm = nullptr;
  const stats::ResampledMean* baseline = nullptr;
};

std::optional<Part> part_of(const ContrastInputs& in, const PairResamples& resampled,
                            const Contrast& contrast, size_t arm) {
  const Group& group = *in.samples.find(*contrast.stratum, arm);
  const Group& base = *in.samples.find(*contrast.stratum, 0);
  const GroupPair pair{in.samples.index_of(group), in.samples.index_of(base)};
  Part part;
  part.units = in.units.pair(pair);
  part.paired = contrast.paired;
  part.baseline_keys = part.paired ? part.units.keys : in.units.series(pair.baseline).keys;
  const auto moments = pair_moments(part.units, part.paired);
  if (!moments) return std::nullopt;
  part.moments = *moments;
  part.moments.widening = contrast.widening;
  part.moments.apart = apart(group, base);
  const auto pointer = [](const auto& mean) { return mean ? &*mean : nullptr; };
  part.arm = pointer(resampled.arm(pair));
  part.baseline = pointer(resampled.baseline(pair));
  return part;
}

// True if every stratum has the same rounds. Those of an interrupted run needn't.
bool have_same_rounds(const std::vector<Part>& parts) {
  return std::ranges::all_of(parts, [&](const Part& part) {
    return part.units.keys == parts[0].units.keys && part.baseline_keys == parts[0].units.keys;
  });
}

// The widening of the stratum that has the largest.
stats::Widening widest(const std::vector<Part>& parts) {
  stats::Widening most;
  for (const Part& part : parts) {
    if (part.moments.widening.error > most.error) most = part.moments.widening;
  }
  return most;
}

std::optional<stats::LogRatio> log_ratio_of_rounds(const std::vector<Part>& parts, bool paired,
                                                   double log_ratio) {
  std::vector<std::vector<UnitShares>> shares;
  for (const Part& part : parts) {
    stats::StratumMoments moments = part.moments;
    moments.widening = {};
    if (!paired) moments.covariance.reset();
    shares.push_back(shares_of(part.units, part.units.keys, part.baseline_keys, moments));
  }
  const auto error = error_of_shares(shares);
  if (!error) return std::nullopt;
  return stats::LogRatio{log_ratio, error->widened(widest(parts))};
}

// The terms of strata that are resampled each by itself.
std::vector<std::vector<stats::LogTerm>> terms_of_strata(const std::vector<Part>& parts) {
  std::vector<std::vector<stats::LogTerm>> independent;
  const double weight = 1 / static_cast<double>(parts.size());
  for (const Part& part : parts) {
    independent.push_back({{part.units.arm, weight}});
    if (!part.paired) independent.emplace_back();
    independent.back().push_back({part.units.baseline, -weight});
  }
  return independent;
}

// The terms of strata whose rounds are resampled together, and with `paired` both arms' alike.
std::vector<std::vector<stats::LogTerm>> terms_of_rounds(const std::vector<Part>& parts,
                                                         bool paired) {
  std::vector<std::vector<stats::LogTerm>> independent(paired ? 1 : 2);
  const double weight = 1 / static_cast<double>(parts.size());
  for (const Part& part : parts) {
    independent.front().push_back({part.units.arm, weight});
    independent.back().push_back({part.units.baseline, -weight});
  }
  return independent;
}

std::optional<stats::Interval> bootstrapped(const std::vector<Part>& parts, bool paired,
                                            bool same_rounds, const AnalysisOptions& options) {
  std::vector<stats::RatioPair> pairs;
  for (const Part& part : parts) {
    if (part.arm == nullptr || part.baseline == nullptr) return std::nullopt;
    pairs.push_back({part.arm, part.baseline});
  }
  if (std::ranges::none_of(parts, &Part::paired) && !same_rounds) {
    return stats::calibrated_ratio_interval(pairs, ratio_bootstrap(options));
  }
  return stats::calibrated_ratio_interval(
      pairs, same_rounds ? terms_of_rounds(parts, paired) : terms_of_strata(parts),
      ratio_bootstrap(options));
}

std::vector<Part> without_widening(std::vector<Part> parts) {
  for (Part& part : parts) part.moments.widening = {};
  return parts;
}

std::optional<stats::LogRatio> log_ratio_of_strata(const std::vector<Part>& parts) {
  std::vector<stats::StratumMoments> each;
  for (const Part& part : parts) each.push_back(part.moments);
  return stats::combined_log_ratio(each);
}

// Factor by which the strata's common part makes the combined error larger. Strata that lack
// different rounds are resampled each by itself, which misses it.
double sharing(const std::vector<Part>& parts, const auto& error_of) {
  const std::vector<Part> plain = without_widening(parts);
  const auto together = error_of(plain);
  const auto apart = log_ratio_of_strata(plain);
  if (!together || !apart || !(apart->error.value > 0)) return 1;
  return std::max(1.0, together->error.value / apart->error.value);
}

// Widening of the combined error by the strata's widenings.
stats::Widening combined_widening(const stats::LogRatio& widened, const std::vector<Part>& parts,
                                  const auto& error_of) {
  const std::optional<stats::LogRatio> independent = error_of(without_widening(parts));
  if (!independent) return {};
  return {widened.error.value / independent->error.value, widened.error.df / independent->error.df,
          0};
}

// The range over rounds of the geometric mean of the strata's ratios, which have the same rounds.
std::optional<stats::Interval> range_of_rounds(const std::vector<Part>& parts, bool paired) {
  const auto side = [&](const auto& means_of) {
    std::vector<double> values(means_of(parts[0].units).size(), 0.0);
    for (const Part& part : parts) {
      const std::vector<double>& means = means_of(part.units);
      for (size_t r = 0; r < values.size(); ++r) {
        values[r] += std::log(means[r]) / static_cast<double>(parts.size());
      }
    }
    for (double& value : values) value = std::exp(value);
    return values;
  };
  return ratio_range(side([](const PairUnits& units) -> auto& { return units.arm_means; }),
                     side([](const PairUnits& units) -> auto& { return units.baseline_means; }),
                     paired);
}

// The geometric mean of the strata's factors: the mean of their ratios lacks so much.
UnseenTail unseen_tail_of(const std::vector<const Contrast*>& parts) {
  double log_factor = 0;
  UnseenTail all;
  for (const Contrast* part : parts) {
    log_factor += std::log(part->unseen_slow_factor) / static_cast<double>(parts.size());
    if (part->unseen_slow_factor > 1) all.is_arms = part->slow_arm == part->arm;
  }
  all.factor = std::exp(log_factor);
  return all;
}

// The geometric mean of the strata's typical ratios, with the error that their intervals' widths
// make on the scale of logarithms; of rounds of processes, as if one round decided them all.
// It has no interval if one of them has none.
std::optional<SpreadRatio> combined_typical(const std::vector<const Contrast*>& parts,
                                            bool of_rounds) {
  double log_ratio = 0;
  double widths = 0;
  const auto strata = static_cast<double>(parts.size());
  bool all_sure = true;  // each has an interval
  for (const Contrast* part : parts) {
    if (!part->typical) return std::nullopt;
    log_ratio += std::log(part->typical->ratio) / strata;
    const auto& interval = part->typical->interval;
    all_sure = all_sure && interval;
    if (!interval) continue;
    const double half = std::log(interval->high / interval->low) / 2;
    widths += of_rounds ? half / strata : half * half / (strata * strata);
  }
  if (!all_sure) return SpreadRatio{std::exp(log_ratio), std::nullopt};
  const double half = of_rounds ? widths : std::sqrt(widths);
  return SpreadRatio{std::exp(log_ratio), stats::exp_of({log_ratio - half, log_ratio + half})};
}

}  // namespace

int64_t lost_strata(const Samples& samples, Phase phase, size_t arm) {
  int64_t lost = 0;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    if (samples.strata[stratum].phase == phase) lost += is_lost(samples, stratum, arm);
  }
  return lost;
}

Contrast combine(const ContrastInputs& in, const PairResamples& resampled,
                 const std::vector<const Contrast*>& parts) {
  Contrast all;
  const Contrast& first = *parts[0];
  all.phase = first.phase;
  all.arm = first.arm;
  all.baseline = first.baseline;
  all.unit = first.unit;
  all.paired = first.paired;
  all.units_arm = first.units_arm;
  all.units_baseline = first.units_baseline;
  all.strata = static_cast<int64_t>(parts.size());
  const size_t arm_index = in.samples.place_of(all.arm);
  all.lost_strata = lost_strata(in.samples, all.phase, arm_index);
  std::vector<Part> strata;
  std::vector<stats::StratumMoments> moments;
  double log_ratio = 0;
  double log_median_ratio = 0;
  for (const Contrast* part : parts) {
    all.n_arm += part->n_arm;
    all.n_baseline += part->n_baseline;
    all.units_arm = std::min(all.units_arm, part->units_arm);
    all.units_baseline = std::min(all.units_baseline, part->units_baseline);
    all.left_out += part->left_out;
    if (part->unit != all.unit) all.unit = ContrastUnit::kRows;
    all.paired = all.paired && part->paired;
    all.one_process = all.one_process || part->one_process;
    ++all.stratum_verdicts[part->verdict];
    log_ratio += std::log(part->ratio) / static_cast<double>(parts.size());
    log_median_ratio += std::log(*part->median_ratio) / static_cast<double>(parts.size());
    auto stratum = part_of(in, resampled, *part, arm_index);
    if (!stratum) continue;
    moments.push_back(stratum->moments);
    strata.push_back(std::move(*stratum));
  }
  all.ratio = std::exp(log_ratio);
  all.median_ratio = std::exp(log_median_ratio);
  if (strata.size() < parts.size()) return all;  // no pair is left of one of them
  const bool processes = all.unit == ContrastUnit::kProcesses;
  const bool same_rounds = processes && have_same_rounds(strata);
  all.typical = combined_typical(parts, processes);
  if (has_few_processes(all) && same_rounds) {
    all.ratio_process_range = range_of_rounds(strata, all.paired);
  }
  const auto error_of = [&](const std::vector<Part>& of) {
    return processes ? log_ratio_of_rounds(of, all.paired, log_ratio) : log_ratio_of_strata(of);
  };
  const std::optional<stats::LogRatio> combined = error_of(strata);
  if (combined) all.widening = combined_widening(*combined, strata, error_of);
  auto interval = bootstrapped(strata, all.paired, same_rounds, in.options);
  if (interval && processes && !same_rounds) {
    interval = stats::stretched(*interval, all.ratio, sharing(strata, error_of));
  }
  all.ratio_interval = widened_ratio(interval, all, all.widening);
  allow_for_unseen(unseen_tail_of(parts), all);
  if (!combined) {
    add_constant_tests(moments, in.options, all);
    return all;
  }
  all.test = stats::log_ratio_test(*combined);
  const double log_margin = std::log1p(in.options.margin);
  all.tost = stats::tost(combined->estimate, combined->error, -log_margin, log_margin);
  const auto smallest =
      stats::minimum_detectable_difference(combined->error, in.options.alpha, in.options.power);
  if (smallest) all.minimum_detectable = std::expm1(*smallest);
  return all;
}

}  // namespace assay
