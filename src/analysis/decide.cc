// Which arm to take on each stratum, and when the data don't say.
#include <algorithm>

#include "analysis/contrast.h"

namespace assay {
namespace {

struct Candidate {
  size_t group = 0;
  double mean = 0;
};

// The leader of one stratum and its contrasts with the others, in the order of their means.
struct Race {
  Decision decision;
  std::vector<Contrast> rivals;
};

Race race(const Samples& samples, const Resampled& resampled, size_t stratum,
          const AnalysisOptions& options) {
  Race result;
  result.decision.stratum = stratum;
  std::vector<Candidate> candidates;
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Group& group = samples.groups[g];
    const bool comparable =
        reasons_against(group, options).empty() &&
        (candidates.empty() || same_prompts(samples.groups[candidates[0].group], group));
    if (comparable) {
      candidates.push_back({g, *stats::mean(group.warm_ms)});
    } else {
      result.decision.left_out.push_back(samples.arms[group.arm]);
    }
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::mean);
  if (candidates.empty()) return result;
  result.decision.kind = Decision::Kind::kOnlyOne;
  result.decision.arm = samples.arms[samples.groups[candidates[0].group].arm];
  for (size_t i = 1; i < candidates.size(); ++i) {
    result.rivals.push_back(
        contrast_pair(samples, resampled, candidates[0].group, candidates[i].group, options));
  }
  return result;
}

void settle(Race& race) {
  if (race.rivals.empty()) return;
  Decision& decision = race.decision;
  const Contrast& next = race.rivals[0];
  decision.runner_up = next.baseline;
  decision.ratio = next.ratio;
  decision.ratio_interval = next.ratio_interval;
  decision.kind = Decision::Kind::kBest;
  for (const Contrast& rival : race.rivals) {
    if (rival.verdict == Verdict::kFaster) continue;
    decision.tied.push_back(rival.baseline);
    const bool equivalent = rival.verdict == Verdict::kEquivalent;
    if (!equivalent) {
      decision.kind = Decision::Kind::kUndecided;
    } else if (decision.kind == Decision::Kind::kBest) {
      decision.kind = Decision::Kind::kNoDifference;
    }
  }
}

}  // namespace

std::vector<Decision> decide(const Samples& samples, const Resampled& resampled,
                             const AnalysisOptions& options) {
  std::vector<Race> races;
  for (size_t stratum = 0; stratum < samples.strata.size(); ++stratum) {
    races.push_back(race(samples, resampled, stratum, options));
  }
  for (const Phase phase : kPhases) {
    std::vector<Contrast*> family;
    for (Race& one : races) {
      if (samples.strata[one.decision.stratum].phase != phase) continue;
      for (Contrast& rival : one.rivals) family.push_back(&rival);
    }
    adjust_and_judge(family, options);
  }
  std::vector<Decision> decisions;
  for (Race& one : races) {
    settle(one);
    decisions.push_back(std::move(one.decision));
  }
  return decisions;
}

}  // namespace assay
