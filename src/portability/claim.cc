// Claims judged over all regimes.
#include "portability/claim.h"

#include <algorithm>
#include <set>

#include "analysis/compare/compare.h"
#include "base/add_once.h"
#include "base/records/enum_words.h"
#include "base/text/text.h"
#include "portability/claim_points.h"

namespace assay {
namespace {

std::vector<std::string> arms_of_claim(const ConfiguredClaim& claim) {
  return {config_text(claim.arm), config_text(claim.than)};
}

// Axes between the first regime and each one, as far as the claim's arms are concerned.
void add_axes(std::span<const RegimePair> pairs, const std::set<std::string>& models,
              JudgedClaim& claim) {
  const std::vector<std::string> arms = arms_of_claim(claim.claim);
  for (ClaimInRegime& in : claim.regimes) {
    if (in.regime == 0) continue;
    const RegimePair& pair = pair_of(pairs, 0, in.regime);
    for (const std::string& model : models) add_each_once(in.axes, axes_about(pair, arms, model));
    in.unstated = unstated_about(pair, arms);
  }
}

// Those on which it isn't known to agree with the first regime.
std::vector<std::string> kinds_beside_first(const ClaimInRegime& in) {
  std::vector<std::string> axes = in.axes;
  add_each_once(axes, in.unstated);
  return perturbations_of(axes);
}

void judge_states(const PortabilityOptions& options, std::vector<JudgedClaim>& claims,
                  const std::vector<std::vector<PerturbationPoint>>& points) {
  std::vector<JudgedRatio*> family;
  for (size_t c = 0; c < claims.size(); ++c) {
    for (ClaimInRegime& in : claims[c].regimes) {
      const PerturbationPoint& point = points[c][in.regime];
      in.reason = point.lost.empty() ? point.gone : point.lost;
      in.state = !point.lost.empty()   ? ClaimState::kLost
                 : !point.gone.empty() ? ClaimState::kGone
                                       : ClaimState::kUndecided;
      in.ratio = point.ratio;
      family.push_back(&in);
    }
  }
  test_ratios(family, options, false);
  judge_ratios(family, options);
}

void judge_state(bool faster, ClaimInRegime& in) {
  if (in.state != ClaimState::kUndecided || in.decided == Verdict::kInconclusive) return;
  in.state = (in.decided == Verdict::kFaster) == faster ? ClaimState::kHolds : ClaimState::kTurned;
}

// True if some two regimes differ on one kind of axis alone, as far as the claim's arms are
// concerned.
bool has_clean_pair(const JudgedClaim& claim, std::span<const RegimePair> pairs,
                    const std::set<std::string>& models) {
  const std::vector<std::string> arms = arms_of_claim(claim.claim);
  return std::ranges::any_of(pairs, [&](const RegimePair& pair) {
    std::vector<std::string> axes;
    for (const std::string& model : models) add_each_once(axes, axes_about(pair, arms, model));
    return unstated_about(pair, arms).empty() && perturbations_of(axes).size() == 1;
  });
}

void judge_claim(std::span<const Regime> regimes, std::span<const RegimePair> pairs,
                 const std::set<std::string>& models, JudgedClaim& claim) {
  const auto name_of = [&](const ClaimInRegime& in) { return regimes[in.regime].name; };
  const ClaimInRegime& first = claim.regimes.front();
  claim.verdict = ClaimVerdict::kNotDecided;
  if (first.state != ClaimState::kHolds) {
    claim.reason = fmt::format("{} doesn't show the claim{}", name_of(first),
                               first.reason.empty() ? "" : ": " + first.reason);
    if (first.state == ClaimState::kTurned) claim.reason += ": the opposite holds there";
    return;
  }
  for (const ClaimInRegime& in : claim.regimes) {
    if (in.state != ClaimState::kTurned && in.state != ClaimState::kLost) continue;
    claim.verdict = ClaimVerdict::kNotPortable;
    claim.reason = in.state == ClaimState::kTurned
                       ? fmt::format("{} shows the opposite", name_of(in))
                       : fmt::format("{} {}", name_of(in), in.reason);
    return;
  }
  for (const ClaimInRegime& in : claim.regimes) {
    if (in.state == ClaimState::kHolds) continue;
    claim.reason = fmt::format("{} doesn't show the claim{}", name_of(in),
                               in.reason.empty() ? "" : ": " + in.reason);
    return;
  }
  if (!has_clean_pair(claim, pairs, models)) {
    claim.reason = "the claim holds in every bundle, but no two bundles differ on one axis alone";
    std::vector<std::string> unstated;
    for (const ClaimInRegime& in : claim.regimes) add_each_once(unstated, in.unstated);
    if (!unstated.empty()) {
      claim.reason += fmt::format(" (or are known to: {} {} stated)", join(unstated, ", "),
                                  unstated.size() == 1 ? "isn't" : "aren't");
    }
    return;
  }
  claim.verdict = ClaimVerdict::kPortable;
  claim.reason = fmt::format("the claim holds in all {} regimes", regimes.size());
}

}  // namespace

std::string_view claim_state_name(ClaimState state) {
  return word_of(state, {"holds", "turned", "lost", "gone", "undecided"});
}

std::string_view claim_verdict_name(ClaimVerdict verdict) {
  return word_of(verdict, {"portable", "not_portable", "not_decided"});
}

std::vector<JudgedClaim> judge_claims(std::span<const ConfiguredClaim> claims,
                                      std::span<const Regime> regimes,
                                      std::span<const RegimePair> pairs,
                                      std::span<const PortedCondition> conditions,
                                      const PortabilityOptions& options) {
  const ConditionIndex index(conditions);
  std::vector<JudgedClaim> judged;
  std::vector<std::vector<PerturbationPoint>> points;  // by claim and regime
  std::vector<std::set<std::string>> models;
  for (const ConfiguredClaim& claim : claims) {
    JudgedClaim& of = judged.emplace_back();
    of.claim = claim;
    std::vector<ClaimSite> everywhere;
    for (size_t r = 0; r < regimes.size(); ++r) {
      everywhere.push_back({regimes[r].name, r, claim.arm, claim.than, {}});
    }
    ClaimPoints found = claim_points(index, claim.words, everywhere, options);
    std::set<std::string>& of_claim = models.emplace_back();
    for (const Stratum& stratum : found.strata) {
      of.strata.push_back(stratum_text(stratum));
      of_claim.insert(stratum.model);
    }
    for (const auto& [stratum, condition] : index.of(claim.arm)) {
      if (claim_covers(claim.words, stratum)) of_claim.insert(stratum.model);
    }
    for (size_t r = 0; r < regimes.size(); ++r) of.regimes.emplace_back().regime = r;
    add_axes(pairs, of_claim, of);
    points.push_back(std::move(found.points));
  }
  judge_states(options, judged, points);
  for (size_t c = 0; c < judged.size(); ++c) {
    JudgedClaim& of = judged[c];
    const auto& claimed = of.regimes.front().ratio;
    if (of.claim.as_measured && claimed) {
      of.claim.words.relation =
          claimed->log_ratio < 0 ? ClaimRelation::kFaster : ClaimRelation::kSlower;
    }
    for (ClaimInRegime& in : of.regimes) judge_state(of.claim.faster(), in);
    judge_claim(regimes, pairs, models[c], of);
    std::vector<std::vector<std::string>> kinds;
    for (const ClaimInRegime& in : of.regimes) kinds.push_back(kinds_beside_first(in));
    for (auto& [axis, sites] : sites_by_axis(index, of.claim, regimes, kinds)) {
      const ClaimPoints at = claim_points(index, of.claim.words, sites, options);
      RobustnessIndex found = robustness_index(axis, at.points);
      if (sites.size() == 1) {
        found.reason = fmt::format("nothing differs from {} on {} alone", regimes[0].name, axis);
      }
      if (of.regimes.front().state == ClaimState::kTurned) {
        found.index.reset();
        found.interval.reset();
        found.band = found.best = found.worst = RobustnessBand::kInvalid;
        found.reason = fmt::format("{} shows the opposite of the claim", regimes[0].name);
      }
      of.indexes.push_back(std::move(found));
    }
  }
  return judged;
}

}  // namespace assay
