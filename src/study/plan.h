// The plan of a study: its cells, and the units that a run works through, in order. Pure and
// deterministic in the study (its seed included), so that a resumed run finds the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/records/json.h"
#include "study/study.h"

namespace assay {

// One arm on one condition.
struct Cell {
  // "c007-eager-gpt2-25m-prefill-single_micro-b1" (+ "-n64"); unique, and safe as a folder's name
  std::string id;
  size_t arm = 0;  // indexes into the study
  size_t model = 0;
  size_t scenario = 0;
  Phase phase = Phase::kPrefill;
  int64_t new_tokens = 0;  // 0 in prefill
  int64_t batch = 1;
  size_t condition = 0;  // cells of one condition differ by arm alone
};

// Consecutive repetitions of one cell, committed at once and lost together.
struct Unit {
  int64_t index = 0;  // position in the plan
  size_t cell = 0;
  // 0 .. rounds(study) - 1; units of a round share the worker processes of their arm
  int64_t round = 0;
  int64_t block =
      0;  // counts up within the cell: whole cells, once a round; interleaved, its blocks
  int64_t first_repetition = 0;
  int64_t repetitions = 0;
  int64_t first_warmup = 0;       // repetition of the first of its warm-ups; below 0 if it has any
  int64_t warmups = 0;            // rows of them (cold); 0 except where the cell begins in a round
  bool first_of_round = false;    // of the cell's units
  bool last_of_round = false;     // optional stopping may add to it
  bool last_of_cell = false;      // its last round's last
  int64_t first_order_index = 0;  // order_index of its first row, warm-ups first
  int64_t rows() const { return warmups + repetitions; }
};

struct Plan {
  std::vector<Cell> cells;
  std::vector<Unit> units;  // in the order of the run
  // Warm-ups included, without the repetitions that optional stopping adds to a cell, and with all
  // rounds that stopping by decisions may leave out.
  int64_t rows = 0;
};

// rounds(study), which are the study's `processes` unless stopping decides, are the outermost loop,
// and models the next, so that one is loaded at a time. Each round goes through all cells with its
// share of their repetitions, as even as can be, in worker processes of its own: those of every
// cell are spread over the run. The order holds within a round and a model, and each draws its own:
// sequential: arm after arm, an arm's cells in the order of the file, the round's share of a cell
// in one unit. shuffled: the same units, in random order. interleaved: condition after condition;
// each repetition is a block, one unit of every arm, in a fresh random order for each block. The
// two sides (sides.h) of an arm are neighbours, and swap places from block to block.
Plan make_plan(const Study& study);

// The number of `total` that come before this part, if `parts` share them as evenly as can be: part
// i has those from part_begin(i) up to part_begin(i + 1).
constexpr int64_t part_begin(int64_t total, int64_t parts, int64_t part) {
  return total * part / parts;
}

// Canonical text of study and plan: its SHA-256 is the plan hash that resume compares.
Json plan_to_json(const Study& study, const Plan& plan);

}  // namespace assay
