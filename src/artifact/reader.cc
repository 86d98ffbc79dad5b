// Reads a bundle into memory, whether its run has ended or not.
#include <sys/stat.h>

#include <algorithm>
#include <future>
#include <unordered_map>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/listed_files.h"
#include "artifact/manifest.h"
#include "artifact/metrics_file.h"
#include "artifact/read_bundle.h"
#include "artifact/row_rule.h"
#include "artifact/sittings.h"
#include "base/records/lenient_json.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// 0 where it can't be told.
uint64_t size_of(const Folder& folder, const std::string& name) {
  const auto file = folder.open_file(name);
  struct stat info {};
  return file && ::fstat(file->get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

// The committed rows, and whether their bytes are those that were committed and, in a sealed
// bundle, listed: found out beside the parsing, for a large file takes as long to hash as to read.
Status read_rows(const Folder& folder, const CommitLog& log, const ListedFiles& files, Phase phase,
                 int64_t schema_version, Bundle& bundle) {
  const uint64_t committed = log.committed_bytes(phase);
  if (committed == 0) return {};
  const std::string name = metrics_name(phase);
  const std::string path = folder.path_of(name).string();
  ASSAY_TRY(const std::string text, folder.read(name, max_metrics_bytes()));
  Status intact;
  auto hashing = std::async([&] {
    intact = check_committed_bytes(log, name, text, path);
    if (intact && files.complete()) intact = files.check_text(name, text);
  });
  Status status;
  if (text.size() >= committed) {
    const Status parsed = for_each_row(std::string_view(text).substr(0, committed), phase,
                                       schema_version, path, [&](Result<Row> row) {
                                         if (row) {
                                           bundle.rows.push_back(*std::move(row));
                                         } else if (status) {
                                           status = std::unexpected(std::move(row).error());
                                         }
                                       });
    if (!parsed) status = parsed;
  }
  hashing.get();
  // Bytes that were changed explain a row that doesn't parse, and not the other way about.
  ASSAY_CHECK(std::move(intact));
  return status;
}

// The committed bytes of a file that grows; empty where there is none.
Result<std::string> read_grown(const Folder& folder, const CommitLog& log, const ListedFiles& files,
                               const std::string& name) {
  const uint64_t committed = log.committed_bytes(name);
  if (committed == 0) return std::string();
  ASSAY_TRY(std::string text, folder.read(name, max_metrics_bytes()));
  ASSAY_CHECK(check_committed_bytes(log, name, text, folder.path_of(name).string()));
  if (files.complete()) ASSAY_CHECK(files.check_text(name, text));
  text.resize(committed);
  return text;
}

Status read_requests(const Folder& folder, const CommitLog& log, const ListedFiles& files,
                     Bundle& bundle) {
  ASSAY_TRY(const std::string requests, read_grown(folder, log, files, kRequestsName));
  ASSAY_TRY(const std::string times, read_grown(folder, log, files, kTokenTimesName));
  if (requests.empty()) return {};
  ASSAY_TRY(bundle.requests,
            parse_requests(requests, times, folder.path_of(kRequestsName).string()));
  return {};
}

Status read_record(const Folder& folder, const ListedFiles& files, const std::string& name,
                   Bundle& bundle) {
  const std::string cell = fs::path(name).parent_path().filename().string();
  ASSAY_TRY(Json json, files.read_json(name));
  if (record_of_cell(name) == "parity.json") {
    bundle.parity[cell] = std::move(json);
    return {};
  }
  ASSAY_TRY(bundle.evidence[cell], evidence_from_json(json, folder.path_of(name).string()));
  return {};
}

// A file that no reader uses, such as a cell's log.
Status check_unread(const Folder& folder, const CommitLog& log, const ListedFiles& files,
                    const std::string& name) {
  if (!log.ends.contains(name)) return files.check(name);
  ASSAY_TRY(const std::string text, files.read(name, max_metrics_bytes()));
  return check_committed_bytes(log, name, text, folder.path_of(name).string());
}

// Reads evidence and parity of every cell; for a sealed bundle it also checks that each further
// file that its manifest lists is there with its length and hash.
Status read_cells(const Folder& folder, const CommitLog& log, const ListedFiles& files,
                  Bundle& bundle) {
  ASSAY_TRY(const auto present, list_bundle_files(folder));
  for (const std::string& name : present) {
    if (!record_of_cell(name).empty()) ASSAY_CHECK(read_record(folder, files, name, bundle));
  }
  if (!files.complete()) return {};
  for (const auto& [name, entry] : files.entries()) {
    const bool read_elsewhere = is_of_rows(name) || name == kStudyName || name == kCommitsName ||
                                name == kEnvironmentName || sitting_number(name);
    const bool read_here =
        !record_of_cell(name).empty() && std::ranges::binary_search(present, name);
    if (read_elsewhere || read_here) continue;
    ASSAY_CHECK(check_unread(folder, log, files, name));
  }
  return {};
}

// The demand on a cell's rows of one length, looked up once: rows of one cell share their text.
class Demands {
 public:
  explicit Demands(const std::map<std::string, Evidence>& evidence) : evidence_(evidence) {}

  const ReadDemand& of(const Row& row) {
    const auto [known, fresh] = known_.try_emplace(Key{&row.cell_id.str(), row.padded_tokens});
    if (fresh) {
      const auto of_cell = evidence_.find(row.cell_id);
      if (of_cell != evidence_.end()) {
        known->second = read_demand(of_cell->second, row.padded_tokens);
      }
    }
    return known->second;
  }

 private:
  using Key = std::pair<const std::string*, int64_t>;
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.first) ^
             static_cast<size_t>(key.second) * 0x9E3779B97F4A7C15ull;
    }
  };
  const std::map<std::string, Evidence>& evidence_;
  std::unordered_map<Key, ReadDemand, Hash> known_;
};

// Rows that say ok and can't be, by the one rule for it.
void judge_rows(Bundle& bundle) {
  Demands demands(bundle.evidence);
  for (size_t i = 0; i < bundle.rows.size(); ++i) {
    Row& row = bundle.rows[i];
    if (row.status != RowStatus::kOk) continue;
    const ReadDemand& demand = demands.of(row);
    if (mark_false_success(row, demand)) {
      bundle.false_oks.push_back(i);
    } else if (!demand.known()) {
      ++bundle.speed_unjudged;
    }
  }
}

// The error for a folder without a manifest, with the reason if it is known.
Status check_has_manifest(const Folder& folder) {
  if (folder.has(kManifestName)) return {};
  const std::string path = folder.path().string();
  if (folder.has(kOriginName)) {
    return bad_input(
        "{}: expected a whole bundle ({} and its files), found rows kept without theirs ({}), "
        "which `assay analyze`, `report`, `gate`, `portability` and `route` read",
        path, kManifestName, kOriginName);
  }
  if (folder.has("analysis/findings.json")) {
    return bad_input(
        "{}: expected a bundle with its rows ({} and PHASE/metrics.csv), found findings alone, "
        "which "
        "only `assay analyze` and `assay report` can use (--from-findings)",
        path, kManifestName);
  }
  return {};
}

// A sealed bundle must have as many rows as the run counted at its end.
Status check_row_count(const Bundle& bundle, const CommitLog& log) {
  const auto rows = static_cast<int64_t>(bundle.rows.size());
  if (rows != log.rows()) {
    return bad_input("{}: expected {} as committed, found {}", bundle.folder.string(),
                     counted(log.rows(), "row"), rows);
  }
  const Json& said = member(member(bundle.manifest, "completion"), "rows");
  if (!bundle.complete || !said.is_number_integer() || said == rows) return {};
  return bad_input("{}: expected {} as its manifest's completion says, found {}",
                   bundle.folder.string(), counted(said.get<int64_t>(), "row"), rows);
}

// Study and sittings, each file read once and held against the manifest.
Status read_heading(const Folder& folder, const ListedFiles& files, const CommitLog& log,
                    Bundle& bundle) {
  ASSAY_TRY(bundle.study_yaml, files.read(kStudyName));
  ASSAY_TRY(bundle.sittings, read_sittings(folder, bundle.manifest, log));
  for (size_t i = 0; i < bundle.sittings.size(); ++i) {
    ASSAY_CHECK(files.check(i == 0 ? kEnvironmentName : sitting_name(static_cast<int64_t>(i) + 1)));
  }
  bundle.environment = bundle.sittings.front().environment;
  for (const CommitRecord& record : log.records) bundle.unit_notes.push_back(record.note);
  return {};
}

// Reserves no more rows than the files can hold: a commit log may state any number.
void reserve_rows(const Folder& folder, const CommitLog& log, int64_t schema_version,
                  Bundle& bundle) {
  uint64_t most_rows = 0;  // each takes at least its commas and its line end
  for (Phase phase : kPhases) {
    const uint64_t bytes =
        std::min(log.committed_bytes(phase), size_of(folder, metrics_name(phase)));
    most_rows += bytes / row_columns(schema_version).size();
  }
  bundle.rows.reserve(std::min(most_rows, static_cast<uint64_t>(std::max<int64_t>(0, log.rows()))));
}

Status read_body(const Folder& folder, const ListedFiles& files, const CommitLog& log,
                 int64_t version, Bundle& bundle) {
  reserve_rows(folder, log, version, bundle);
  // Thousands of small files beside a few large ones: each half is about as long.
  Status cells;
  auto of_cells = std::async([&] { cells = read_cells(folder, log, files, bundle); });
  for (Phase phase : kPhases) {
    ASSAY_CHECK(read_rows(folder, log, files, phase, version, bundle));
  }
  ASSAY_CHECK(read_requests(folder, log, files, bundle));
  ASSAY_CHECK(check_row_count(bundle, log));
  if (!std::ranges::is_sorted(bundle.rows, {}, &Row::order_index)) {
    std::ranges::stable_sort(bundle.rows, {}, &Row::order_index);
  }
  of_cells.get();
  ASSAY_CHECK(std::move(cells));
  judge_rows(bundle);
  return {};
}

}  // namespace

Result<std::string> read_trace(const Bundle& bundle, const std::string& cell_id) {
  ASSAY_TRY(const Folder folder, Folder::open(bundle.folder));
  ASSAY_TRY(FileEntries listed,
            file_entries_from_json(bundle.manifest, folder.path_of(kManifestName).string()));
  const ListedFiles files(folder, std::move(listed), bundle.complete);
  return files.read(fmt::format("cells/{}/trace.json.gz", cell_id));
}

Result<Bundle> read_bundle(const fs::path& folder) {
  std::vector<CommittedUnit> units;
  return read_bundle(folder, units);
}

Result<Bundle> read_bundle(const fs::path& path, std::vector<CommittedUnit>& units) {
  Bundle bundle;
  bundle.folder = path;
  ASSAY_TRY(const Folder folder, Folder::open(path));
  ASSAY_CHECK(check_has_manifest(folder));
  const std::string manifest_name = folder.path_of(kManifestName).string();
  ASSAY_TRY(const std::string text, folder.read(kManifestName));
  ASSAY_TRY(bundle.manifest, parse_manifest(text, manifest_name));
  ASSAY_TRY(bundle.complete, json_bool(bundle.manifest, "complete", manifest_name));
  ASSAY_TRY(const int64_t version, json_int(bundle.manifest, "schema_version", manifest_name));
  ASSAY_TRY(FileEntries listed, file_entries_from_json(bundle.manifest, manifest_name));
  const ListedFiles files(folder, std::move(listed), bundle.complete);
  ASSAY_TRY(const std::string plan_hash,
            json_string(bundle.manifest, "plan_sha256", manifest_name));
  ASSAY_TRY(const std::string records,
            bundle.complete ? files.read(kCommitsName) : folder.read(kCommitsName));
  ASSAY_TRY(const CommitLog log,
            parse_commit_log(records, plan_hash, folder.path_of(kCommitsName).string()));
  if (bundle.complete) {
    const auto against = commit_disagreements(files.entries(), log, version);
    if (!against.empty()) {
      return bad_input("{}", folder.path_of(against.front().message).string());
    }
  }
  ASSAY_CHECK(read_heading(folder, files, log, bundle));
  ASSAY_CHECK(read_body(folder, files, log, version, bundle));
  for (const size_t place : log.units) {
    units.push_back({*log.records[place].unit, log.records[place].rows});
  }
  return bundle;
}

}  // namespace assay
