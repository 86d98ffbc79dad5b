// A cell's rows in one replay: those of the units that were drawn, and the share that is lost
// beside them.
#pragma once

#include <vector>

#include "routing/replay_data.h"

namespace assay {

// Rows of one kind, ascending by time, and the share of such rows that was lost beside them.
struct DrawnRows {
  std::vector<ReplayRow> rows;
  double lost = 0;
};

struct DrawnCell {
  DrawnRows warm;
  DrawnRows first;
  DrawnRows fell_back;
  double mean_ms = 0;  // of warm rows
};

// `times`: how often each unit was drawn. Each kind has the rows of units as often as they were
// drawn; all rows of the kind if no unit with such rows was drawn.
DrawnCell drawn_cell(const ReplayCell& cell, const std::vector<int>& times);

// 0 <= u < 1; rows aren't empty.
const ReplayRow& at_quantile(const std::vector<ReplayRow>& rows, double u);

}  // namespace assay
