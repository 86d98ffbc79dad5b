// Gate 5, of several bundles.
#include "gates/regime_gate.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/add_once.h"
#include "base/text/text.h"

namespace assay {
namespace {

// Parts of the host that come with the processor and its machine; its settings (governor, quota,
// huge pages, hypervisor) don't.
bool is_part_of_device(const AxisDifference& difference) {
  constexpr std::array<std::string_view, 5> kParts = {"cpu smt_active", "cpu last_level_cache",
                                                      "cpu sockets", "memory total_bytes",
                                                      "memory numa_nodes"};
  return difference.axis == "host" && std::ranges::find(kParts, difference.about) != kParts.end();
}

bool chooses_interpreter(const AxisDifference& difference) {
  return difference.axis == "environment_variables" && difference.about == "ASSAY_TORCH_PYTHON";
}

std::vector<std::string> own_axes(const std::vector<AxisDifference>& differences) {
  std::set<std::string> present;
  for (const AxisDifference& difference : differences) present.insert(difference.axis);
  const bool device = present.contains("device");
  const bool stack = present.contains("framework_build") || present.contains("code_generator");
  std::vector<std::string> axes;
  for (const AxisDifference& difference : differences) {
    if (device && is_part_of_device(difference)) continue;
    if (stack && chooses_interpreter(difference)) continue;
    add_once(axes, difference.axis);
  }
  return axes;
}

std::string pair_name(const std::vector<BundleFacts>& bundles, const AxisPair& pair) {
  return fmt::format("{} and {}", bundles[pair.first].name, bundles[pair.second].name);
}

std::string difference_line(const std::vector<BundleFacts>& bundles, const AxisPair& pair) {
  const auto at = std::ranges::find(pair.differences, pair.axis, &AxisDifference::axis);
  if (at == pair.differences.end()) return pair_name(bundles, pair);
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("nothing") : excerpt(value);
  };
  return fmt::format("{}: {}{}: {}, {}", pair_name(bundles, pair), at->axis,
                     at->about.empty() ? "" : " of " + at->about, shown(at->base), shown(at->cand));
}

std::string claim_key(const SpeedClaim& claim) {
  return claim_text(claim);
}

// The named claim, or the claims of any bundle's decisions.
std::vector<SpeedClaim> claims_of(const std::vector<BundleFacts>& bundles,
                                  const std::optional<SpeedClaim>& claim) {
  if (claim) return {*claim};
  std::vector<SpeedClaim> claims;
  std::set<std::string> seen;
  for (const BundleFacts& bundle : bundles) {
    for (SpeedClaim& one : claims_of_decisions(bundle.findings)) {
      if (seen.insert(claim_key(one)).second) claims.push_back(std::move(one));
    }
  }
  return claims;
}

// The reason why no pair shows anything, for the pair that differs on the fewest axes.
std::string why_no_pair(const std::vector<BundleFacts>& bundles,
                        const std::vector<AxisPair>& pairs) {
  if (bundles.size() < 2) {
    return "One bundle is one regime. The gate needs a second one that differs on one axis.";
  }
  const AxisPair* nearest = &pairs.front();
  for (const AxisPair& pair : pairs) {
    const bool nearer = nearest->axes.empty() || pair.axes.size() < nearest->axes.size();
    if (!pair.axes.empty() && nearer) nearest = &pair;
  }
  return fmt::format("No two bundles differ on one axis alone: {}: {}.",
                     pair_name(bundles, *nearest), nearest->why_not);
}

GateCheck pairs_check(const std::vector<BundleFacts>& bundles, const std::vector<AxisPair>& pairs) {
  GateCheck check{.name = "regimes",
                  .looked_at = "manifest.json: identity; environment.json; arms' columns"};
  Deciders good;
  std::set<std::string> axes;
  for (const AxisPair& pair : pairs) {
    if (pair.axis.empty()) continue;
    axes.insert(pair.axis);
    good.add(difference_line(bundles, pair));
  }
  if (!good.any()) {
    check.found = why_no_pair(bundles, pairs);
    for (const AxisPair& pair : pairs) {
      if (check.decided_by.size() == kMostDeciding) break;
      check.decided_by.push_back(fmt::format("{}: {}", pair_name(bundles, pair), pair.why_not));
    }
    check.decided_by_more = std::ssize(pairs) - std::ssize(check.decided_by);
    return check;
  }
  const std::string found =
      fmt::format("{} of bundles {} on one axis alone: {}.", counted(good.count(), "pair"),
                  good.count() == 1 ? "differs" : "differ",
                  join(std::vector<std::string>(axes.begin(), axes.end()), ", "));
  return std::move(good).decide(std::move(check), GateVerdict::kPass, found, "");
}

struct BundleIndex {
  StratumFindings findings;
  StratumFindings of_claim;
};

// True if a difference between the pair is about the claim's arms: "fastest" is about every arm.
bool is_about(const AxisPair& pair, const SpeedClaim& claim) {
  if (claim.relation == ClaimRelation::kFastest) return true;
  return std::ranges::any_of(pair.differences, [&](const AxisDifference& one) {
    // A pair that differs in a model has no axis.
    return one.axis == pair.axis && concerns(one, {claim.arm, claim.other}, "");
  });
}

// A claim over several bundles, pair by pair.
class Reproduction {
 public:
  Reproduction(const SpeedClaim& claim, const std::vector<BundleFacts>& bundles,
               const std::vector<BundleIndex>& index)
      : claim_(claim), bundles_(bundles) {
    for (size_t i = 0; i < bundles.size(); ++i) {
      const bool rebased = &bundles[i].findings_for(claim) != &bundles[i].findings;
      findings_.push_back(rebased ? &index[i].of_claim : &index[i].findings);
      answers_.push_back(answer_claim(claim, *findings_[i]));
    }
  }

  ReproducedClaim over(const std::vector<AxisPair>& pairs) {
    ReproducedClaim result{.claim = claim_, .because = {}, .holds = {}};
    for (const ClaimAnswer& answer : answers_) result.holds.push_back(answer.verdict);
    std::string open;
    std::string apart;
    for (const AxisPair& pair : pairs) {
      if (pair.axis.empty()) continue;
      if (std::string why = why_nothing(pair); !why.empty()) {
        apart = std::move(why);
        continue;
      }
      const Said said = of_pair(pair);
      if (said.verdict == GateVerdict::kNotDecided) {
        open = said.because;
        continue;
      }
      result.verdict = said.verdict;
      result.because = said.because;
      if (said.verdict == GateVerdict::kFail) return result;
    }
    if (result.verdict != GateVerdict::kNotDecided) return result;
    result.because = !open.empty()    ? open
                     : !apart.empty() ? apart
                                      : "No two bundles differ on one axis alone.";
    return result;
  }

 private:
  struct Said {
    GateVerdict verdict = GateVerdict::kNotDecided;
    std::string because;
  };

  std::set<Stratum> strata_of(size_t bundle) const {
    std::set<Stratum> strata;
    for (const size_t i : answers_[bundle].strata) {
      strata.insert(findings_[bundle]->findings().strata[i]);
    }
    return strata;
  }

  // Why the pair, though it differs on one axis, shows nothing of this claim; empty: it does.
  std::string why_nothing(const AxisPair& pair) const {
    if (is_about(pair, claim_)) return "";
    return fmt::format("Its arms are alike in {}: only other arms differ on {}.",
                       pair_name(bundles_, pair), pair.axis);
  }

  Said of_pair(const AxisPair& pair) const {
    for (const size_t side : {pair.first, pair.second}) {
      if (answers_[side].verdict != GateVerdict::kFail) continue;
      return {GateVerdict::kFail, fmt::format("It doesn't hold in {}. {}", bundles_[side].name,
                                              answers_[side].because)};
    }
    for (const size_t side : {pair.first, pair.second}) {
      if (answers_[side].verdict == GateVerdict::kPass) continue;
      return {GateVerdict::kNotDecided,
              fmt::format("{}: {}", bundles_[side].name, answers_[side].because)};
    }
    return on_shared_strata(pair);
  }

  // A claim that holds in both bundles has to hold on the same strata: on others it is another one.
  Said on_shared_strata(const AxisPair& pair) const {
    const std::set<Stratum> first = strata_of(pair.first);
    const std::set<Stratum> second = strata_of(pair.second);
    std::set<Stratum> shared;
    std::ranges::set_intersection(first, second, std::inserter(shared, shared.end()));
    if (shared.empty()) {
      return {GateVerdict::kNotDecided, fmt::format("None of its strata was measured in both {}.",
                                                    pair_name(bundles_, pair))};
    }
    const std::string held = fmt::format("It holds in {}, which differ on {} alone",
                                         pair_name(bundles_, pair), pair.axis);
    if (shared == first && shared == second) return {GateVerdict::kPass, held + "."};
    for (const size_t side : {pair.first, pair.second}) {
      const ClaimAnswer answer = answer_claim(claim_, *findings_[side], &shared);
      if (answer.verdict == GateVerdict::kPass) continue;
      return {GateVerdict::kNotDecided,
              fmt::format("{}, on the {} that both {} measured: {}", bundles_[side].name,
                          counted(std::ssize(shared), "stratum", "strata"),
                          pair_name(bundles_, pair), answer.because)};
    }
    return {GateVerdict::kPass, fmt::format("{}, on the {} that both measured.", held,
                                            counted(std::ssize(shared), "stratum", "strata"))};
  }

  const SpeedClaim& claim_;
  const std::vector<BundleFacts>& bundles_;
  std::vector<const StratumFindings*> findings_;
  std::vector<ClaimAnswer> answers_;
};

GateCheck claims_check(const std::vector<ReproducedClaim>& claims) {
  GateCheck check{.name = "claims",
                  .looked_at = "analysis/findings.json: contrasts, combined, decisions, outcomes"};
  Deciders failed;
  int64_t passed = 0;
  std::string first;
  std::string first_open;
  for (const ReproducedClaim& claim : claims) {
    passed += claim.verdict == GateVerdict::kPass ? 1 : 0;
    const std::string text = fmt::format("{}: {}", claim_text(claim.claim), claim.because);
    if (claim.verdict == GateVerdict::kNotDecided && first_open.empty()) first_open = text;
    if (claim.verdict != GateVerdict::kFail) continue;
    if (first.empty()) first = text;
    failed.add(text);
  }
  const auto all = std::ssize(claims);
  if (all == 0) {
    check.found = "There is no claim to judge: no decision names an arm.";
    return check;
  }
  const int64_t short_of = failed.count();
  if (short_of == 0 && passed < all) {
    check.found = fmt::format("{} of {} {} open; {}", all - passed, counted(all, "claim"),
                              all - passed == 1 ? "is" : "are", first_open);
    check.decided_by = {first_open};
    check.decided_by_more = all - passed - 1;
    return check;
  }
  return std::move(failed).decide(
      std::move(check), GateVerdict::kFail,
      fmt::format("{} of {} {} not reproduced; {}", short_of, counted(all, "claim"),
                  short_of == 1 ? "is" : "are", first),
      all == 1 ? claims.front().because
               : fmt::format("{} hold in two regimes.", counted(all, "claim")));
}

std::string models_text(const Findings& findings) {
  std::vector<std::string> models;
  for (const Stratum& stratum : findings.strata) add_once(models, stratum.model);
  return join(models, ", ");
}

// Why two bundles measured nothing that could be reproduced; empty: they have strata in common.
std::string nothing_in_common(const Findings& first, const Findings& second) {
  const std::set<Stratum> strata(first.strata.begin(), first.strata.end());
  const bool any = std::ranges::any_of(
      second.strata, [&](const Stratum& stratum) { return strata.contains(stratum); });
  if (any) return "";
  const bool same_model = std::ranges::any_of(strata, [&](const Stratum& one) {
    return std::ranges::find(second.strata, one.model, &Stratum::model) != second.strata.end();
  });
  if (same_model) return "they have no stratum in common";
  return fmt::format("they measured other models ({}; {})", models_text(first),
                     models_text(second));
}

}  // namespace

AxisPair regime_pair(const std::vector<BundleFacts>& bundles, size_t first, size_t second,
                     const std::string& axis) {
  AxisPair pair{
      .first = first, .second = second, .axes = {}, .differences = {}, .axis = {}, .why_not = {}};
  pair.differences = identity_differences(bundles[first].bundle, bundles[second].bundle);
  pair.axes = own_axes(pair.differences);
  if (std::string apart = nothing_in_common(bundles[first].findings, bundles[second].findings);
      !apart.empty()) {
    pair.why_not = std::move(apart);
  } else if (pair.axes.empty()) {
    pair.why_not = "no axis differs, so they are one regime";
  } else if (pair.axes.size() > 1) {
    pair.why_not = fmt::format(
        "{} axes differ ({}), and a difference between the bundles could "
        "come from any of them",
        pair.axes.size(), join(pair.axes, ", "));
  } else if (pair.axes.front() == "model") {
    pair.why_not = "they measured other weights";
  } else if (!axis.empty() && pair.axes.front() != axis) {
    pair.why_not = fmt::format("the declared axis is {}, and {} differs", axis, pair.axes.front());
  } else if (const std::vector<std::string> unstated =
                 unstated_between(bundles[first].bundle, bundles[second].bundle);
             !unstated.empty()) {
    pair.why_not = fmt::format("{} differs, and not both state {}, which may differ as well",
                               pair.axes.front(), join(unstated, ", "));
  } else {
    pair.axis = pair.axes.front();
  }
  return pair;
}

JudgedRegimes judge_regimes(const std::vector<BundleFacts>& bundles,
                            const std::optional<SpeedClaim>& claim, const std::string& axis) {
  JudgedRegimes result;
  result.gate.kind = GateKind::kRegimes;
  for (size_t i = 0; i < bundles.size(); ++i) {
    for (size_t j = i + 1; j < bundles.size(); ++j) {
      result.pairs.push_back(regime_pair(bundles, i, j, axis));
    }
  }
  const bool any =
      std::ranges::any_of(result.pairs, [](const auto& pair) { return !pair.axis.empty(); });
  std::vector<BundleIndex> index;
  for (const BundleFacts& bundle : bundles) {
    index.push_back({StratumFindings(bundle.findings),
                     StratumFindings(bundle.of_claim ? *bundle.of_claim : bundle.findings)});
  }
  for (const SpeedClaim& one : claims_of(bundles, claim)) {
    result.claims.push_back(Reproduction(one, bundles, index).over(result.pairs));
  }
  result.gate.looked_at = fmt::format("{}, {}", counted(std::ssize(bundles), "bundle"),
                                      counted(std::ssize(result.claims), "claim"));
  result.gate.checks.push_back(pairs_check(bundles, result.pairs));
  if (any) result.gate.checks.push_back(claims_check(result.claims));
  return result;
}

}  // namespace assay
