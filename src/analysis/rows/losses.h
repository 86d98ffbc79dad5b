// Rows that cells lost, by the processes that were to measure them: a process that dies loses all
// of its rows at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/rows/samples.h"
#include "stats/clustered_share.h"

namespace assay {

struct Losses {
  int64_t lost = 0;
  int64_t attempted = 0;
  bool died = false;  // some row went with its process: crash or timeout
  // Of each process of each cell. Rows that name none make one together.
  std::vector<stats::ClusterCount> processes;

  // Of several cells: their effects, each as often as rows were lost there. Absent: it is one cell.
  std::optional<double> weighted_effects;

  // Another cell's. Cells differ by what they measure, which is no chance of processes, so that the
  // effect of several is the mean of theirs, weighted by the rows that they lost.
  void add(const Losses& cell);
  // By which Wilson's interval has to be widened (stats/clustered_share.h). Where every row was
  // lost, rows of processes that died count as one a process, and rows that failed one by one as
  // they are; 1 where nothing shows it.
  double design_effect() const;
  // Of the share lost, with that effect or a larger one, up to one observation a process. Absent:
  // nothing was attempted.
  std::optional<stats::Interval> interval(double confidence, double least_effect = 1) const;
};

Losses losses_of(const Group& group);

}  // namespace assay
