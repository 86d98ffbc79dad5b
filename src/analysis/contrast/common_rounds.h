// Rounds over several strata: units of one round were served by one process of an arm.
//
// Strata of a run that was interrupted or resumed needn't have the same rounds, and processes are
// numbered within a cell. Rows tell their repetition, which is of one round in all strata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// Repetitions and process of one unit, which tell its round.
struct UnitSpan {
  int64_t first_repetition = 0;
  int64_t last_repetition = 0;
  int64_t process = 0;  // the number of its first row's
  bool operator==(const UnitSpan&) const = default;
};

struct CommonRounds {
  size_t count = 0;
  std::vector<std::vector<int64_t>> of;  // of each series the rounds of its units, from 0 on
  bool whole = true;                     // every series has one unit of each round, in one order
};

// Units whose repetitions overlap are of one round. Where overlaps are partial, cells repeated more
// often than planned (`stopping: {relative_ci: ...}`) and repetitions of one number are of
// different rounds; units of one process number are of one round then.
CommonRounds common_rounds(std::span<const std::vector<UnitSpan>> series);

}  // namespace assay
