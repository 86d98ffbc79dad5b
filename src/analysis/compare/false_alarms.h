// Rate of false alarms of a comparison on a bundle's own noise.
#pragma once

#include "analysis/compare/compare.h"
#include "base/process/thread_pool.h"

namespace assay {

struct SelfTest {
  int64_t splits = 0;
  bool every_split = false;                       // there are no others; else drawn at random
  int64_t processes = 0;                          // that were dealt
  int64_t alarms = 0;                             // splits in which some cell regresses
  int64_t differences = 0;                        // ... in which some cell differs at all
  std::optional<stats::Interval> alarm_interval;  // Wilson, of the rate
  std::optional<stats::Interval> difference_interval;
  std::optional<double> minimum_detectable;  // median over splits and cells, as a share
};

// Deals the worker processes of a bundle to two halves, those of one number to the same half in
// every cell, so that rows of one process, and of one time, stay together. Compares the halves as
// two bundles: nothing differs, so any difference is a false alarm. If there are no more than
// `splits` ways to deal them it takes each once, else that many at random. A half has half of the
// processes, so that it sees less than two whole bundles would; and both halves are of one run, so
// that differences from run to run don't show. bad_input if no cell has two processes and the rows
// that a comparison needs for each half.
Result<SelfTest> self_test(const Bundle& bundle, const CompareOptions& options, int64_t splits,
                           uint64_t seed, ThreadPool* pool);

Json self_test_to_json(const SelfTest& test, const CompareOptions& options);

}  // namespace assay
