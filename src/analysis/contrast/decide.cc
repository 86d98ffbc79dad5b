// Decides on the arm to take on each stratum, or that the data don't say.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/contrast/any_look.h"
#include "analysis/contrast/contrast.h"
#include "analysis/contrast/row_statistics.h"
#include "analysis/contrast/typical.h"
#include "analysis/contrast/widenings.h"
#include "analysis/rows/each.h"
#include "base/text/text.h"

namespace assay {
namespace {

struct Candidate {
  size_t group = 0;
  double time = 0;
};

// The leader of one stratum and its contrasts with the others, in the order of their means.
struct Race {
  Decision decision;
  std::vector<size_t> groups;
  std::vector<Contrast> rivals;
  std::vector<size_t> lost;  // arms that lost rows or gave other output
};

// The reason why the group can't be the answer here; empty: it can. An arm that didn't run as it is
// labelled can't win under that label.
std::string reason_against(const Group& group, const Group* other, const AnalysisOptions& options) {
  const auto reasons = reasons_against(group, options);
  if (!reasons.empty()) return join(reasons, ", ");
  const Execution execution = group.execution();
  if (execution != Execution::kEager && execution != Execution::kCompiled) {
    return std::string(execution_name(execution));
  }
  if (other != nullptr && !same_prompts(*other, group)) return "answered different prompts";
  return "";
}

// Time by which arms are ranked: the mean, or the geometric mean of rounds if the stratum was
// looked at while it ran.
double ranked_time(const ContrastInputs& in, size_t g) {
  const Group& group = in.samples.groups[g];
  const double mean = *stats::mean(group.warm_ms);
  if (!was_looked_at(in.samples, group.stratum)) return mean;
  std::vector<double> logs;
  for (const double value : in.units.series(g).mean_ms) logs.push_back(std::log(value));
  return std::exp(stats::mean(logs).value_or(std::log(mean)));
}

Race race(const ContrastInputs& in, size_t stratum) {
  const Samples& samples = in.samples;
  Race result;
  result.decision.stratum = stratum;
  std::vector<Candidate> candidates;
  for (size_t g = samples.first_group[stratum]; g < samples.first_group[stratum + 1]; ++g) {
    const Group& group = samples.groups[g];
    const Group* other = candidates.empty() ? nullptr : &samples.groups[candidates[0].group];
    std::string reason = reason_against(group, other, in.options);
    if (reason.empty()) {
      candidates.push_back({g, ranked_time(in, g)});
    } else {
      result.decision.left_out.push_back({samples.arms[group.arm], std::move(reason)});
      if (group.failed() > 0 || group.parity_failed) result.lost.push_back(group.arm);
    }
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::time);
  if (candidates.empty()) return result;
  result.decision.kind = Decision::Kind::kOnlyOne;
  result.decision.arm = samples.arms[samples.groups[candidates[0].group].arm];
  for (const Candidate& candidate : candidates) result.groups.push_back(candidate.group);
  return result;
}

// Widening of each pair: a pair with the baseline has that of its contrast, so that the same two
// arms are told apart in both tables or in neither; the others are a family.
std::vector<stats::Widening> rival_widenings(const ContrastInputs& in,
                                             const std::vector<GroupPair>& pairs,
                                             const std::vector<Contrast>& contrasts) {
  const Samples& samples = in.samples;
  std::map<const Group*, const Contrast*> by_arm;
  for (const Contrast& contrast : contrasts) {
    by_arm[samples.find(*contrast.stratum, contrast.arm)] = &contrast;
  }
  std::vector<stats::Widening> widenings(pairs.size());
  std::vector<GroupPair> others;
  std::vector<size_t> places;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Group& arm = samples.groups[pairs[i].arm];
    const Group& rival = samples.groups[pairs[i].baseline];
    const bool with_baseline = arm.arm == 0 || rival.arm == 0;
    const auto known = with_baseline ? by_arm.find(arm.arm == 0 ? &rival : &arm) : by_arm.end();
    if (known != by_arm.end()) {
      widenings[i] = known->second->widening;
    } else {
      others.push_back(pairs[i]);
      places.push_back(i);
    }
  }
  const std::vector<stats::Widening> found = contrast_widenings(samples, in.units, others);
  for (size_t i = 0; i < places.size(); ++i) widenings[places[i]] = found[i];
  return widenings;
}

// The leader of each race against its rivals.
void contrast_rivals(const ContrastInputs& in, const std::vector<Contrast>& contrasts,
                     ThreadPool* pool, std::vector<Race>& races) {
  std::vector<GroupPair> pairs;
  std::vector<size_t> first;
  for (const Race& one : races) {
    first.push_back(pairs.size());
    for (size_t i = 1; i < one.groups.size(); ++i) pairs.push_back({one.groups[0], one.groups[i]});
  }
  const std::vector<stats::Widening> widenings = rival_widenings(in, pairs, contrasts);
  const std::vector<SharedSpread> spreads = spreads_of_pairs(in.samples, in.units, pairs);
  const std::vector<UnseenTail> unseen = unseen_tails(in.samples, pairs);
  const PairResamples resampled(in.samples, in.units, in.resampled, pairs, in.options, pool);
  for_each_index(races.size(), pool, [&](size_t r) {
    for (size_t i = 1; i < races[r].groups.size(); ++i) {
      const size_t at = first[r] + i - 1;
      races[r].rivals.push_back(
          contrast_pair(in, resampled, pairs[at], {widenings[at], spreads[at], unseen[at]}));
    }
  });
}

// True if the ratio is notable and its interval lies below 1. Processes that are too few for an
// interval show no such thing.
bool is_ahead(const SpreadRatio& ratio, const AnalysisOptions& options) {
  return ratio.interval && ratio.interval->high < 1 && ratio.ratio <= 1 - options.notable;
}

// The arm that leads by this quantile, if it isn't the one that leads by the mean and its interval
// says that it is ahead of that one.
void add_alternative(const ContrastInputs& in, const std::string& figure, double p,
                     stats::QuantileBootstrap& quantiles, Race& race) {
  const Samples& samples = in.samples;
  const auto value = [&](size_t g) { return *stats::quantile(samples.groups[g].sorted_ms, p); };
  const size_t by_mean = race.groups[0];
  const size_t best = *std::ranges::min_element(race.groups, {}, value);
  if (best == by_mean) return;
  const size_t rival =
      static_cast<size_t>(std::ranges::find(race.groups, best) - race.groups.begin()) - 1;
  const auto ratio =
      quantile_ratio_by_units(in, {best, by_mean}, p, race.rivals[rival].widening, quantiles);
  if (!ratio || !is_ahead(*ratio, in.options)) return;
  race.decision.alternatives.push_back(
      {figure, samples.arms[samples.groups[best].arm], ratio->ratio, *ratio->interval});
}

// One process of an arm shows nothing of what differs between processes, by any figure.
bool withheld_for_one_process(const AnalysisOptions& options, const Race& race) {
  return !options.allow_single_process && std::ranges::any_of(race.rivals, &Contrast::one_process);
}

// Adds the choices by p50, and by the highest percentile that all arms of the race have enough rows
// for.
void add_alternatives(const ContrastInputs& in, stats::QuantileBootstrap& quantiles, Race& race) {
  if (race.groups.size() < 2 || withheld_for_one_process(in.options, race)) return;
  // Typical calls that decide are told by themselves.
  if (!race.decision.typical) add_alternative(in, "p50", 0.5, quantiles, race);
  for (const auto& [figure, p] : {std::pair{"p99", 0.99}, std::pair{"p95", 0.95}}) {
    const bool all = std::ranges::all_of(race.groups, [&, share = p](size_t g) {
      return stats::percentile(in.samples.groups[g].sorted_ms, share).has_value();
    });
    if (all) return add_alternative(in, figure, p, quantiles, race);
  }
}

// The rows of these two that take far longer than their arm's typical call: of the arm that has
// more.
void blame_slow_rows(const Samples& samples, const GroupPair& pair, TypicalChoice& choice) {
  for (const size_t g : {pair.arm, pair.baseline}) {
    const Group& group = samples.groups[g];
    const double limit = kSlowFactor * *stats::median(group.sorted_ms);
    const int64_t slow = group.sorted_ms.end() - std::ranges::upper_bound(group.sorted_ms, limit);
    if (slow <= choice.slow) continue;
    choice.slow = slow;
    choice.slow_arm = samples.arms[group.arm];
  }
}

// The arm with the lowest median against each other one, where means leave it open.
void decide_by_typical_calls(const ContrastInputs& in, Race& race) {
  const Decision::Kind kind = race.decision.kind;
  const bool open = kind == Decision::Kind::kUndecided || kind == Decision::Kind::kAhead;
  if (withheld_for_one_process(in.options, race)) return;
  if (!open || !in.units.paired(race.decision.stratum)) return;
  const auto median = [&](size_t g) { return *stats::median(in.samples.groups[g].sorted_ms); };
  const size_t best = *std::ranges::min_element(race.groups, {}, median);
  const double rivals = static_cast<double>(race.groups.size() - 1);
  const double confidence = 1 - (1 - kConfidence) / rivals;
  std::vector<GroupPair> pairs;
  for (const size_t g : race.groups) {
    if (g != best) pairs.push_back({best, g});
  }
  const std::vector<stats::Widening> widenings = contrast_widenings(in.samples, in.units, pairs);
  TypicalChoice choice;
  choice.arm = in.samples.arms[in.samples.groups[best].arm];
  choice.ratio.ratio = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto ratio = typical_ratio(in, pairs[i], widenings[i], confidence);
    if (!ratio || !is_ahead(*ratio, in.options)) return;
    if (ratio->ratio <= choice.ratio.ratio) continue;
    choice.ratio = *ratio;
    choice.rival = in.samples.arms[in.samples.groups[pairs[i].baseline].arm];
    choice.slow = 0;
    choice.slow_arm.clear();
    blame_slow_rows(in.samples, pairs[i], choice);
  }
  race.decision.typical = choice;
}

Rival rival_of(const Contrast& contrast) {
  return {contrast.baseline, contrast.ratio, contrast.ratio_interval, contrast.minimum_detectable,
          contrast.ratio_process_range};
}

// Whoever reads the arm that a decision names takes it: a void one names none.
void call_off(Race& race, const std::string& reason) {
  race.decision.kind = Decision::Kind::kVoid;
  race.decision.void_because = reason;
  race.decision.arm.clear();
}

void settle(Race& race) {
  if (race.rivals.empty()) return;
  Decision& decision = race.decision;
  decision.runner_up = rival_of(race.rivals[0]);
  decision.kind = Decision::Kind::kBest;
  for (const Contrast& rival : race.rivals) {
    if (rival.verdict == Verdict::kFaster) continue;
    decision.tied.push_back(rival_of(rival));
    const bool equivalent = rival.verdict == Verdict::kEquivalent;
    if (!equivalent) {
      decision.kind = Decision::Kind::kUndecided;
    } else if (decision.kind == Decision::Kind::kBest) {
      decision.kind = Decision::Kind::kNoDifference;
    }
  }
}

// An undecided leader may still be a gain on the baseline. Its contrasts with the baseline decide,
// which are one family whichever arm leads.
void find_ahead(const Samples& samples, const std::vector<Contrast>& contrasts,
                Decision& decision) {
  if (decision.kind != Decision::Kind::kUndecided) return;
  const std::string& baseline = samples.arms[0];
  if (std::ranges::find(decision.tied, baseline, &Rival::arm) != decision.tied.end()) return;
  const auto gains = [&](const std::string& arm) {
    return std::ranges::any_of(contrasts, [&](const Contrast& contrast) {
      return contrast.stratum == decision.stratum && contrast.arm == arm &&
             contrast.verdict == Verdict::kFaster;
    });
  };
  if (!gains(decision.arm)) return;
  decision.kind = Decision::Kind::kAhead;
  decision.ahead = {decision.arm};
  for (const Rival& rival : decision.tied) {
    if (gains(rival.arm)) decision.ahead.push_back(rival.arm);
  }
}

}  // namespace

std::vector<Decision> void_decisions(const ContrastInputs& in,
                                     const std::vector<std::string>& void_because) {
  std::vector<Decision> decisions;
  for (size_t stratum = 0; stratum < void_because.size(); ++stratum) {
    if (void_because[stratum].empty()) continue;
    Race one = race(in, stratum);
    if (one.groups.size() < 2) continue;
    call_off(one, void_because[stratum]);
    decisions.push_back(std::move(one.decision));
  }
  return decisions;
}

std::vector<Decision> decide(const ContrastInputs& in, const std::vector<Contrast>& contrasts,
                             const std::vector<std::string>& void_because,
                             stats::QuantileBootstrap& quantiles, ThreadPool* pool) {
  const Samples& samples = in.samples;
  const AnalysisOptions& options = in.options;
  std::vector<Race> races(samples.strata.size());
  for_each_index(races.size(), pool, [&](size_t i) { races[i] = race(in, i); });
  contrast_rivals(in, contrasts, pool, races);
  for (const Phase phase : kPhases) {
    std::vector<Contrast*> family;
    std::set<size_t> racing;  // arms; one that lost rows on every stratum claims nothing
    std::vector<size_t> lost;
    for (Race& one : races) {
      if (samples.strata[one.decision.stratum].phase != phase) continue;
      lost.insert(lost.end(), one.lost.begin(), one.lost.end());
      for (const size_t g : one.groups) racing.insert(samples.groups[g].arm);
      for (Contrast& rival : one.rivals) family.push_back(&rival);
    }
    std::erase_if(lost, [&](size_t arm) { return !racing.contains(arm); });
    adjust_and_judge(family, lost.size(), options);
  }
  for_each_index(races.size(), pool, [&](size_t i) {
    if (!void_because[i].empty() && !races[i].rivals.empty()) {
      call_off(races[i], void_because[i]);
      return;
    }
    settle(races[i]);
    find_ahead(samples, contrasts, races[i].decision);
    if (was_looked_at(samples, i)) return;  // typical calls and tails have no such intervals
    decide_by_typical_calls(in, races[i]);
    add_alternatives(in, quantiles, races[i]);
  });
  std::vector<Decision> decisions;
  for (Race& one : races) decisions.push_back(std::move(one.decision));
  return decisions;
}

}  // namespace assay
