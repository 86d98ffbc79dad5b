// A claim against findings, stratum by stratum.
#include "gates/claim_answer.h"

#include <algorithm>

#include "analysis/findings/spread_text.h"
#include "base/text/listed.h"
#include "base/text/text.h"

namespace assay {
namespace {

constexpr size_t kMostNamed = 3;  // strata in a sentence

// One stratum's answer to a claim.
enum class Says { kSupports, kOpen, kContradicts };
struct StratumAnswer {
  Says says = Says::kOpen;
  std::string why;
};

std::string ratio_text(const StratumFindings::ClaimedPair& pair, const std::string& other) {
  return fmt::format("{}{} of {}'s time", format_significant(pair.ratio, 3),
                     spread_text(pair.interval, pair.process_range, 3), other);
}

Verdict seen_from_baseline(Verdict verdict) {
  if (verdict == Verdict::kFaster) return Verdict::kSlower;
  if (verdict == Verdict::kSlower) return Verdict::kFaster;
  return verdict;
}

StratumFindings::ClaimedPair seen_from_arm(const Contrast& contrast, bool swapped) {
  StratumFindings::ClaimedPair pair{contrast.verdict, contrast.ratio, contrast.ratio_interval,
                                    contrast.ratio_process_range, contrast.one_process};
  if (!swapped) return pair;
  pair.verdict = seen_from_baseline(pair.verdict);
  pair.ratio = 1 / pair.ratio;
  pair.interval = inverted(pair.interval);
  pair.process_range = inverted(pair.process_range);
  return pair;
}

Verdict claimed(ClaimRelation relation) {
  if (relation == ClaimRelation::kSlower) return Verdict::kSlower;
  return relation == ClaimRelation::kEquivalent ? Verdict::kEquivalent : Verdict::kFaster;
}

std::string place_text(const Stratum& stratum) {
  std::string text =
      fmt::format("{} of {} at {}", phase_name(stratum.phase), stratum.model, prompt_name(stratum));
  if (decodes(stratum.phase)) text += ", " + counted(stratum.new_tokens, "new token");
  if (stratum.batch > 1) text += fmt::format(", batch {}", stratum.batch);
  return text;
}

bool names(const std::vector<Rival>& rivals, const std::string& arm) {
  return std::ranges::find(rivals, arm, &Rival::arm) != rivals.end();
}

std::string why_left_out(const Decision& decision, const std::string& arm) {
  const auto at = std::ranges::find(decision.left_out, arm, &LeftOut::arm);
  return at == decision.left_out.end() ? "" : at->reason;
}

class ClaimJudge {
 public:
  ClaimJudge(const SpeedClaim& claim, const StratumFindings& findings,
             const std::set<Stratum>* only)
      : claim_(claim), findings_(findings), only_(only) {}

  ClaimAnswer answer() {
    const std::vector<Stratum>& strata = findings_.findings().strata;
    for (size_t i = 0; i < strata.size(); ++i) {
      if (!covers(strata[i]) || !was_measured(i)) continue;
      answer_.strata.push_back(i);
      add(i, at_stratum(i));
    }
    sum_up();
    return std::move(answer_);
  }

 private:
  bool covers(const Stratum& stratum) const {
    return claim_covers(claim_, stratum) && (only_ == nullptr || only_->contains(stratum));
  }

  bool was_measured(size_t stratum) const {
    return findings_.outcome(stratum, claim_.arm) != nullptr ||
           (!claim_.other.empty() && findings_.outcome(stratum, claim_.other) != nullptr);
  }

  void add(size_t stratum, const StratumAnswer& said) {
    ++count_[static_cast<size_t>(said.says)];
    const std::string text =
        fmt::format("{}: {}", place_text(findings_.findings().strata[stratum]), said.why);
    std::string& first = first_[static_cast<size_t>(said.says)];
    if (first.empty()) first = text;
    if (answer_.decided_by.size() < kMostDeciding) {
      answer_.decided_by.push_back(text);
    } else {
      ++answer_.decided_by_more;
    }
  }

  // The stratum's answer where rows were lost or gave other output; absent: all is well.
  std::optional<StratumAnswer> losses(size_t stratum) {
    for (const std::string* arm : {&claim_.arm, &claim_.other}) {
      if (arm->empty()) continue;
      const Says says = arm == &claim_.arm ? Says::kContradicts : Says::kOpen;
      const OutcomeCounts* outcome = findings_.outcome(stratum, *arm);
      if (outcome == nullptr) return StratumAnswer{Says::kOpen, *arm + " wasn't measured there"};
      if (outcome->failed > 0) {
        return StratumAnswer{says, fmt::format("{} lost {} of {}", *arm, outcome->failed,
                                               counted(outcome->attempted, "row"))};
      }
      if (findings_.parity_failed(stratum, *arm)) {
        return StratumAnswer{says, *arm + " gave other output than the baseline"};
      }
    }
    return std::nullopt;
  }

  StratumAnswer at_stratum(size_t stratum) {
    if (auto lost = losses(stratum)) return *lost;
    const Decision* decision = findings_.decision(stratum);
    if (decision != nullptr && decision->kind == Decision::Kind::kVoid) {
      return {Says::kOpen, decision->void_because};
    }
    if (claim_.relation == ClaimRelation::kFastest) return of_decision(decision);
    if (const auto pair = findings_.pair(stratum, claim_.arm, claim_.other)) {
      const bool open = pair->verdict == Verdict::kInconclusive;
      inconclusive_ += open ? 1 : 0;
      if (open && may_oppose(*pair)) opposing_.push_back(stratum);
      const bool apart = pair->interval && (pair->interval->high < 1 || pair->interval->low > 1);
      return of_verdict(pair->verdict, ratio_text(*pair, claim_.other) +
                                           (!open               ? ""
                                            : pair->one_process ? " (an arm ran in one process)"
                                            : apart ? " (not significant after Holm's correction)"
                                                    : ""));
    }
    if (auto decided = of_rivals(decision)) return *decided;
    for (const std::string* arm : {&claim_.arm, &claim_.other}) {
      if (std::string why = findings_.not_comparable(stratum, *arm); !why.empty()) {
        return {Says::kOpen, why};
      }
    }
    return {Says::kOpen, "the findings don't contrast the two arms"};
  }

  // True unless the pair's interval rules out that the arm is on the other side by more than the
  // margin. An average can't bear out a claim of equivalence where a stratum is open.
  bool may_oppose(const StratumFindings::ClaimedPair& pair) const {
    const double most = 1 + findings_.findings().options.margin;
    const auto& sure = pair.interval ? pair.interval : pair.process_range;
    if (!sure || claim_.relation == ClaimRelation::kEquivalent) return true;
    return claim_.relation == ClaimRelation::kSlower ? sure->low < 1 / most : sure->high > most;
  }

  // That the average holds isn't enough: where strata may point the other way, they are named.
  void sum_up_average(const std::string& average) {
    const int64_t open = count(Says::kOpen);
    if (opposing_.empty()) {
      answer_.verdict = GateVerdict::kPass;
      answer_.because = fmt::format(
          "It holds in {}. Taken alone, {} of them {} inconclusive, but within the margin of {}.",
          average, open, open == 1 ? "is" : "are", margin_text());
      return;
    }
    const std::vector<Stratum>& strata = findings_.findings().strata;
    std::vector<std::string> places;
    for (const size_t stratum : opposing_) places.push_back(place_text(strata[stratum]));
    answer_.because = fmt::format(
        "It holds in {}, but it may be the other way round, by more than the margin of {}, in {}.",
        average, margin_text(), listed(places, kMostNamed));
  }

  std::string margin_text() const {
    return fmt::format("{:g} %", findings_.findings().options.margin * 100);
  }

  StratumAnswer of_verdict(Verdict verdict, const std::string& ratio) const {
    const std::string why = fmt::format("{}, {}", verdict_name(verdict), ratio);
    if (verdict == claimed(claim_.relation)) return {Says::kSupports, why};
    return {verdict == Verdict::kInconclusive ? Says::kOpen : Says::kContradicts, why};
  }

  StratumAnswer of_decision(const Decision* decision) {
    if (decision == nullptr) return {Says::kOpen, "the findings have no decision there"};
    if (std::string why = why_left_out(*decision, claim_.arm); !why.empty()) {
      return {Says::kOpen, fmt::format("{} is left out: {}", claim_.arm, why)};
    }
    const bool leads = decision->arm == claim_.arm;
    switch (decision->kind) {
      case Decision::Kind::kBest:
        if (!leads) return {Says::kContradicts, decision->arm + " is faster"};
        return {Says::kSupports,
                decision->runner_up ? fmt::format("{} of {}'s time, the next one",
                                                  format_significant(decision->runner_up->ratio, 3),
                                                  decision->runner_up->arm)
                                    : "faster than every other arm"};
      case Decision::Kind::kNoDifference:
      case Decision::Kind::kAhead:
      case Decision::Kind::kUndecided:
        break;
      case Decision::Kind::kOnlyOne:
        return {Says::kOpen, "no other arm is comparable"};
      case Decision::Kind::kNone:
      case Decision::Kind::kVoid:
        return {Says::kOpen, "no arm is comparable"};
    }
    if (!leads && !names(decision->tied, claim_.arm)) {
      return {Says::kContradicts, decision->arm + " is faster"};
    }
    if (decision->kind == Decision::Kind::kNoDifference) {
      const std::string& twin = leads ? decision->tied.front().arm : decision->arm;
      return {Says::kContradicts, "equivalent to " + twin};
    }
    return {Says::kOpen, "the fastest arm is undecided"};
  }

  // Two arms that no contrast is about, as the decision told them apart; nothing: it didn't.
  std::optional<StratumAnswer> of_rivals(const Decision* decision) const {
    if (decision == nullptr) return std::nullopt;
    const bool arm_leads = decision->arm == claim_.arm;
    const std::string& follower = arm_leads ? claim_.other : claim_.arm;
    const bool one_leads = arm_leads || decision->arm == claim_.other;
    if (!one_leads || !why_left_out(*decision, follower).empty()) return std::nullopt;
    const bool tied = names(decision->tied, follower);
    if (tied && decision->kind == Decision::Kind::kNoDifference) {
      return of_verdict(Verdict::kEquivalent, "by the decision");
    }
    if (tied || decision->kind == Decision::Kind::kOnlyOne) return std::nullopt;
    return of_verdict(arm_leads ? Verdict::kFaster : Verdict::kSlower, "by the decision");
  }

  // The geometric mean over the phase, where the claim is about all of it and nothing was lost.
  std::optional<StratumFindings::ClaimedPair> combined() const {
    if (!claim_.phase || claim_.relation == ClaimRelation::kFastest) return std::nullopt;
    for (const Stratum& stratum : findings_.findings().strata) {
      if (stratum.phase == *claim_.phase && !covers(stratum)) return std::nullopt;
    }
    for (const Contrast& contrast : findings_.findings().combined) {
      if (contrast.phase != *claim_.phase || contrast.lost_strata > 0) continue;
      const bool straight = contrast.arm == claim_.arm && contrast.baseline == claim_.other;
      const bool swapped = contrast.arm == claim_.other && contrast.baseline == claim_.arm;
      if (straight || swapped) return seen_from_arm(contrast, swapped);
    }
    return std::nullopt;
  }

  int64_t count(Says says) const { return count_[static_cast<size_t>(says)]; }
  const std::string& first(Says says) const { return first_[static_cast<size_t>(says)]; }

  void sum_up() {
    const auto all = static_cast<int64_t>(answer_.strata.size());
    if (all == 0) {
      answer_.because = "The bundle has no row of the judged claim.";
      return;
    }
    const std::string strata = counted(all, "stratum", "strata");
    const auto in_strata = [&](Says says) {
      return all == 1 ? std::string() : fmt::format(" in {} of {}", count(says), strata);
    };
    if (count(Says::kContradicts) > 0) {
      answer_.verdict = GateVerdict::kFail;
      answer_.because = fmt::format("The findings say otherwise{}: {}.",
                                    in_strata(Says::kContradicts), first(Says::kContradicts));
    } else if (count(Says::kSupports) == all) {
      answer_.verdict = GateVerdict::kPass;
      answer_.because = all == 1 ? fmt::format("It holds: {}.", first(Says::kSupports))
                                 : fmt::format("It holds in {} of {}.", all, strata);
    } else if (const auto whole = combined(); whole && inconclusive_ == count(Says::kOpen) &&
                                              whole->verdict == claimed(claim_.relation)) {
      sum_up_average(
          fmt::format("the geometric mean over {}: {}", strata, ratio_text(*whole, claim_.other)));
    } else {
      answer_.because =
          fmt::format("It is open{}: {}.", in_strata(Says::kOpen), first(Says::kOpen));
    }
  }

  const SpeedClaim& claim_;
  const StratumFindings& findings_;
  const std::set<Stratum>* only_;
  ClaimAnswer answer_;
  std::array<int64_t, 3> count_{};
  std::array<std::string, 3> first_;
  int64_t inconclusive_ = 0;      // strata that are open because their contrast is
  std::vector<size_t> opposing_;  // those of them that may point the other way
};

SpeedClaim at_place(const Stratum& stratum) {
  SpeedClaim claim;
  claim.phase = stratum.phase;
  claim.model = stratum.model;
  claim.scenario = stratum.scenario;
  claim.batch = stratum.batch;
  if (decodes(stratum.phase)) claim.new_tokens = stratum.new_tokens;
  return claim;
}

}  // namespace

StratumFindings::StratumFindings(const Findings& findings)
    : findings_(findings), places_(findings.strata.size()) {
  for (const Contrast& one : findings.contrasts) places_[*one.stratum].contrasts.push_back(&one);
  for (const OutcomeCounts& one : findings.outcomes) {
    if (one.stratum) places_[*one.stratum].outcomes.push_back(&one);
  }
  for (const NotComparable& one : findings.not_comparable) {
    places_[one.stratum].not_comparable.push_back(&one);
  }
  for (const Latency& one : findings.latencies) places_[one.stratum].latencies.push_back(&one);
  for (const Decision& one : findings.decisions) places_[one.stratum].decision = &one;
}

std::optional<StratumFindings::ClaimedPair> StratumFindings::pair(size_t stratum,
                                                                  const std::string& arm,
                                                                  const std::string& other) const {
  for (const Contrast* contrast : places_[stratum].contrasts) {
    const bool straight = contrast->arm == arm && contrast->baseline == other;
    const bool swapped = contrast->arm == other && contrast->baseline == arm;
    if (straight || swapped) return seen_from_arm(*contrast, swapped);
  }
  return std::nullopt;
}

const Decision* StratumFindings::decision(size_t stratum) const {
  return places_[stratum].decision;
}

const OutcomeCounts* StratumFindings::outcome(size_t stratum, const std::string& arm) const {
  const auto& outcomes = places_[stratum].outcomes;
  const auto at = std::ranges::find(outcomes, arm, [](const auto* one) { return one->arm; });
  return at == outcomes.end() ? nullptr : *at;
}

bool StratumFindings::parity_failed(size_t stratum, const std::string& arm) const {
  return std::ranges::any_of(places_[stratum].latencies, [&](const Latency* latency) {
    return latency->arm == arm && latency->parity_failed;
  });
}

std::string StratumFindings::not_comparable(size_t stratum, const std::string& arm) const {
  for (const NotComparable* one : places_[stratum].not_comparable) {
    if (one->arm == arm) return join(one->reasons, "; ");
  }
  return "";
}

ClaimAnswer answer_claim(const SpeedClaim& claim, const StratumFindings& findings,
                         const std::set<Stratum>* only) {
  return ClaimJudge(claim, findings, only).answer();
}

std::vector<SpeedClaim> claims_of_decisions(const Findings& findings) {
  std::vector<SpeedClaim> claims;
  for (const Decision& decision : findings.decisions) {
    SpeedClaim claim = at_place(findings.strata[decision.stratum]);
    claim.arm = decision.arm;
    if (decision.kind == Decision::Kind::kBest) {
      claim.relation = ClaimRelation::kFastest;
      claims.push_back(claim);
    }
    if (decision.kind == Decision::Kind::kNoDifference) {
      claim.relation = ClaimRelation::kEquivalent;
      for (const Rival& rival : decision.tied) {
        claim.other = rival.arm;
        claims.push_back(claim);
      }
    }
    if (decision.kind == Decision::Kind::kAhead) {
      claim.other = findings.study.baseline;
      for (const std::string& arm : decision.ahead) {
        claim.arm = arm;
        claims.push_back(claim);
      }
    }
  }
  return claims;
}

}  // namespace assay
