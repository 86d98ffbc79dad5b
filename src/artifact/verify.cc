// Verification: hashes first, then the commits against the rows, then the rows on their own.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "artifact/metrics_file.h"
#include "artifact/row_rule.h"
#include "artifact/sittings.h"
#include "base/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A file with more problems than this is summed up: a table of thousands tells no more.
constexpr size_t kMaxProblemsPerFile = 20;

// Whether status and error_class fit one another.
std::optional<std::string> status_problem(const Row& row) {
  const bool ok = row.status == RowStatus::kOk;
  if (!ok && row.error_class.empty()) return "expected an error_class, found none";
  if (ok && !row.error_class.empty()) {
    return fmt::format("expected no error_class on an ok row, found \"{}\"", row.error_class);
  }
  return std::nullopt;
}

// Numbers that mostly come in ascending order, of which there may be millions: 8 bytes each.
class SeenNumbers {
 public:
  // False: it was there.
  bool add(int64_t number) {
    if (ascending_.empty() || number > ascending_.back()) {
      ascending_.push_back(number);
      return true;
    }
    if (std::ranges::binary_search(ascending_, number)) return false;
    return others_.insert(number).second;
  }

 private:
  std::vector<int64_t> ascending_;
  std::set<int64_t> others_;  // each below the last of the ascending ones
};

class Verifier {
 public:
  explicit Verifier(Folder folder) : folder_(std::move(folder)) {}

  Result<std::vector<VerifyProblem>> run();

 private:
  void add(std::string object, std::string problem) {
    problems_.push_back({std::move(object), std::move(problem)});
  }
  // Every message is "OBJECT: expected ...".
  void add(const Error& error) {
    const size_t split = error.message.find(": expected");
    if (split == std::string::npos) return add("", error.message);
    add(error.message.substr(0, split), error.message.substr(split + 2));
  }
  // The file's text; a missing or unreadable one is a problem.
  std::optional<std::string> text_of(const std::string& name, uint64_t max_bytes = kMaxReadBytes);
  bool check_manifest();
  Status list_files();
  void check_entry(const std::string& name, const FileDigest& expected);
  void check_files();
  void check_commits();
  // The file's text, if it holds the committed bytes and no more.
  std::optional<std::string> check_grown(const CommitLog& log, const std::string& name);
  void check_metrics(const CommitLog& log, Phase phase);
  void check_cells(const CommitLog& log);
  void check_rows(std::string_view text, Phase phase);
  // A cell's processes are numbered as they came. Nothing: the row's fits those before it.
  std::optional<std::string> process_problem(const Row& row);
  std::optional<std::string> row_problem(const Row& row);
  const Evidence& evidence_of(const std::string& cell_id);

  Folder folder_;
  Json manifest_;
  int64_t version_ = kBundleSchemaVersion;
  bool complete_ = false;
  FileEntries listed_;  // in the manifest
  std::set<std::string> present_;
  std::vector<VerifyProblem> problems_;
  int64_t rows_ = 0;
  std::map<std::string, SeenNumbers> repetitions_;  // by cell_id
  std::map<std::string, int64_t> processes_;        // by cell_id: how many so far
  std::map<std::string, Evidence> evidence_;        // by cell_id
};

// Empty where there is none that can be read: what is wrong with its text is said elsewhere.
const Evidence& Verifier::evidence_of(const std::string& cell_id) {
  const auto [known, fresh] = evidence_.try_emplace(cell_id);
  if (fresh) {
    const std::string name = fmt::format("cells/{}/evidence.json", cell_id);
    const auto text = folder_.read(name);
    if (!text) return known->second;
    const auto json = parse_json(*text, name);
    if (!json) return known->second;
    if (auto read = evidence_from_json(*json, name)) {
      known->second = *std::move(read);
    } else {
      add(read.error());
    }
  }
  return known->second;
}

std::optional<std::string> Verifier::row_problem(const Row& row) {
  if (auto problem = status_problem(row)) return problem;
  if (row.status != RowStatus::kOk) return std::nullopt;
  const auto fault = fault_of(row, read_demand(evidence_of(row.cell_id), row.padded_tokens));
  if (!fault) return std::nullopt;
  return fmt::format("{} ({})", fault->problem, fault->error_class);
}

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
  manifest_ = *std::move(manifest);
  version_ = manifest_.value("schema_version", version_);  // checked by parse_manifest
  const auto complete = json_bool(manifest_, "complete", kManifestName);
  if (!complete) add(complete.error());
  complete_ = complete.value_or(false);
  if (complete && !complete_) {
    const std::string refusal = last_refusal(manifest_);
    add(kManifestName, "expected a complete bundle, found an unfinished run" +
                           (refusal.empty() ? "" : ", which ended because " + refusal));
  }
  return true;
}

// What lies in the folder, and what has no place there.
Status Verifier::list_files() {
  ASSAY_TRY(BundleListing listing, list_bundle(folder_));
  for (const Error& error : listing.strange) add(error);
  present_ = {listing.files.begin(), listing.files.end()};
  if (!complete_) return {};  // files of a running bundle come and go
  for (const std::string& name : listing.empty_folders) {
    add(name, "expected folders with something in them, found an empty one");
  }
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
  if (!complete_) return;
  for (const std::string& name : present_) {
    if (!listed_.contains(name)) add(name, "not in the manifest");
  }
}

std::optional<std::string> Verifier::process_problem(const Row& row) {
  if (!row.process) return std::nullopt;
  int64_t& known = processes_[row.cell_id.str()];
  const int64_t last = std::max<int64_t>(known - 1, 0);
  if (*row.process < last || *row.process > known) {
    return fmt::format("expected process {}{}, found {}", last,
                       known > last ? fmt::format(" or {}", known) : "", *row.process);
  }
  known = *row.process + 1;
  return std::nullopt;
}

void Verifier::check_rows(std::string_view text, Phase phase) {
  const std::string name = metrics_name(phase);
  size_t found = 0;
  const auto report = [&](const Error& error) {
    if (++found <= kMaxProblemsPerFile) add(error);
  };
  int64_t line = 1;
  const Status parsed = for_each_row(text, phase, version_, name, [&](const Result<Row>& row) {
    ++line;
    ++rows_;
    if (!row) return report(row.error());
    const std::string object = fmt::format("{} row {}", name, line - 1);
    if (const auto problem = row_problem(*row)) {
      report({ErrorKind::kBadInput, object + ": " + *problem});
    }
    if (const auto problem = process_problem(*row)) {
      report({ErrorKind::kBadInput, object + ": " + *problem});
    }
    if (!repetitions_[row->cell_id].add(row->repetition)) {
      report({ErrorKind::kBadInput,
              fmt::format("{}: expected each repetition of a cell once, found {} of {} again",
                          object, row->repetition, row->cell_id)});
    }
  });
  if (!parsed) add(parsed.error());
  if (found > kMaxProblemsPerFile) {
    add(name, fmt::format("{} with problems",
                          counted(static_cast<int64_t>(found - kMaxProblemsPerFile), "more row")));
  }
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

void Verifier::check_metrics(const CommitLog& log, Phase phase) {
  if (const auto text = check_grown(log, metrics_name(phase))) check_rows(*text, phase);
}

// Files of cells that the manifest speaks of have been checked; in an unfinished bundle none is.
void Verifier::check_cells(const CommitLog& log) {
  for (const auto& [name, end] : log.ends) {
    if (name.starts_with("cells/")) check_grown(log, name);
  }
  for (const auto& [name, committed] : log.replaced) {
    const auto it = listed_.find(name);
    if (it == listed_.end()) {
      check_entry(name, committed);
    } else if (it->second != committed) {
      add(kManifestName, fmt::format("expected sha256 {} of {} as committed, found {}",
                                     committed.sha256, name, it->second.sha256));
    }
  }
}

void Verifier::check_commits() {
  const auto text = text_of(kCommitsName);
  const auto plan_hash = json_string(manifest_, "plan_sha256", kManifestName);
  if (!plan_hash) add(plan_hash.error());
  if (!text || !plan_hash) return;
  const auto log = parse_commit_log(*text, *plan_hash, kCommitsName);
  if (!log) return add(log.error());
  if (text->size() > log->size_bytes) {
    add(kCommitsName, fmt::format("expected whole records, found {} bytes of a half-written one",
                                  text->size() - log->size_bytes));
  }
  if (const auto sittings = read_sittings(folder_, manifest_, *log); !sittings) {
    add(sittings.error());
  }
  for (Phase phase : kPhases) check_metrics(*log, phase);
  check_cells(*log);
  if (rows_ != log->rows()) {
    add(kCommitsName,
        fmt::format("expected {} as committed, found {}", counted(log->rows(), "row"), rows_));
  }
}

Result<std::vector<VerifyProblem>> Verifier::run() {
  if (!check_manifest()) return problems_;
  if (const Status listed = list_files(); !listed) {
    add(listed.error());
    return problems_;
  }
  if (auto listed = file_entries_from_json(manifest_, kManifestName)) {
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

}  // namespace assay
