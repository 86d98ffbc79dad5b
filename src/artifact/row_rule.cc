// The judgement of false success.
#include "artifact/row_rule.h"

#include <algorithm>
#include <limits>

#include "base/text/text.h"

namespace assay {
namespace {

int64_t tokens_due(const Row& row) {
  int64_t due = 0;
  const int64_t each = row.phase == Phase::kPrefill ? 1 : row.new_tokens;
  const bool beyond = __builtin_mul_overflow(row.batch, each, &due);
  return beyond ? std::numeric_limits<int64_t>::max() : due;
}

double forward_passes(const Row& row) {
  const auto steps = static_cast<double>(row.new_tokens);
  switch (row.phase) {
    case Phase::kPrefill:
      return 1;
    case Phase::kKvDecode:
      return steps;
    case Phase::kE2eKv:
    case Phase::kLoad:
      break;
  }
  return steps + 1;
}

// Milliseconds in which the row can't have read all its bytes; 0 if they or the speed are unknown.
double least_ms(const Row& row, const ReadDemand& demand) {
  if (!demand.known()) return 0;
  const double bytes = demand.read_bytes - demand.cache_bytes * forward_passes(row);
  return bytes > 0 ? bytes / (demand.bytes_per_s * (1 + demand.tolerance)) * 1e3 : 0;
}

// The first column with a time of the call that is beyond belief; empty: none.
std::string_view impossible_column(const Row& row) {
  for (const MeasuredColumn& column : kMeasuredColumns) {
    const auto& ms = row.*column.value;
    if (column.is_call && ms && !(*ms <= kMostLatency_ms)) return column.column;
  }
  return "";
}

}  // namespace

ReadDemand read_demand(const Evidence& evidence, int64_t padded_tokens) {
  ReadDemand demand;
  const auto bytes = evidence.read_bytes.find(padded_tokens);
  if (bytes == evidence.read_bytes.end() || !evidence.read_limit) return demand;
  const EvidenceReadLimit& limit = *evidence.read_limit;
  demand.read_bytes = std::max(0.0, static_cast<double>(bytes->second));
  demand.bytes_per_s = std::max(0.0, limit.bytes_per_s);
  demand.cache_bytes = static_cast<double>(limit.cache_bytes);
  demand.tolerance = std::max(0.0, limit.tolerance.value_or(kReadTolerance));
  return demand;
}

std::optional<RowFault> fault_of(const Row& row, const ReadDemand& demand) {
  if (row.status != RowStatus::kOk) return std::nullopt;
  if (!row.latency_ms)
    return RowFault{"no_latency", "expected latency_ms on an ok row, found none"};
  if (!row.tokens) return RowFault{"no_tokens", "expected tokens on an ok row, found none"};
  // The requests of a run under load say themselves what they lack.
  const int64_t due = row.phase == Phase::kLoad ? *row.tokens : tokens_due(row);
  if (*row.tokens != due) {
    return RowFault{
        *row.tokens < due ? "too_few_tokens" : "too_many_tokens",
        fmt::format("expected {} on an ok row of batch {} and {}, found {}", counted(due, "token"),
                    row.batch, counted(row.new_tokens, "new token"), *row.tokens)};
  }
  const double ms = *row.latency_ms;
  if (ms == 0) return RowFault{"zero_latency", "expected a latency on an ok row, found 0 ms"};
  const std::string_view column = impossible_column(row);
  if (!(ms >= kLeastLatency_ms) || !column.empty()) {
    const bool other = !column.empty() && column != kMeasuredColumns[0].column;
    return RowFault{"impossible_latency",
                    fmt::format("expected times of 1 ns to a year on an ok row, found {} ms{}", ms,
                                other ? fmt::format(", and {} of more than a year", column) : "")};
  }
  const double least = least_ms(row, demand);
  if (ms < least) {
    return RowFault{kFasterThanMemory,
                    fmt::format("expected at least {:.4g} ms on an ok row that reads {:.4g} bytes "
                                "at {:.4g} bytes/s, found {:.4g} ms",
                                least, demand.read_bytes, demand.bytes_per_s, ms)};
  }
  return std::nullopt;
}

bool mark_false_success(Row& row, const ReadDemand& demand) {
  const auto fault = fault_of(row, demand);
  if (!fault) return false;
  row.status = RowStatus::kFalseSuccess;
  row.error_class = std::string(fault->error_class);
  return true;
}

}  // namespace assay
