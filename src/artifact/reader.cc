// Reads a bundle into memory, whether its run has ended or not.
#include <algorithm>
#include <thread>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "artifact/metrics_file.h"
#include "artifact/sittings.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

Status read_rows(const CommitLog& log, Phase phase, int64_t schema_version, Bundle& bundle) {
  const uint64_t committed = log.committed_bytes(phase);
  if (committed == 0) return {};
  const fs::path path = bundle.folder / metrics_name(phase);
  ASSAY_TRY(const std::string text, read_file(path));
  if (text.size() < committed) {
    return bad_input("{}: expected {} committed bytes, found {}", path.string(), committed,
                     text.size());
  }
  Status status;
  ASSAY_CHECK(for_each_row(std::string_view(text).substr(0, committed), phase, schema_version,
                           path.string(), [&](Result<Row> row) {
                             if (row) {
                               bundle.rows.push_back(*std::move(row));
                             } else if (status) {
                               status = std::unexpected(std::move(row).error());
                             }
                           }));
  return status;
}

Status read_cells(Bundle& bundle) {
  ASSAY_TRY(const auto files, list_bundle_files(bundle.folder));
  for (const auto& [name, path] : files) {
    const fs::path within(name);
    if (!name.starts_with("cells/")) continue;
    const std::string cell_id = within.parent_path().filename().string();
    if (within.filename() == "evidence.json") {
      ASSAY_TRY(bundle.evidence[cell_id], read_json_file(path));
    } else if (within.filename() == "parity.json") {
      ASSAY_TRY(bundle.parity[cell_id], read_json_file(path));
    }
  }
  return {};
}

}  // namespace

Result<Bundle> read_bundle(const fs::path& folder) {
  Bundle bundle;
  bundle.folder = folder;
  const std::string manifest_name = (folder / kManifestName).string();
  ASSAY_TRY(const std::string text, read_file(folder / kManifestName));
  ASSAY_TRY(bundle.manifest, parse_manifest(text, manifest_name));
  ASSAY_TRY(bundle.complete, json_bool(bundle.manifest, "complete", manifest_name));
  ASSAY_TRY(const int64_t version, json_int(bundle.manifest, "schema_version", manifest_name));
  ASSAY_TRY(bundle.study_yaml, read_file(folder / kStudyName));

  ASSAY_TRY(const std::string plan_hash,
            json_string(bundle.manifest, "plan_sha256", manifest_name));
  const fs::path commits_path = folder / kCommitsName;
  ASSAY_TRY(const std::string records, read_file(commits_path));
  ASSAY_TRY(const CommitLog log, parse_commit_log(records, plan_hash, commits_path.string()));
  ASSAY_TRY(bundle.sittings, read_sittings(folder, bundle.manifest, log));
  bundle.environment = bundle.sittings.front().environment;
  uint64_t most_rows = 0;  // each takes at least its commas and its line end
  for (Phase phase : kPhases) {
    most_rows += log.committed_bytes(phase) / row_columns(version).size();
  }
  bundle.rows.reserve(std::min(most_rows, static_cast<uint64_t>(std::max<int64_t>(0, log.rows()))));
  // Thousands of small files beside a few large ones: each half is about as long.
  Status cells;
  std::jthread of_cells([&] { cells = read_cells(bundle); });
  for (Phase phase : kPhases) ASSAY_CHECK(read_rows(log, phase, version, bundle));
  if (static_cast<int64_t>(bundle.rows.size()) != log.rows()) {
    return bad_input("{}: expected {} rows as committed, found {}", folder.string(), log.rows(),
                     bundle.rows.size());
  }
  if (!std::ranges::is_sorted(bundle.rows, {}, &Row::order_index)) {
    std::ranges::stable_sort(bundle.rows, {}, &Row::order_index);
  }
  of_cells.join();
  ASSAY_CHECK(std::move(cells));
  return bundle;
}

}  // namespace assay
