// Blocks of repetitions, by the rows: arms that ran side by side share whole blocks.
//
// Rows that share a block were measured side by side if the block holds one repetition of each arm
// and ends before the next one begins. Under `interleaved` order every block is whole; under
// `sequential` and `shuffled` order a block is a process's share of a cell, and is whole where that
// share is one repetition. docs/statistics.md, "Units and pairs".
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/findings/blocks.h"
#include "analysis/rows/samples.h"

namespace assay {

class Blocks {
 public:
  // `order_recorded`: the study says in which order its rows were measured, so that blocks and
  // places of rows are more than numbers that an import gave them.
  Blocks(const Samples& samples, bool order_recorded);

  // `blocks` and `whole` are 0 where the order isn't recorded.
  const StratumBlocks& of(size_t stratum) const { return strata_[stratum].summary; }
  // True if each arm in the row's block has one repetition there, side by side with the others'.
  bool beside(size_t stratum, const Row& row) const;
  // True if beside() holds for all rows of the stratum.
  bool all_beside(size_t stratum) const { return strata_[stratum].torn.empty(); }

 private:
  struct OfStratum {
    StratumBlocks summary;
    std::vector<int64_t> torn;  // the other blocks, ascending
  };
  std::vector<OfStratum> strata_;
};

// The blocks of the strata on which several arms were measured.
std::vector<StratumBlocks> blocks_of_contrasts(const Samples& samples, const Blocks& blocks);

}  // namespace assay
