// Judges if a measured row can be true: by its tokens, and by the speed of its arm's memory.
#pragma once

#include <cstddef>
#include <map>

#include "artifact/evidence.h"
#include "artifact/row.h"
#include "backend/message.h"
#include "harness/context.h"
#include "study/study.h"

namespace assay {

// Not for several threads. All references outlive it.
class RowJudge {
 public:
  RowJudge(const Study& study, RunContext& context) : study_(study), context_(context) {}

  // Limits by arm. Rows of arms without one aren't judged by it.
  void set_read_limits(std::map<size_t, ReadLimit> by_arm) { read_limits_ = std::move(by_arm); }
  // Begins a unit, which may have limits measured again a few times.
  void begin_unit();

  // Marks the arm's row a false success if its sample can't be true (artifact/row_rule.h). A sample
  // that seems too fast may only show that the limit was measured while others used the memory:
  // before the row is condemned the limit is measured again, for all arms that it was measured for.
  // `loaded` is of the worker that gave the sample.
  void judge(size_t arm, const LoadedReply& loaded, const SampleReply& sample, Row& row);

  // Puts the limit by which the arm's rows were judged into the evidence of its cell; the highest
  // one if it was measured again or by a later sitting, as no row that was judged ok by it is false
  // by a lower one. True if the evidence had another one before.
  bool add_read_limit(size_t arm, Evidence& evidence) const;

 private:
  void measure_limit_again(size_t arm, const LoadedReply& loaded);

  const Study& study_;
  RunContext& context_;
  std::map<size_t, ReadLimit> read_limits_;  // by arm
  int checks_left_ = 0;                      // of this unit
};

}  // namespace assay
