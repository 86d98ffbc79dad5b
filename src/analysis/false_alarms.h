// How often a comparison raises a false alarm on a bundle's own noise.
#pragma once

#include "analysis/compare.h"
#include "base/thread_pool.h"

namespace assay {

struct SelfTest {
  int64_t splits = 0;
  int64_t alarms = 0;                             // splits in which some cell regresses
  int64_t differences = 0;                        // ... in which some cell differs at all
  std::optional<stats::Interval> alarm_interval;  // Wilson, of the rate
  std::optional<stats::Interval> difference_interval;
  std::optional<double> minimum_detectable;  // median over splits and cells, as a share
};

// Deals the rows of every cell to two halves at random, compares the halves as two bundles, again
// and again: nothing differs, so whatever differs is a false alarm. A half has half of the rows, so
// that it sees less than two whole bundles would. bad_input where no cell has rows for two halves.
Result<SelfTest> self_test(const Bundle& bundle, const CompareOptions& options, int64_t splits,
                           uint64_t seed, ThreadPool* pool);

Json self_test_to_json(const SelfTest& test, const CompareOptions& options);

}  // namespace assay
