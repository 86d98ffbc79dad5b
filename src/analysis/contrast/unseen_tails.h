// Slow calls that a stratum's rows happen not to hold.
//
// Where two of a hundred calls take five times as long, 30 rows hold none of them in half of all
// runs, and the arm's mean is then too low by the tail. The phase's other strata show what is
// missing: if one arm has slow calls there and the other has none, no interval of a stratum without
// any may leave them out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/contrast/units.h"

namespace assay {

// Warm rows that compiled nothing, and those of them that take more than kSlowFactor times the
// group's median.
struct SlowCalls {
  int64_t rows = 0;
  std::vector<const Row*> slow;
  double excess = 0;  // sum over the slow ones of latency / median - 1
};
SlowCalls slow_calls_of(const Group& group);

// Slow calls that a pair's ratio on one stratum may lack.
struct UnseenTail {
  // The slow arm's mean may be so many times what its rows there show; 1: nothing is missing.
  double factor = 1;
  bool is_arms = true;  // the slow arm is the pair's `arm`, else its `baseline`
};

// One a pair. Strata of the phase that both arms were measured on count: if one arm has slow calls
// there and the other has none, then on a stratum where the first has none either its factor is
// 1 + u e, u the upper end of Wilson's 95 % interval of that arm's share of slow calls and e their
// mean excess.
std::vector<UnseenTail> unseen_tails(const Samples& samples, std::span<const GroupPair> pairs);

}  // namespace assay
