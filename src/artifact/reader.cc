// Reads a bundle into memory, whether its run has ended or not.
#include <sys/stat.h>

#include <algorithm>
#include <future>
#include <unordered_map>

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

// 0 where it can't be told.
uint64_t size_of(const Folder& folder, const std::string& name) {
  const auto file = folder.open_file(name);
  struct stat info {};
  return file && ::fstat(file->get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

// Files of a bundle, held against the hashes that its manifest has of them. Of a bundle whose run
// hasn't ended it has those of study and environments alone; the commits have those of cells.
class CheckedFiles {
 public:
  CheckedFiles(const Folder& folder, FileEntries listed, bool complete)
      : folder_(folder), listed_(std::move(listed)), complete_(complete) {}

  // The file's text: bad_input where it isn't what the manifest says, or where a sealed bundle's
  // doesn't list it.
  Result<std::string> read(const std::string& name) const {
    ASSAY_TRY(std::string text, folder_.read(name));
    const std::string path = folder_.path_of(name).string();
    const auto entry = listed_.find(name);
    if (entry == listed_.end()) {
      if (!complete_) return text;
      return bad_input("{}: expected a file that the manifest lists, found another", path);
    }
    if (text.size() != entry->second.size_bytes) {
      return bad_input("{}: expected {} bytes as the manifest lists, found {}", path,
                       entry->second.size_bytes, text.size());
    }
    if (const FileDigest found = file_entry(text); found != entry->second) {
      return bad_input("{}: expected sha256 {} as the manifest lists, found {}", path,
                       entry->second.sha256, found.sha256);
    }
    return text;
  }

  Result<Json> read_json(const std::string& name) const {
    ASSAY_TRY(const std::string text, read(name));
    return parse_json(text, folder_.path_of(name).string());
  }

 private:
  const Folder& folder_;
  FileEntries listed_;
  bool complete_;
};

// The committed rows, and whether their bytes are those that were committed: found out beside the
// parsing, for a large file takes as long to hash as to read.
Status read_rows(const Folder& folder, const CommitLog& log, Phase phase, int64_t schema_version,
                 Bundle& bundle) {
  const uint64_t committed = log.committed_bytes(phase);
  if (committed == 0) return {};
  const std::string name = metrics_name(phase);
  const std::string path = folder.path_of(name).string();
  ASSAY_TRY(const std::string text, folder.read(name, max_metrics_bytes()));
  Status intact;
  auto hashing = std::async([&] { intact = check_committed_bytes(log, name, text, path); });
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

Status read_cells(const Folder& folder, const CheckedFiles& checked, Bundle& bundle) {
  ASSAY_TRY(const auto files, list_bundle_files(folder));
  for (const std::string& name : files) {
    const fs::path within(name);
    if (!name.starts_with("cells/")) continue;
    const bool evidence = within.filename() == "evidence.json";
    if (!evidence && within.filename() != "parity.json") continue;
    const std::string cell = within.parent_path().filename().string();
    ASSAY_TRY(Json json, checked.read_json(name));
    if (evidence) {
      ASSAY_TRY(bundle.evidence[cell], evidence_from_json(json, folder.path_of(name).string()));
    } else {
      bundle.parity[cell] = std::move(json);
    }
  }
  return {};
}

// What is asked of a cell's rows of one length, looked up once: rows of one cell share their text.
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

}  // namespace

Result<std::string> read_trace(const Bundle& bundle, const std::string& cell_id) {
  ASSAY_TRY(const Folder folder, Folder::open(bundle.folder));
  ASSAY_TRY(FileEntries listed,
            file_entries_from_json(bundle.manifest, folder.path_of(kManifestName).string()));
  const CheckedFiles checked(folder, std::move(listed), bundle.complete);
  return checked.read(fmt::format("cells/{}/trace.json.gz", cell_id));
}

Result<Bundle> read_bundle(const fs::path& path) {
  Bundle bundle;
  bundle.folder = path;
  ASSAY_TRY(const Folder folder, Folder::open(path));
  const std::string manifest_name = folder.path_of(kManifestName).string();
  if (!folder.has(kManifestName) && folder.has(kOriginName)) {
    return bad_input(
        "{}: expected a whole bundle ({} and its files), found rows kept without theirs ({}), "
        "which `assay analyze`, `report`, `gate`, `portability` and `route` read",
        path.string(), kManifestName, kOriginName);
  }
  if (!folder.has(kManifestName) && folder.has("analysis/findings.json")) {
    return bad_input(
        "{}: expected a bundle with its rows ({} and PHASE/metrics.csv), found findings alone, "
        "which "
        "only `assay analyze` and `assay report` can use (--from-findings)",
        path.string(), kManifestName);
  }
  ASSAY_TRY(const std::string text, folder.read(kManifestName));
  ASSAY_TRY(bundle.manifest, parse_manifest(text, manifest_name));
  ASSAY_TRY(bundle.complete, json_bool(bundle.manifest, "complete", manifest_name));
  ASSAY_TRY(const int64_t version, json_int(bundle.manifest, "schema_version", manifest_name));
  ASSAY_TRY(FileEntries listed, file_entries_from_json(bundle.manifest, manifest_name));
  const CheckedFiles checked(folder, std::move(listed), bundle.complete);
  ASSAY_TRY(bundle.study_yaml, checked.read(kStudyName));

  ASSAY_TRY(const std::string plan_hash,
            json_string(bundle.manifest, "plan_sha256", manifest_name));
  ASSAY_TRY(const std::string records, folder.read(kCommitsName));
  ASSAY_TRY(const CommitLog log,
            parse_commit_log(records, plan_hash, folder.path_of(kCommitsName).string()));
  ASSAY_TRY(bundle.sittings, read_sittings(folder, bundle.manifest, log));
  for (size_t i = 0; i < bundle.sittings.size(); ++i) {
    ASSAY_CHECK(
        checked.read(i == 0 ? kEnvironmentName : sitting_name(static_cast<int64_t>(i) + 1)));
  }
  bundle.environment = bundle.sittings.front().environment;
  for (const CommitRecord& record : log.records) bundle.unit_notes.push_back(record.note);
  uint64_t most_rows = 0;  // each takes at least its commas and its line end
  for (Phase phase : kPhases) {
    // Of what is there: a commit log may say anything.
    const uint64_t bytes =
        std::min(log.committed_bytes(phase), size_of(folder, metrics_name(phase)));
    most_rows += bytes / row_columns(version).size();
  }
  bundle.rows.reserve(std::min(most_rows, static_cast<uint64_t>(std::max<int64_t>(0, log.rows()))));
  // Thousands of small files beside a few large ones: each half is about as long.
  Status cells;
  auto of_cells = std::async([&] { cells = read_cells(folder, checked, bundle); });
  for (Phase phase : kPhases) ASSAY_CHECK(read_rows(folder, log, phase, version, bundle));
  if (static_cast<int64_t>(bundle.rows.size()) != log.rows()) {
    return bad_input("{}: expected {} as committed, found {}", path.string(),
                     counted(log.rows(), "row"), bundle.rows.size());
  }
  if (!std::ranges::is_sorted(bundle.rows, {}, &Row::order_index)) {
    std::ranges::stable_sort(bundle.rows, {}, &Row::order_index);
  }
  of_cells.get();
  ASSAY_CHECK(std::move(cells));
  judge_rows(bundle);
  return bundle;
}

}  // namespace assay
