// The plan of a study: its cells, and the units that a run works through, in order. Pure and
// deterministic in the study (its seed included), so that a resumed run finds the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "study/study.h"

namespace assay {

// One arm on one condition.
struct Cell {
  // "c007-eager-gpt2-25m-prefill-single_micro-b1" (+ "-n64"); unique, and safe as a folder's name
  std::string id;
  size_t arm = 0;  // indexes into the study
  size_t model = 0;
  size_t scenario = 0;
  std::string phase;
  int64_t new_tokens = 0;  // 0 in prefill
  int64_t batch = 1;
  size_t condition = 0;  // cells of one condition differ by arm alone
};

// Consecutive repetitions of one cell: what is committed at once and lost together.
struct Unit {
  int64_t index = 0;  // position in the plan
  size_t cell = 0;
  int64_t block = 0;  // sequential, shuffled: 0; interleaved: the block within the condition
  int64_t first_repetition = 0;
  int64_t repetitions = 0;
  bool first_of_cell = false;     // its warm-ups are rows too (repetition < 0, cold)
  int64_t first_order_index = 0;  // order_index of its first row, warm-ups first
};

struct Plan {
  std::vector<Cell> cells;
  std::vector<Unit> units;  // in the order of the run
  int64_t rows = 0;         // warm-ups included, without the extra ones of optional stopping
};

// sequential: arm after arm, an arm's cells in the order of the file, all repetitions of a cell in
// one unit. shuffled: the same units, in random order within a model. interleaved: condition after
// condition; its repetitions in blocks (of at most 5, as equal as can be), each block one unit of
// every arm, the arms in a fresh random order a block. Models are the outermost loop always, so
// that an arm's worker loads each model once.
Plan make_plan(const Study& study);

// Canonical text of study and plan: its SHA-256 is the plan hash that resume compares.
Json plan_to_json(const Study& study, const Plan& plan);

}  // namespace assay
