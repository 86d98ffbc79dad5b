// Rows that cells lost, by the processes that were to measure them: a process that dies loses all
// of its rows at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/rows/samples.h"
#include "stats/estimates/clustered_share.h"

namespace assay {

struct Losses {
  int64_t lost = 0;
  int64_t attempted = 0;
  // Counts of each process of each cell: a process that replaces one that died is another. Rows
  // that name no process count as one process if any of them is ok. If all of them are lost, no
  // process could be started for them, and the rows of each block count as one that died.
  std::vector<stats::ClusterCount> processes;
  int64_t died = 0;  // of those, the processes that a row went with: crash or timeout

  // Several cells only: sum of their design effects, each times the rows lost there. Absent: one
  // cell.
  std::optional<double> weighted_effects;

  // Adds another cell's losses. Cells differ by what they measure, which is no chance of processes,
  // so the effect of several is the mean of theirs, weighted by the rows that they lost.
  void add(const Losses& cell);
  // Factor by which Wilson's variance has to be widened (stats/estimates/clustered_share.h). If
  // every row was lost and some process died, it is the rows a process, as if each process were one
  // observation; 1 if nothing shows an effect.
  double design_effect() const;
  // Interval of the share lost, with that effect or a larger one, up to one observation a process.
  // Absent: nothing was attempted.
  std::optional<stats::Interval> interval(double least_effect = 1) const;
  // Wilson's interval of the share of processes that died. Absent: there was none.
  std::optional<stats::Interval> died_interval() const;
};

Losses losses_of(const Group& group);

}  // namespace assay
