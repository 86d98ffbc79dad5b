// The judgement of false success.
#include "harness/outcome.h"

#include <cassert>

namespace assay {
namespace {

int64_t forward_passes(const WireShape& shape) {
  switch (shape.phase) {
    case WirePhase::kPrefill:
      return 1;
    case WirePhase::kKvDecode:
      return shape.new_tokens;
    case WirePhase::kE2eKv:
      return shape.new_tokens + 1;
  }
  return 1;
}

// Seconds below which the sample can't have read its weights; 0 where that can't be told.
double least_seconds(const SampleReply& sample, const WireShape& shape, const ReadLimit& limit) {
  if (!sample.read_bytes || limit.bytes_per_s <= 0) return 0;
  const double cached =
      static_cast<double>(limit.cache_bytes) * static_cast<double>(forward_passes(shape));
  const double bytes = static_cast<double>(*sample.read_bytes) - cached;
  return bytes > 0 ? bytes / (limit.bytes_per_s * (1 + kReadTolerance)) : 0;
}

}  // namespace

RowOutcome outcome_of(const WorkerFailure& failure) {
  switch (failure.kind) {
    case FailureKind::kError:
      return {RowStatus::kError, failure.error_class};
    case FailureKind::kCrash:
      return {RowStatus::kCrash, failure.error_class};
    case FailureKind::kTimeout:
      return {RowStatus::kTimeout, failure.error_class};
    case FailureKind::kOutOfMemory:
      return {RowStatus::kOom, failure.error_class};
    case FailureKind::kInterrupted:
      break;
  }
  assert(false && "an interrupted repetition makes no row");
  return {RowStatus::kError, failure.error_class};
}

RowOutcome judge_sample(const SampleReply& sample, const WireShape& shape,
                        const std::optional<ReadLimit>& limit) {
  const int64_t per_row = shape.phase == WirePhase::kPrefill ? 1 : shape.new_tokens;
  const int64_t expected = shape.batch * per_row;
  if (sample.tokens < expected) return {RowStatus::kFalseSuccess, "too_few_tokens"};
  if (sample.tokens > expected) return {RowStatus::kFalseSuccess, "too_many_tokens"};
  if (sample.non_finite) return {RowStatus::kFalseSuccess, kNonFinite};
  if (sample.latency_ns == 0) return {RowStatus::kFalseSuccess, "zero_latency"};
  const double seconds = static_cast<double>(sample.latency_ns) * 1e-9;
  if (limit && seconds < least_seconds(sample, shape, *limit)) {
    return {RowStatus::kFalseSuccess, kFasterThanMemory};
  }
  return {};
}

}  // namespace assay
