// One row of metrics.csv: one repetition of one cell, whatever became of it.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/counter.h"
#include "base/records/measured.h"
#include "base/records/optional_count.h"
#include "base/records/phase.h"
#include "base/result.h"
#include "base/tables/shared_text.h"

namespace assay {

enum class RowStatus { kOk, kError, kCrash, kTimeout, kOom, kFalseSuccess };
std::string_view row_status_name(
    RowStatus status);  // ok | error | crash | timeout | oom | false_success
std::optional<RowStatus> parse_row_status(std::string_view name);

// The repetition's increments of the counters that have a column NAME_delta.
class RowCounts {
 public:
  OptionalCount& operator[](Counter counter) { return counts_[index(counter)]; }
  OptionalCount operator[](Counter counter) const { return counts_[index(counter)]; }
  friend bool operator==(const RowCounts&, const RowCounts&) = default;

 private:
  static size_t index(Counter counter) {
    assert(static_cast<size_t>(counter) < kDeltaColumns);
    return static_cast<size_t>(counter);
  }
  std::array<OptionalCount, kDeltaColumns> counts_;
};

// Members that aren't counts or measured figures stand in the order of their columns; the order is
// fixed by the schema (docs/artifact-schema.md). An absent value is an empty field, never 0. Names
// are shared between rows: there may be millions.
struct Row : Measured {
  SharedText cell_id;
  SharedText backend;
  SharedText arm;
  SharedText model;
  SharedText dtype;
  SharedText quantization;  // empty: none was asked for or reported
  SharedText cache;         // dynamic | static
  SharedText compile_mode;  // eager, compiled, default, reduce-overhead, ...
  SharedText dynamic;       // true | false | auto; empty where the mode has no such thing
  SharedText padding;       // none | scenario | global
  Phase phase = Phase::kPrefill;
  SharedText scenario;
  SharedText prompt_id;
  int64_t batch = 1;
  int64_t prompt_tokens = 0;  // semantic: padding not counted; of one row of the batch
  int64_t padded_tokens = 0;  // length that the model saw
  int64_t new_tokens = 0;     // asked for; 0 in prefill
  int64_t repetition = 0;     // measured ones from 0; warm-ups -warmup .. -1
  int64_t block = 0;          // block of the order
  int64_t order_index = 0;    // position in the run as planned: 0, 1, 2, ... over all rows
  RowStatus status = RowStatus::kOk;
  SharedText error_class;         // exception class, signal name, "exit 1", ...; empty if ok
  bool cold = false;              // a warm-up, or the first call of its shape in its process
  std::optional<int64_t> tokens;  // produced, over the batch
  std::optional<double> tokens_per_s;
  RowCounts counts;  // of the repetition: columns of several schema versions
  std::optional<double>
      sm_clock_mhz;  // of the processor that computes: the CPU's where there is no GPU
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<bool> throttled;
  SharedText output_hash;     // token_hash of the tokens produced
  int64_t started_at_ns = 0;  // wall clock, Unix epoch
  // From schema version 2 on:
  std::optional<double> compile_ms_delta;
  std::optional<bool> fresh_cache;  // the unit began with empty cache folders of the compiler's
  // From schema version 3 on:
  OptionalCount process;  // which of the cell's worker processes: 0, 1, ...; absent: none came up

  friend bool operator==(const Row&, const Row&) = default;
};

// Puts a worker's count into the column that the counter has, if it has one.
void put_count(Row& row, Counter counter, int64_t count);

// Versions of the bundle, and so of its rows. A program reads all of these and writes the last.
inline constexpr int kOldestBundleSchemaVersion = 1;
inline constexpr int kBundleSchemaVersion = 8;

// The header's column names, in order, of that version: an older one lacks the last of them.
std::span<const std::string> row_columns(int64_t schema_version = kBundleSchemaVersion);

std::vector<std::string> row_to_fields(const Row& row);
// `object` names the row in errors ("prefill/metrics.csv line 7"). Wrong column count, an
// unparsable number, an unknown status: bad_input that names the column. Columns that the version
// lacks are absent.
Result<Row> row_from_fields(const std::vector<std::string>& fields, std::string_view object);
// The same, with the texts of many rows shared.
Result<Row> row_from_fields(std::span<const std::string_view> fields, TextPool& texts,
                            std::string_view object, int64_t schema_version = kBundleSchemaVersion);

}  // namespace assay
