// Decisions on the arm to take.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/contrast.h"
#include "stats/samples/intervals.h"

namespace assay {

// An arm that a decision passes over.
struct LeftOut {
  std::string arm;
  std::string reason;
};

// The arm that is ahead by another figure than the mean.
struct Alternative {
  std::string figure;  // p50, p95, p99
  std::string arm;
  double ratio = 1;  // to that figure of the arm that the mean chose
  stats::Interval interval;
};

// The arm whose typical call is faster than every other comparable arm's, where the means can't
// tell the arms apart: by SpreadRatio, Bonferroni over the rivals.
struct TypicalChoice {
  std::string arm;
  std::string rival;  // the one that it is least far ahead of
  SpreadRatio ratio;  // arm / rival
  // The reason why the mean can't tell: the arm and its number of rows that take more than
  // kSlowFactor times its median. 0: no single rows are to blame.
  std::string slow_arm;
  int64_t slow = 0;
};

// An arm that a decision's leader was held against.
struct Rival {
  std::string arm;
  double ratio = 1;                               // leader / this arm, of means
  std::optional<stats::Interval> ratio_interval;  // as the contrast's
  std::optional<double> minimum_detectable;       // of the pair, as a share of this arm's mean
  std::optional<stats::Interval> ratio_process_range = {};  // as the contrast's
};

// The decision on the arm that a stratum's reader should take.
struct Decision {
  size_t stratum = 0;
  enum class Kind {
    kBest,          // `arm` is faster than every other comparable arm
    kNoDifference,  // `arm` has the lowest mean, and `tied` are equivalent to it
    kAhead,         // as kUndecided, but `arm` is faster than the baseline: see `ahead`
    kUndecided,     // `arm` has the lowest mean, and the data can't tell it from `tied`
    kOnlyOne,       // no other arm is comparable
    kNone,          // no arm is
    kVoid,          // the comparison that it would rest on is void: `void_because`
  } kind = Kind::kNone;
  std::string arm;  // empty: none is named
  std::string void_because;
  std::vector<Rival> tied;  // by their means; a beaten arm may lie before one
  // kAhead only: `arm` and those of `tied` that are faster than the baseline too, by the contrasts
  // with it. Each of them is a gain; which of them is the fastest is open.
  std::vector<std::string> ahead;
  std::optional<Rival> runner_up;         // next lowest mean
  std::optional<TypicalChoice> typical;   // of kAhead and kUndecided, where typical calls decide
  std::vector<Alternative> alternatives;  // where p50 or the tail choose another arm
  std::vector<LeftOut> left_out;  // arms that aren't comparable, or didn't run as they are labelled
};
std::string_view decision_name(Decision::Kind kind);

}  // namespace assay
