// A policy judged on rows that it wasn't made of: from one half of a study's processes, on the
// other half, both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "routing/choice.h"

namespace assay {

// Every second unit, in their order, is one half: a drift of the machine is in both. Units are
// worker processes where some cell has several, else blocks. With g(h, e) the mean over strata of
// ln(mean time of the arm that half h's policy takes / that of the safe arm) over the rows of half
// e, the time in sample is exp of the mean of g(1, 1) and g(2, 2), that out of sample exp of the
// mean of g(1, 2) and g(2, 1), and the optimism is the second over the first, less 1. Strata on
// which both halves choose alike add nothing to it. Its interval: percentiles of a bootstrap of
// units within halves with both choices held, stretched as SimulatedFigure's are.
struct Optimism {
  std::string absent;  // why it can't be told; empty: it can
  std::string unit;    // process | block
  int64_t units = 0;   // of the smaller half
  int64_t strata = 0;  // judged
  int64_t differ = 0;  // on which the halves choose different arms
  // Choices whose arm the other half bars (reason_barred()): their strata aren't judged, but
  // counted here.
  int64_t broken = 0;
  double in_sample = 1;  // time in the safe arm's
  double out_of_sample = 1;
  double optimism = 0;
  std::optional<stats::Interval> interval;  // absent: fewer than two units a half
};

// `choices`: of all rows, whose safe arms count.
Optimism judge_out_of_sample(const ChoiceInputs& in, const std::vector<StratumChoice>& choices,
                             ThreadPool* pool);

}  // namespace assay
