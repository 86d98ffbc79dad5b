// Compares samples with the memory's limit.
#include "harness/row_judge.h"

#include <algorithm>
#include <cstdint>

#include "artifact/row_rule.h"

namespace assay {
namespace {

constexpr int kLimitChecks = 3;

}  // namespace

void RowJudge::begin_unit() {
  checks_left_ = kLimitChecks;
}

void RowJudge::judge(size_t arm, const LoadedReply& loaded, const SampleReply& sample, Row& row) {
  if (sample.non_finite && !fault_of(row, {})) {  // tokens of nothing
    row.status = RowStatus::kFalseSuccess;
    row.error_class = kNonFinite;
    return;
  }
  const auto limit = read_limits_.find(arm);
  if (limit == read_limits_.end()) {
    mark_false_success(row, {});
    return;
  }
  const auto demand = [&]() -> ReadDemand {
    return {.read_bytes = static_cast<double>(sample.read_bytes.value_or(0)),
            .bytes_per_s = limit->second.bytes_per_s,
            .cache_bytes = static_cast<double>(limit->second.cache_bytes)};
  };
  const auto too_fast = [&] {
    const auto fault = fault_of(row, demand());
    return fault && fault->error_class == kFasterThanMemory;
  };
  while (checks_left_ > 0 && too_fast()) {
    --checks_left_;
    measure_limit_again(arm, loaded);
  }
  mark_false_success(row, demand());
}

void RowJudge::measure_limit_again(size_t arm, const LoadedReply& loaded) {
  const StudyArm& of = study_.arms[arm];
  const auto weights = static_cast<uint64_t>(loaded.weight_bytes.value_or(INT64_MAX));
  const auto again = context_.backends.at(of.backend)->read_limit(of, weights);
  if (!again) return;
  for (auto& [other, known] : read_limits_) {
    if (!share_processor(study_.arms[other], of)) continue;
    known.bytes_per_s = std::max(known.bytes_per_s, again->bytes_per_s);
  }
}

bool RowJudge::add_read_limit(size_t arm, Evidence& evidence) const {
  const auto limit = read_limits_.find(arm);
  if (limit == read_limits_.end()) return false;
  const auto before = evidence.read_limit;
  evidence.read_limit = {limit->second.bytes_per_s, limit->second.cache_bytes, kReadTolerance};
  if (before) {
    evidence.read_limit->bytes_per_s = std::max(before->bytes_per_s, limit->second.bytes_per_s);
    evidence.read_limit->cache_bytes = std::max(before->cache_bytes, limit->second.cache_bytes);
  }
  return evidence.read_limit != before;
}

}  // namespace assay
