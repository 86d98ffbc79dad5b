// Verification: hashes first, then the commits against the rows, then the rows on their own.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/listed_files.h"
#include "artifact/manifest.h"
#include "artifact/metrics_file.h"
#include "artifact/read_bundle.h"
#include "artifact/row_checks.h"
#include "artifact/sittings.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Names files in the folder that have no place there. Files of a running bundle come and go.
void add_strangers(const BundleListing& listing, const FileEntries& listed, bool complete,
                   std::vector<VerifyProblem>& problems) {
  for (const Error& error : listing.strange) problems.push_back(problem_of(error));
  if (!complete) return;
  for (const std::string& name : listing.empty_folders) {
    problems.push_back({name, "expected folders with something in them, found an empty one"});
  }
  for (const std::string& name : listing.files) {
    if (!listed.contains(name)) problems.push_back({name, "not in the manifest"});
  }
}

class Verifier {
 public:
  explicit Verifier(Folder folder) : folder_(std::move(folder)) {}

  Result<std::vector<VerifyProblem>> run();

 private:
  void add(std::string object, std::string problem) {
    problems_.push_back({std::move(object), std::move(problem)});
  }
  void add(const Error& error) { problems_.push_back(problem_of(error)); }
  // The file's text; a missing or unreadable one is a problem.
  std::optional<std::string> text_of(const std::string& name, uint64_t max_bytes = kMaxReadBytes);
  bool check_manifest();
  Status list_files();
  void check_entry(const std::string& name, const FileDigest& expected);
  void check_files();
  void check_commits();
  // The file's text, if it holds the committed bytes and no more.
  std::optional<std::string> check_grown(const CommitLog& log, const std::string& name);
  void check_cells(const CommitLog& log);
  bool is_damaged(const std::string& name) const {
    return std::ranges::find(problems_, name, &VerifyProblem::object) != problems_.end();
  }
  // Evidence and parity of files that nothing is wrong with so far.
  void read_records();
  void check_rows(const CommitLog& log);
  void check_requests(const CommitLog& log);

  Folder folder_;
  Bundle heading_;  // without rows
  int64_t version_ = kBundleSchemaVersion;
  FileEntries listed_;  // in the manifest
  BundleListing listing_;
  std::set<std::string> present_;  // of the listing's files
  std::vector<VerifyProblem> problems_;
};

std::optional<std::string> Verifier::text_of(const std::string& name, uint64_t max_bytes) {
  if (!folder_.has(name)) {
    add(name, "missing");
    return std::nullopt;
  }
  auto text = folder_.read(name, max_bytes);
  if (text) return *std::move(text);
  // Its message has the whole path; the table, the name within the bundle.
  Error error = std::move(text).error();
  const std::string path = folder_.path_of(name).string();
  if (error.message.starts_with(path)) error.message.replace(0, path.size(), name);
  add(error);
  return std::nullopt;
}

// False: there is nothing to hold the other files against.
bool Verifier::check_manifest() {
  const auto text = text_of(kManifestName);
  if (!text) return false;
  auto manifest = parse_manifest(*text, kManifestName);
  if (!manifest) {
    add(manifest.error());
    return false;
  }
  heading_.manifest = *std::move(manifest);
  version_ = heading_.manifest.value("schema_version", version_);  // checked by parse_manifest
  const auto complete = json_bool(heading_.manifest, "complete", kManifestName);
  if (!complete) add(complete.error());
  heading_.complete = complete.value_or(false);
  if (complete && !heading_.complete) {
    const std::string refusal = last_refusal(heading_.manifest);
    add(kManifestName, "expected a complete bundle, found an unfinished run" +
                           (refusal.empty() ? "" : ", which ended because " + refusal));
  }
  return true;
}

Status Verifier::list_files() {
  ASSAY_TRY(listing_, list_bundle(folder_));
  present_ = {listing_.files.begin(), listing_.files.end()};
  return {};
}

void Verifier::check_entry(const std::string& name, const FileDigest& expected) {
  if (!present_.contains(name)) return add(name, "missing");
  const auto found = hash_file(folder_, name, expected.size_bytes);
  if (!found) {
    add(found.error());
  } else if (found->size_bytes != expected.size_bytes) {
    add(name, fmt::format("expected {} bytes, found {}", expected.size_bytes, found->size_bytes));
  } else if (found->sha256 != expected.sha256) {
    add(name, fmt::format("expected sha256 {}, found {}", expected.sha256, found->sha256));
  }
}

void Verifier::check_files() {
  for (const auto& [name, expected] : listed_) check_entry(name, expected);
  add_strangers(listing_, listed_, heading_.complete, problems_);
}

std::optional<std::string> Verifier::check_grown(const CommitLog& log, const std::string& name) {
  const uint64_t committed = log.committed_bytes(name);
  if (committed == 0 && !present_.contains(name)) return std::nullopt;
  auto text = text_of(name, max_metrics_bytes());
  if (!text) return std::nullopt;
  if (const Status intact = check_committed_bytes(log, name, *text, name); !intact) {
    add(intact.error());
  }
  if (text->size() > committed) {
    add(name, fmt::format("expected {} bytes as committed, found {}", committed, text->size()));
    text->resize(committed);
  }
  return text;
}

// Files of cells that the manifest speaks of have been checked; in an unfinished bundle none is.
void Verifier::check_cells(const CommitLog& log) {
  for (const auto& [name, end] : log.ends) {
    if (name.starts_with("cells/")) check_grown(log, name);
  }
  if (heading_.complete) {
    for (const Error& error : commit_disagreements(listed_, log, version_)) add(error);
    return;
  }
  for (const auto& [name, committed] : log.replaced) check_entry(name, committed);
}

void Verifier::read_records() {
  for (const std::string& name : present_) {
    const std::string record = record_of_cell(name);
    if (record.empty() || is_damaged(name)) continue;
    const auto text = text_of(name);
    if (!text) continue;
    auto json = parse_json(*text, name);
    if (!json) {
      add(json.error());
      continue;
    }
    const std::string cell = fs::path(name).parent_path().filename().string();
    if (record == "parity.json") {
      heading_.parity[cell] = *std::move(json);
    } else if (auto evidence = evidence_from_json(*json, name)) {
      heading_.evidence[cell] = *std::move(evidence);
    } else {
      add(evidence.error());
    }
  }
}

void Verifier::check_rows(const CommitLog& log) {
  RowChecks rows(heading_);
  for (const Phase phase : kPhases) {
    const std::string name = metrics_name(phase);
    const auto text = check_grown(log, name);
    if (!text) continue;
    const Status parsed = for_each_row(*text, phase, version_, name, [&](const Result<Row>& row) {
      if (row) {
        rows.add(*row);
      } else {
        rows.add_unreadable(phase, row.error());
      }
    });
    if (!parsed) add(parsed.error());
  }
  std::ranges::copy(rows.problems(), std::back_inserter(problems_));
  check_requests(log);
  if (rows.rows() != log.rows()) {
    add(kCommitsName,
        fmt::format("expected {} as committed, found {}", counted(log.rows(), "row"), rows.rows()));
  }
}

void Verifier::check_requests(const CommitLog& log) {
  const auto requests = check_grown(log, kRequestsName);
  const auto times = check_grown(log, kTokenTimesName);
  if (!requests) return;
  const auto parsed = parse_requests(*requests, times.value_or(""), kRequestsName);
  if (!parsed) add(parsed.error());
}

void Verifier::check_commits() {
  const auto text = text_of(kCommitsName);
  const auto plan_hash = json_string(heading_.manifest, "plan_sha256", kManifestName);
  if (!plan_hash) add(plan_hash.error());
  if (!text || !plan_hash) return;
  const auto log = parse_commit_log(*text, *plan_hash, kCommitsName);
  if (!log) return add(log.error());
  if (text->size() > log->size_bytes) {
    add(kCommitsName, fmt::format("expected whole records, found {} bytes of a half-written one",
                                  text->size() - log->size_bytes));
  }
  if (auto sittings = read_sittings(folder_, heading_.manifest, *log)) {
    heading_.sittings = *std::move(sittings);
    heading_.environment = heading_.sittings.front().environment;
  } else {
    add(sittings.error());
  }
  check_cells(*log);
  read_records();
  check_rows(*log);
}

Result<std::vector<VerifyProblem>> Verifier::run() {
  if (!check_manifest()) return problems_;
  if (const Status listed = list_files(); !listed) {
    add(listed.error());
    return problems_;
  }
  if (auto listed = file_entries_from_json(heading_.manifest, kManifestName)) {
    listed_ = *std::move(listed);
    check_files();
  } else {
    add(listed.error());
  }
  check_commits();
  return problems_;
}

}  // namespace

Result<std::vector<VerifyProblem>> verify_bundle(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return bad_input("{}: expected a bundle's folder, found {}", path.string(),
                     error                     ? error.message()
                     : fs::exists(path, error) ? "a file"
                                               : "nothing");
  }
  ASSAY_TRY(Folder folder, Folder::open(path));
  return Verifier(std::move(folder)).run();
}

Result<std::vector<VerifyProblem>> verify_bundle(const Bundle& read) {
  if (!read.complete) return verify_bundle(read.folder);
  std::vector<VerifyProblem> problems;
  ASSAY_TRY(const Folder folder, Folder::open(read.folder));
  ASSAY_TRY(const FileEntries listed, file_entries_from_json(read.manifest, kManifestName));
  ASSAY_TRY(const BundleListing listing, list_bundle(folder));
  add_strangers(listing, listed, true, problems);
  RowChecks rows(read);
  auto false_ok = read.false_oks.begin();
  for (size_t i = 0; i < read.rows.size(); ++i) {
    if (false_ok == read.false_oks.end() || *false_ok != i) {
      rows.add(read.rows[i]);
      continue;
    }
    ++false_ok;
    Row as_written = read.rows[i];
    as_written.status = RowStatus::kOk;
    as_written.error_class = SharedText();
    rows.add(as_written);
  }
  std::ranges::copy(rows.problems(), std::back_inserter(problems));
  return problems;
}

}  // namespace assay
