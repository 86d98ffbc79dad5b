// The demands on a row before its `ok` is believed: one rule, by which the harness judges a new
// sample, `assay verify` a bundle, and the reader the rows that analyses are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/evidence.h"
#include "artifact/row.h"

namespace assay {

// Share by which a row may exceed the measured bandwidth, itself a lower bound of the machine's.
inline constexpr double kReadTolerance = 0.25;
inline constexpr std::string_view kFasterThanMemory = "faster_than_memory";

// A clock of nanoseconds can't have shown less than one, nor a run have waited for more than a
// year.
inline constexpr double kLeastLatency_ms = 1e-6;
inline constexpr double kMostLatency_ms = 366.0 * 24 * 3600 * 1000;

// Bytes that a repetition had to read, and the speed at which the memory can deliver them.
struct ReadDemand {
  double read_bytes = 0;   // at least; 0: not known
  double bytes_per_s = 0;  // from memory, measured; 0: not known
  double cache_bytes = 0;  // that the last-level cache may have kept, a forward pass
  double tolerance = kReadTolerance;

  // True if both figures are known: without either the speed of the row's memory isn't
  // judged.
  bool known() const { return read_bytes > 0 && bytes_per_s > 0; }
};

// The demand on a row of so many padded tokens, from its cell's evidence (`read_bytes` of that
// length, `read_limit`); a figure that is missing or not positive isn't known. The weights' bytes
// alone are no such figure: of a table that is looked up only rows are read.
ReadDemand read_demand(const Evidence& evidence, int64_t padded_tokens);

struct RowFault {
  std::string_view error_class;  // of the false success that the row is
  std::string problem;           // "expected ... on an ok row, found ..."
};

// Why a row that says ok can't be. An ok row has a latency and tokens; it produced every token that
// it was asked for and no other (prefill: the first of each row of the batch); its times are ones
// that a clock shows; and its latency is at least the time in which the hardware moves the bytes to
// be read, less those that the cache may have kept between passes, at the measured bandwidth and
// the tolerance. Classes: no_latency, no_tokens, too_few_tokens, too_many_tokens, zero_latency,
// impossible_latency, faster_than_memory. Absent: nothing speaks against it, or it isn't ok.
std::optional<RowFault> fault_of(const Row& row, const ReadDemand& demand);

// Makes an ok row that can't be ok the false success that it is; true if it was such a row.
bool mark_false_success(Row& row, const ReadDemand& demand);

}  // namespace assay
