// Looks at strata, round by round.
#include "harness/decisions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "stats/sequential/confidence_sequence.h"

namespace assay {
namespace {

// Chance of a false decision for one pair.
double pair_alpha(const Study& study) {
  const auto arms = static_cast<double>(study.arms.size());
  return arms < 2 ? kDecisionAlpha : kDecisionAlpha / (arms * (arms - 1) / 2);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

PairVerdict judge(const stats::Interval& log_ratio, double margin) {
  // A difference below the margin is none, as in the analysis.
  if (-std::log1p(margin) < log_ratio.low && log_ratio.high < std::log1p(margin)) {
    return PairVerdict::kEquivalent;
  }
  return log_ratio.high < 0 ? PairVerdict::kFaster : PairVerdict::kOpen;
}

}  // namespace

std::string_view pair_verdict_name(PairVerdict verdict) {
  switch (verdict) {
    case PairVerdict::kFaster:
      return "faster";
    case PairVerdict::kEquivalent:
      return "equivalent";
    case PairVerdict::kOpen:
      break;
  }
  return "open";
}

bool StratumLook::decided() const {
  return leader && std::ranges::none_of(pairs, [](const LeaderPair& pair) {
           return pair.verdict == PairVerdict::kOpen;
         });
}

int64_t least_rounds_to_decide(const Study& study) {
  return stats::least_confirmed_looks(pair_alpha(study));
}

void Decisions::add(size_t cell, int64_t round, const Row& row) {
  Sum& sum = sums_[{cell, round}];
  if (row.status != RowStatus::kOk) sum.lost = true;
  if (row.status != RowStatus::kOk || row.cold || !row.latency_ms) return;
  sum.latency_ms += *row.latency_ms;
  ++sum.rows;
}

size_t Decisions::cell_of(size_t condition, size_t arm) const {
  return condition * study_.arms.size() + arm;
}

// ln of the mean latency of each round; absent where the arm can't be compared.
std::optional<std::vector<double>> Decisions::log_means(size_t cell, int64_t rounds) const {
  std::vector<double> means;
  for (int64_t round = 0; round < rounds; ++round) {
    const auto found = sums_.find({cell, round});
    if (found == sums_.end() || found->second.lost || found->second.latency_ms <= 0) {
      return std::nullopt;
    }
    means.push_back(std::log(found->second.latency_ms / static_cast<double>(found->second.rows)));
  }
  return means;
}

StratumLook Decisions::look(size_t condition, int64_t rounds) const {
  StratumLook look{.rounds = rounds, .leader = {}, .pairs = {}};
  std::map<size_t, std::vector<double>> by_arm;
  for (size_t arm = 0; arm < study_.arms.size() && rounds > 0; ++arm) {
    if (auto means = log_means(cell_of(condition, arm), rounds)) by_arm[arm] = *std::move(means);
  }
  if (by_arm.size() < 2) return look;
  const auto leader =
      std::ranges::min_element(by_arm, {}, [](const auto& entry) { return mean(entry.second); });
  look.leader = leader->first;
  for (const auto& [arm, means] : by_arm) {
    if (arm == leader->first) continue;
    std::vector<double> log_ratios(means.size());
    std::ranges::transform(leader->second, means, log_ratios.begin(), std::minus());
    LeaderPair pair{.arm = arm, .ratio = std::exp(mean(log_ratios)), .interval = {}};
    if (const auto interval = stats::confirmed_interval(log_ratios, pair_alpha(study_))) {
      pair.interval = stats::exp_of(*interval);
      pair.verdict = judge(*interval, study_.stopping->margin);
    }
    look.pairs.push_back(pair);
  }
  return look;
}

bool Decisions::over(size_t condition, int64_t round) {
  if (const auto ended = ended_before_.find(condition); ended != ended_before_.end()) {
    return round >= ended->second;
  }
  // Looks that an interrupted run had behind it are taken again, each as it was.
  int64_t& open = open_before_[condition];
  while (open < round) {
    const StratumLook seen = look(condition, open + 1);
    const bool nothing_to_compare = !seen.leader && open + 1 >= study_.processes;
    if (seen.decided() || nothing_to_compare) {
      ended_before_[condition] = open + 1;
      return true;
    }
    ++open;
  }
  return false;
}

EvidenceStopping Decisions::summary(size_t condition) const {
  const auto ended = ended_before_.find(condition);
  const StratumLook last =
      look(condition, ended == ended_before_.end() ? rounds(study_) : ended->second);
  EvidenceStopping stopping{.rounds = last.rounds,
                            .decided = last.decided(),
                            .leader = {},
                            .margin = study_.stopping->margin,
                            .pairs = {}};
  if (last.leader) stopping.leader = study_.arms[*last.leader].name;
  for (const LeaderPair& pair : last.pairs) {
    StoppingPair& told = stopping.pairs.emplace_back();
    told.arm = study_.arms[pair.arm].name;
    told.ratio = pair.ratio;
    if (pair.interval) told.interval = EvidenceInterval{pair.interval->low, pair.interval->high};
    told.verdict = pair_verdict_name(pair.verdict);
  }
  return stopping;
}

}  // namespace assay
