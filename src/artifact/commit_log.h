// commits.jsonl: which bytes of the metrics files are committed, and their hashes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/row.h"
#include "base/json.h"
#include "base/result.h"

namespace assay {

// "prefill/metrics.csv": the name of a phase's metrics file, in commits and in the manifest.
std::string metrics_name(Phase phase);

// What one commit added to one metrics file.
struct CommittedBytes {
  uint64_t end = 0;    // length of the file after the commit
  std::string sha256;  // of the bytes from the former end to this one

  friend bool operator==(const CommittedBytes&, const CommittedBytes&) = default;
};

struct CommitRecord {
  int64_t unit = 0;
  int64_t rows = 0;                       // in the whole bundle, after this commit
  std::map<Phase, CommittedBytes> added;  // the files that grew
  Json note;

  friend bool operator==(const CommitRecord&, const CommitRecord&) = default;
};

// The commits so far. Each record carries the SHA-256 of the record before it and of its own text,
// so that a changed record is found without a manifest; the first is chained to the plan's hash.
struct CommitLog {
  std::vector<CommitRecord> records;
  std::string chain;        // of the last record; the plan's hash before the first
  uint64_t size_bytes = 0;  // of the whole records; what follows them was cut off while written

  int64_t rows() const { return records.empty() ? 0 : records.back().rows; }
  uint64_t committed_bytes(Phase phase) const;  // of the phase's metrics file
};

// The record's line, with its end. `chain` is replaced by the record's own.
std::string commit_line(const CommitRecord& record, std::string& chain);

// A last line without an end is left out, anything else that doesn't fit (changed bytes, a unit
// twice, lengths that shrink) is bad_input.
Result<CommitLog> parse_commit_log(std::string_view text, const std::string& plan_hash,
                                   std::string_view object);

// Whether `content`, a phase's metrics file, still holds the committed bytes: an error names the
// first commit whose bytes are missing or differ.
Status check_committed_bytes(const CommitLog& log, Phase phase, std::string_view content,
                             std::string_view object);

}  // namespace assay
