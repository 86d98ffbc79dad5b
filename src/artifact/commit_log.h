// commits.jsonl: which bytes of the metrics files are committed, and their hashes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "artifact/row.h"
#include "base/records/json.h"
#include "base/result.h"

namespace assay {

// "prefill/metrics.csv": the name of a phase's metrics file, in commits and in the manifest.
std::string metrics_name(Phase phase);
// Requests of runs under load, and the times of their tokens (load/sent_request.h).
inline constexpr const char* kRequestsName = "load/requests.csv";
inline constexpr const char* kTokenTimesName = "load/token_times.csv";
// True for the files that grow with rows: those of metrics, and these two.
bool is_of_rows(std::string_view name);

// Bytes that one commit added to a file that only grows: a metrics file, or a cell's stderr.log.
struct CommittedBytes {
  uint64_t end = 0;    // length of the file after the commit
  std::string sha256;  // of the bytes from the former end to this one

  friend bool operator==(const CommittedBytes&, const CommittedBytes&) = default;
};

struct CommitRecord {
  std::optional<int64_t> unit;                  // absent: only files of cells
  int64_t rows = 0;                             // in the whole bundle, after this commit
  std::map<std::string, CommittedBytes> added;  // the files that grew, by name in the bundle
  Json note;
  FileEntries replaced = {};  // files that are, whole, as said here from this commit on

  friend bool operator==(const CommitRecord&, const CommitRecord&) = default;
};

// The commits so far. Each record carries the SHA-256 of the record before it and of its own text,
// so that a changed record is found without a manifest; the first is chained to the plan's hash.
struct CommitLog {
  std::vector<CommitRecord> records;
  std::vector<size_t> units;             // places in `records` of those that close a unit
  std::map<std::string, uint64_t> ends;  // of every file that grew: its committed length
  std::map<std::string, std::vector<size_t>> grew;  // places in `records` that let the file grow
  FileEntries replaced;     // of every file that was replaced: its committed content
  std::string chain;        // of the last record; the plan's hash before the first
  uint64_t size_bytes = 0;  // of the whole records; a last one that was cut off doesn't count

  int64_t rows() const { return records.empty() ? 0 : records.back().rows; }
  uint64_t committed_bytes(const std::string& name) const;
  uint64_t committed_bytes(Phase phase) const { return committed_bytes(metrics_name(phase)); }
};

// The record's line, with its end. `chain` is replaced by the record's own.
std::string commit_line(const CommitRecord& record, std::string& chain);

// A last line without an end is left out, anything else that doesn't fit (changed bytes, a unit
// twice, lengths that shrink) is bad_input.
Result<CommitLog> parse_commit_log(std::string_view text, const std::string& plan_hash,
                                   std::string_view object);

// Checks that `content`, of a file that grows, still begins with the committed bytes. The error
// names the first commit whose bytes are missing or differ.
Status check_committed_bytes(const CommitLog& log, const std::string& name,
                             std::string_view content, std::string_view object);

}  // namespace assay
