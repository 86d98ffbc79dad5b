// Decides strata: one is decided once every pair of its fastest arm with another one is, so that
// more repetitions would tell nothing new.
//
// Processes are the unit that repeats: from each round, in which every arm had a fresh process, a
// look takes one value of a pair, ln of the ratio of the two arms' mean latencies. Rounds are
// looked at as they end, by the interval of stats/sequential/confidence_sequence.h, so that looking
// costs no false decision, and a decision needs two looks in succession that agree. The leading arm
// is found by the same rows. So all pairs of a stratum's arms share its 5 %, and the bound holds
// for each of the leader's pairs, whichever arm leads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "artifact/evidence.h"
#include "artifact/row.h"
#include "stats/samples/intervals.h"
#include "study/plan.h"

namespace assay {

// The chance of a false decision in a stratum, at any look.
inline constexpr double kDecisionAlpha = 0.05;

enum class PairVerdict { kFaster, kEquivalent, kOpen };
std::string_view pair_verdict_name(PairVerdict verdict);  // faster | equivalent | open

// The leader beside another arm.
struct LeaderPair {
  size_t arm = 0;                           // the other one
  double ratio = 1;                         // leader / other, the geometric mean over the rounds
  std::optional<stats::Interval> interval;  // of the ratio; absent: too few rounds
  PairVerdict verdict = PairVerdict::kOpen;
};

// A stratum at one look.
struct StratumLook {
  int64_t rounds = 0;            // that it is made of
  std::optional<size_t> leader;  // absent: fewer than two arms can be compared
  std::vector<LeaderPair> pairs;
  bool decided() const;
};

// The rounds before which no stratum can be decided.
int64_t least_rounds_to_decide(const Study& study);

// The decisions of a study that stops by them.
class Decisions {
 public:
  // The references outlive it.
  Decisions(const Study& study, const Plan& plan) : study_(study), plan_(plan) {}

  // Every row of the run, in any order. Warm ok rows count. An arm that lost a row of a stratum,
  // warm-ups too, is out of the comparison there, as in every analysis.
  void add(size_t cell, int64_t round, const Row& row);

  // True if the condition's blocks end before this round. All rows of earlier rounds have been
  // added, and it depends on them alone, so that a resumed run finds the same. If fewer than two
  // arms can be compared, it ends with the study's `processes`.
  bool over(size_t condition, int64_t round);

  // The look at the rows of the rounds before `round`.
  StratumLook look(size_t condition, int64_t round) const;

  // State of the condition after its last round, for the evidence of its cells.
  EvidenceStopping summary(size_t condition) const;

 private:
  struct Sum {
    double latency_ms = 0;
    int64_t rows = 0;
    bool lost = false;
  };
  size_t cell_of(size_t condition, size_t arm) const;
  std::optional<std::vector<double>> log_means(size_t cell, int64_t rounds) const;

  const Study& study_;
  const Plan& plan_;
  std::map<std::pair<size_t, int64_t>, Sum> sums_;  // by cell and round
  std::map<size_t, int64_t> ended_before_;          // condition: the round that it doesn't have
  std::map<size_t, int64_t> open_before_;           // condition: the latest look that found it open
};

}  // namespace assay
