// What became of a repetition: a worker's failure or sample, judged.
#pragma once

#include <optional>
#include <string>

#include "artifact/row.h"
#include "backend/backend.h"
#include "backend/worker_client.h"

namespace assay {

struct RowOutcome {
  RowStatus status = RowStatus::kOk;
  std::string error_class;  // empty if ok

  friend bool operator==(const RowOutcome&, const RowOutcome&) = default;
};

// kInterrupted is none of a row's business: asserts.
RowOutcome outcome_of(const WorkerFailure& failure);

// A sample may claim success only if it produced every token it was asked for (prefill: the first
// of each row of the batch) and took at least the time in which the hardware can move what it says
// it read: read_bytes less what the last-level cache may have kept between passes, at the measured
// bandwidth and kReadTolerance. Classes: too_few_tokens, too_many_tokens, zero_latency,
// faster_than_memory, and non_finite where the worker says that the tokens were chosen by
// logits that aren't finite.
RowOutcome judge_sample(const SampleReply& sample, const WireShape& shape,
                     const std::optional<ReadLimit>& limit);

// The measured bandwidth is itself a lower bound of what the machine can do.
inline constexpr double kReadTolerance = 0.25;
inline constexpr const char* kFasterThanMemory = "faster_than_memory";

}  // namespace assay
