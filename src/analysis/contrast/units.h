// Units of an analysis: the values that count as one observation each, and those of two arms that
// belong together.
//
// In a block that holds one repetition of each arm these ran one beside the other: they share the
// machine's state, and it cancels in their ratio (duet benchmarking; Bulej et al. 2020). And the
// state that a worker process gets when it starts makes it faster or slower for as long as it
// lives, so where a cell has several processes, those are what repeats, and rows only tell more of
// each. docs/statistics.md, "Units and pairs".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/contrast/blocks.h"
#include "analysis/findings/contrast.h"
#include "analysis/rows/samples.h"

namespace assay {

// Units of one group, in the order of the run.
struct UnitSeries {
  // Key that a unit has in common with the other arms' units of its pair: the repetition's number;
  // the round that a process served in, counted over the stratum's arms; a row's place.
  std::vector<int64_t> keys;
  std::vector<int64_t> rows;    // that the unit holds
  std::vector<double> mean_ms;  // of these
  std::vector<size_t> of_row;   // the place here of each warm row's unit
};

// One value a unit, whose plain mean is the mean over all rows: of units that hold equally many
// rows the units' own means, else m + U (n_u / N) (m_u - m), the linear part of the share of unit u
// of U, with n_u of N rows, in the mean m.
std::vector<double> unit_values(const UnitSeries& series);

// Groups of one stratum, by index.
struct GroupPair {
  size_t arm = 0;
  size_t baseline = 0;
};

// The units of two groups of a stratum. If the arms are paired, these are the repetitions that both
// groups have a warm row of, side by side: the machine's state in any other one has nothing to
// cancel with.
struct PairUnits {
  std::vector<double> arm;  // unit_values()
  std::vector<double> baseline;
  std::vector<double> arm_means;  // of each unit's rows
  std::vector<double> baseline_means;
  bool whole = true;            // no row was left out: both are their groups' unit_values()
  int64_t left_out = 0;         // repetitions that one of them lacks; of pairs alone
  std::vector<int64_t> keys{};  // of the arm's units; of pairs of both's
};

// The units of two series; `paired`: only the units that both have. It leaves `left_out` to its
// caller.
PairUnits pair_units(const UnitSeries& arm, const UnitSeries& baseline, bool paired);

// The series without the warm rows of the group that aren't `kept`, by their place; a unit of which
// none is kept has 0 rows, and counts in unit_values() with the mean of all.
UnitSeries without_rows(const UnitSeries& series, const Group& group,
                        const std::vector<bool>& kept);

class Units {
 public:
  // `order_recorded`: of the study, which pairs need (blocks.h). Processes are the unit of strata
  // of which every group with warm rows has several, and repetitions where they are not and arms
  // are paired. The samples outlive it.
  Units(const Samples& samples, bool order_recorded);

  ContrastUnit of(size_t stratum) const { return units_[stratum]; }
  // True if the stratum's arms are paired.
  bool paired(size_t stratum) const { return blocks_.of(stratum).paired(); }
  const Blocks& blocks() const { return blocks_; }
  const UnitSeries& series(size_t group) const { return series_[group]; }
  PairUnits pair(const GroupPair& pair) const;

 private:
  const Samples& samples_;
  Blocks blocks_;
  std::vector<ContrastUnit> units_;  // by stratum
  std::vector<UnitSeries> series_;   // by group
};

// The pairs of repetitions of one round, that is of the same two processes.
struct PairedProcess {
  int64_t number = 0;  // of the round; 0 where processes aren't the stratum's unit
  std::vector<double> base_ms;
  std::vector<double> cand_ms;  // each with that of base_ms at its place
};

// Warm repetitions of both sides by their number, of paired strata: those that one side lost, or
// that didn't run side by side, are left out. Rounds in their order.
std::vector<PairedProcess> pair_up(const Samples& samples, const Units& units, const Group& base,
                                   const Group& cand);

}  // namespace assay
