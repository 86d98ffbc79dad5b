// Every arm against the baseline: by stratum, combined over a phase's strata, and the strata where
// no comparison can be made.
#include <algorithm>
#include <cmath>

#include "analysis/contrast.h"
#include "analysis/describe.h"
#include "analysis/each.h"
#include "stats/few_values.h"
#include "stats/power.h"
#include "stats/ratio.h"

namespace assay {
namespace {

std::vector<std::string> reasons_between(const Samples& samples, const Group* group,
                                         const Group* base, const AnalysisOptions& options) {
  if (base == nullptr) return {"unpaired: the baseline was not measured here"};
  if (group == nullptr) return {"unpaired: this arm was not measured here"};
  std::vector<std::string> reasons;
  for (const Group* one : {group, base}) {
    for (const std::string& reason : reasons_against(*one, options)) {
      reasons.push_back(fmt::format("{}: {}", samples.arms[one->arm], reason));
    }
  }
  if (reasons.empty() && !same_prompts(*group, *base)) {
    reasons.emplace_back("unpaired: the arms answered different prompts");
  }
  return reasons;
}

// What the strata's widenings make of the combined error.
stats::Widening combined_widening(const std::optional<stats::LogRatio>& widened,
                                  std::vector<stats::StratumMoments> moments) {
  for (stats::StratumMoments& stratum : moments) stratum.widening = {};
  const auto independent = stats::combined_log_ratio(moments);
  if (!widened || !independent) return {};
  return {widened->error.value / independent->error.value,
          widened->error.df / independent->error.df, 0};
}

// Strata of the phase on which both were measured and that nothing is contrasted on because rows
// were lost or the output differs: whatever befell them is why what is left looks as it does.
int64_t lost_strata(const Samples& samples, Phase phase, size_t arm) {
  int64_t lost = 0;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    if (samples.strata[stratum].phase == phase) lost += is_lost(samples, stratum, arm);
  }
  return lost;
}

// The contrasts of one arm in one phase as one figure; `parts` isn't empty.
Contrast combine(const Samples& samples, const Resampled& resampled,
                 const std::vector<const Contrast*>& parts, const AnalysisOptions& options) {
  Contrast all;
  all.phase = parts[0]->phase;
  all.arm = parts[0]->arm;
  all.baseline = parts[0]->baseline;
  all.strata = static_cast<int64_t>(parts.size());
  const auto arm_index =
      static_cast<size_t>(std::ranges::find(samples.arms, all.arm) - samples.arms.begin());
  all.lost_strata = lost_strata(samples, all.phase, arm_index);
  std::vector<stats::StratumMoments> moments;
  std::vector<stats::RatioPair> pairs;
  double log_ratio = 0;
  double log_median_ratio = 0;
  for (const Contrast* part : parts) {
    const Group& group = *samples.find(*part->stratum, arm_index);
    const Group& base = *samples.find(*part->stratum, 0);
    all.n_arm += part->n_arm;
    all.n_baseline += part->n_baseline;
    ++all.stratum_verdicts[part->verdict];
    log_ratio += std::log(part->ratio) / static_cast<double>(parts.size());
    log_median_ratio += std::log(*part->median_ratio) / static_cast<double>(parts.size());
    moments.push_back({*stats::moments(group.warm_ms), *stats::moments(base.warm_ms),
                       part->widening, apart(group, base)});
    const auto& of_arm = resampled[samples.index_of(group)];
    const auto& of_base = resampled[samples.index_of(base)];
    if (of_arm && of_base) pairs.push_back({&*of_arm, &*of_base});
  }
  all.ratio = std::exp(log_ratio);
  all.median_ratio = std::exp(log_median_ratio);
  const auto combined = stats::combined_log_ratio(moments);
  all.widening = combined_widening(combined, moments);
  if (pairs.size() == parts.size()) {
    all.ratio_interval = widened_ratio(
        stats::calibrated_ratio_interval(pairs, ratio_bootstrap(options)), all, options);
  }
  if (!combined) {
    add_constant_tests(moments, options, all);
    return all;
  }
  all.test = stats::log_ratio_test(*combined);
  const double log_margin = std::log1p(options.margin);
  all.tost = stats::tost(combined->estimate, combined->error, -log_margin, log_margin);
  const auto smallest =
      stats::minimum_detectable_difference(combined->error, options.alpha, options.power);
  if (smallest) all.minimum_detectable = std::expm1(*smallest);
  return all;
}

void combine_phase(const Samples& samples, const Resampled& resampled, Phase phase,
                   Findings& findings) {
  const size_t first = findings.combined.size();
  for (const std::string& arm : samples.arms) {
    std::vector<const Contrast*> parts;
    for (const Contrast& contrast : findings.contrasts) {
      if (contrast.phase == phase && contrast.arm == arm) parts.push_back(&contrast);
    }
    if (parts.empty()) continue;
    findings.combined.push_back(combine(samples, resampled, parts, findings.options));
  }
  std::vector<Contrast*> family;
  for (size_t i = first; i < findings.combined.size(); ++i) {
    family.push_back(&findings.combined[i]);
  }
  adjust_and_judge(family, findings.options);
}

}  // namespace

void contrast_with_baseline(const Samples& samples, const Resampled& resampled, Findings& findings,
                            ThreadPool* pool) {
  std::vector<GroupPair> pairs;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    const Group* base = samples.find(stratum, 0);
    for (size_t arm = 1; arm < samples.arms.size(); ++arm) {
      const Group* group = samples.find(stratum, arm);
      auto reasons = reasons_between(samples, group, base, findings.options);
      if (!reasons.empty()) {
        findings.not_comparable.push_back({stratum, samples.arms[arm], std::move(reasons)});
        continue;
      }
      pairs.push_back({samples.index_of(*group), samples.index_of(*base)});
    }
  }
  const std::vector<stats::Widening> widenings = contrast_widenings(samples, pairs);
  findings.contrasts.resize(pairs.size());
  for_each_index(pairs.size(), pool, [&](size_t i) {
    findings.contrasts[i] =
        contrast_pair(samples, resampled, pairs[i], widenings[i], findings.options);
  });
  for (const Phase phase : kPhases) {
    std::vector<Contrast*> family;
    for (Contrast& contrast : findings.contrasts) {
      if (contrast.phase == phase) family.push_back(&contrast);
    }
    adjust_and_judge(family, findings.options);
    combine_phase(samples, resampled, phase, findings);
  }
}

}  // namespace assay
