// Every arm against the baseline: by stratum, combined over a phase's strata, and the strata where
// no comparison can be made.
#include <algorithm>

#include "analysis/contrast/contrast.h"
#include "analysis/rows/each.h"

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

// Number of the phase's contrasts that can't be made because rows were lost, by arms that have
// others: an arm that lost rows on every stratum claims nothing.
size_t lost_contrasts(const Samples& samples, Phase phase,
                      const std::vector<const Contrast*>& family) {
  size_t lost = 0;
  for (size_t arm = 1; arm < samples.arms.size(); ++arm) {
    const bool any = std::ranges::find(family, samples.arms[arm], &Contrast::arm) != family.end();
    if (any) lost += static_cast<size_t>(lost_strata(samples, phase, arm));
  }
  return lost;
}

void combine_phase(const ContrastInputs& in, const PairResamples& resampled, Phase phase,
                   Findings& findings) {
  const size_t first = findings.combined.size();
  for (const std::string& arm : in.samples.arms) {
    std::vector<const Contrast*> parts;
    for (const Contrast& contrast : findings.contrasts) {
      if (contrast.phase == phase && contrast.arm == arm) parts.push_back(&contrast);
    }
    // Strata that ended at times of their own choosing are no sample of a fixed size together.
    const bool looked_at = std::ranges::any_of(parts, &Contrast::any_look);
    if (parts.empty() || looked_at) continue;
    findings.combined.push_back(combine(in, resampled, parts));
  }
  std::vector<Contrast*> family;
  for (size_t i = first; i < findings.combined.size(); ++i) {
    family.push_back(&findings.combined[i]);
  }
  adjust_and_judge(family, 0, findings.options);
}

}  // namespace

void contrast_with_baseline(const ContrastInputs& in, Findings& findings, ThreadPool* pool) {
  const Samples& samples = in.samples;
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
  const std::vector<PairErrors> errors = errors_of_pairs(samples, in.units, pairs);
  const PairResamples resampled(samples, in.units, in.resampled, pairs, in.options, pool);
  findings.contrasts.resize(pairs.size());
  for_each_index(pairs.size(), pool, [&](size_t i) {
    findings.contrasts[i] = contrast_pair(in, resampled, pairs[i], errors[i]);
  });
  for (const Phase phase : kPhases) {
    std::vector<Contrast*> family;
    for (Contrast& contrast : findings.contrasts) {
      if (contrast.phase == phase) family.push_back(&contrast);
    }
    adjust_and_judge(family, lost_contrasts(samples, phase, {family.begin(), family.end()}),
                     findings.options);
    combine_phase(in, resampled, phase, findings);
  }
}

}  // namespace assay
