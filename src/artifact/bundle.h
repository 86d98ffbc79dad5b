// The bundle on disk: written append-only while a study runs, sealed by hashes at its end, read and
// verified afterwards. docs/artifact-schema.md describes every file.
//
//   manifest.json              schema version, plan hash, identity, completion, hash of every file
//   commits.jsonl              one record a committed unit, or files of cells without one: the
//                              files' lengths or hashes from it on
//   study.yaml environment.json
//   environment-N.json     the environment of each resume that went on to measure, N from 2 on
//   PHASE/metrics.csv          rows
//   load/requests.csv load/token_times.csv   requests of phase load, whose rows are runs
//   cells/CELL/evidence.json parity.json stderr.log
//
// Crash safety: a row is in the kernel before append() returns; a unit counts only once its commit
// record is on the device (the files that it names are synced before it). Resume takes every file
// back to the last commit, and refuses a bundle in which a committed byte has changed: only
// committed bytes are ever sealed. A later sitting that has rows has its environment-N.json in the
// manifest. Every write is by the folder's descriptor and follows no link (base/files/folder.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "artifact/evidence.h"
#include "artifact/row.h"
#include "base/files/folder.h"
#include "base/records/json.h"
#include "base/result.h"
#include "load/sent_request.h"

namespace assay {

// The content that a bundle begins with.
struct BundleHeader {
  std::string study_yaml;  // as the user wrote it, byte for byte
  std::string plan_hash;   // SHA-256 of the canonical plan: resume refuses another plan
  Json environment;        // the identity module's long form
  Json identity;           // the six-tuple
  Json study;  // {name, baseline, seed, order, warmup, repetitions, processes, arms, require}: for
               // readers of the rows, so that they needn't parse the study
  int64_t started_at_ns = 0;
  std::string assay_version;
};

// Rows by status, as manifests and documents have it: {"ok": 20, "timeout": 1}.
Json status_counts_to_json(const std::map<RowStatus, int64_t>& rows_by_status);

// A refusal to commit: why the measurements since the last commit can't be trusted, and the record
// of it that the manifest keeps.
struct CommitRefusal {
  std::string message;  // one line
  Json record;          // an object
};
using CommitCheck = std::function<std::optional<CommitRefusal>()>;

class BundleWriter {
 public:
  // Makes the folder. One that exists and isn't empty: bad_input that suggests --resume. A place
  // that can't be written: bad_input; a full disk: environment_error.
  static Result<BundleWriter> create(FileSystem& files, const std::filesystem::path& folder,
                                     const BundleHeader& header);
  // Opens an unfinished bundle of this schema version and drops everything that was not committed.
  // A run that was stopped before there was a bundle (no folder, or one without a manifest and with
  // nothing foreign) gets a new one. bad_input: an older schema version, another plan, another
  // identity (rows of two machines or builds don't mix), a sealed bundle, another writer that still
  // runs (it holds an flock on commits.jsonl), committed bytes that have changed, sittings that
  // don't fit the commits.
  static Result<BundleWriter> resume(FileSystem& files, const std::filesystem::path& folder,
                                     const BundleHeader& header);
  BundleWriter(BundleWriter&&) noexcept;
  BundleWriter& operator=(BundleWriter&&) noexcept;
  ~BundleWriter();

  const std::filesystem::path& folder() const;
  // Plan indexes of the units whose rows are safe; with any note (Json) that their commit carried.
  const std::map<int64_t, Json>& committed_units() const;

  // After resume() of a bundle that was there: keeps the header's environment as that of a further
  // sitting, with the units and rows committed so far. Further calls do nothing, nor does one after
  // create().
  // For work whose outcome isn't rows (parity); append() calls it too.
  Status begin_sitting();
  // `check` runs before every commit and before the seal. If it refuses, the call is an
  // environment_error with the refusal's message and commits nothing; the manifest's list
  // "refusals" gets the record with that message.
  void check_commits(CommitCheck check);
  // Appends to the metrics file of the row's phase. Once this, begin_sitting() or commit_unit() has
  // failed, every later call of them, and seal(), fails with the same error: earlier commits
  // stay valid.
  Status append(const Row& row);
  // Appends a request of the run that the cell's row of this repetition is; the unit's commit
  // covers both. Fails as append() does.
  Status append_request(const std::string& cell_id, int64_t run, const SentRequest& request);
  // Closes the unit, which no commit closed before: everything appended since the last commit
  // belongs to it. `note` is kept in the record for resume (stopping decisions, order
  // state).
  Status commit_unit(int64_t unit_index, const Json& note);
  // Writes cells/CELL/NAME, which has this content from the next commit on; NAME is evidence.json
  // or parity.json.
  Status write_cell_json(const std::string& cell_id, const std::string& name, const Json& content);
  // Appends to cells/CELL/stderr.log; counts from the next commit on, as rows do.
  Status append_log(const std::string& cell_id, std::string_view bytes);
  // A path for another process to write cells/CELL/NAME to, by this writer's descriptor: good as
  // long as this process lives, until the next commit. Its last component ends as NAME does.
  Result<std::filesystem::path> offer_cell_file(const std::string& cell_id,
                                                const std::string& name);
  // Makes the content written to the offered path the file's from the next commit on; nothing
  // written is fine. An offer that wasn't taken is removed by that commit.
  Status take_cell_file(const std::string& cell_id, const std::string& name);
  // Commits the files of cells without closing a unit: no row that was appended since the last
  // commit. Does nothing where nothing was written.
  Status commit_cells();

  // Hashes every committed file into the manifest and marks the bundle complete. No row may be
  // uncommitted (cells are committed by this), and no other call may follow. bad_input: a committed
  // byte isn't there any more.
  Status seal(const Json& completion);

 private:
  struct Impl;
  explicit BundleWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One run into a bundle: the first, or a resume that went on to measure.
struct Sitting {
  std::string started_at;  // UTC
  int64_t started_at_ns = 0;
  int64_t units_before = 0;  // committed before it
  // Rows committed before it. Units are committed in the order of the plan, so its own rows are
  // those from this place in Bundle::rows on, up to the next sitting's.
  int64_t rows_before = 0;
  Json environment;
};

// A bundle in memory, sealed or not (`complete` tells).
struct Bundle {
  std::filesystem::path folder;
  Json manifest;
  Json environment;               // of the first sitting
  std::vector<Sitting> sittings;  // the first included
  std::string study_yaml;
  bool complete = false;
  bool rows_alone = false;                   // of read_kept_rows()
  std::vector<Json> unit_notes;              // of the commits, in their order
  std::vector<Row> rows;                     // by order_index
  std::vector<LoadedRequest> requests{};     // of phase load, in the order of their file
  std::map<std::string, Evidence> evidence;  // by cell_id, where present
  std::map<std::string, Json> parity;        // by cell_id, where present
  // Places in `rows` of those that the file calls ok and that can't be (row_rule.h): here they are
  // false_success, with their class.
  std::vector<size_t> false_oks;
  // Other ok rows that weren't held against the speed of memory, as their cell's evidence has no
  // read_limit, or no read_bytes of their length.
  int64_t speed_unjudged = 0;
};

// A sealed bundle is held against its manifest, whether a file is read or not (read_bundle.h says
// what is checked). Rows past the last commit of an unfinished bundle are left out; the files read
// are checked against the entries that commits and manifest have for them. bad_input: a file that
// doesn't fit or is missing, a schema version from the future, a sitting that doesn't fit the
// commits, a row that doesn't parse.
Result<Bundle> read_bundle(const std::filesystem::path& folder);

// Reads a bundle of which only the rows are kept: PHASE/metrics.csv of any schema version, and
// origin.json, which has the manifest's members about them (docs/artifact-schema.md). No hash
// vouches for these rows, so every output made of them has to state `rows_alone`. bad_input: no
// origin.json, rows that don't parse, no rows, sittings that don't follow one
// another.
inline constexpr const char* kOriginName = "origin.json";
Result<Bundle> read_kept_rows(const std::filesystem::path& folder);
// read_kept_rows() where the folder has an origin.json and no manifest, else read_bundle().
Result<Bundle> read_bundle_or_rows(const std::filesystem::path& folder);

// The cell's cells/CELL/trace.json.gz as it lies there, packed, and checked as read_bundle() does.
// bad_input where there is none.
Result<std::string> read_trace(const Bundle& bundle, const std::string& cell_id);

// One finding of verify: a file (or row), and its fault.
struct VerifyProblem {
  std::string object;
  std::string problem;  // "expected sha256 ..., found ...", "not in the manifest", "missing", ...
};

// Checks every file against the manifest's hashes (changed, missing, added bytes and files; derived
// files, report.md, report.html, plots/*.svg and analysis/*, may be added), that there is nothing
// but files and folders with something in them (plots/ and analysis/ may be empty: a program that
// was killed as it began the report leaves them so), every row against the schema and the rule of
// ok rows (row_rule.h), commits against files, rows and sittings, rows against one another (a
// repetition twice, processes of a cell that don't count up). Empty: the bundle is whole.
Result<std::vector<VerifyProblem>> verify_bundle(const std::filesystem::path& folder);

}  // namespace assay
