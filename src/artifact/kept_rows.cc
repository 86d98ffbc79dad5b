// Rows that are kept without their bundle.
#include <algorithm>

#include "artifact/bundle.h"
#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "artifact/metrics_file.h"
#include "artifact/read_bundle.h"
#include "artifact/row_rule.h"
#include "base/clock.h"
#include "base/tables/csv.h"
#include "base/text/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// The schema version whose columns the first line names. Any other line: the newest, whose reader
// reports the difference.
int64_t version_of(std::string_view text, const std::string& object) {
  CsvReader reader(text, object);
  const auto header = reader.done() ? std::vector<std::string>() : reader.next();
  for (int64_t version = kOldestBundleSchemaVersion; version < kBundleSchemaVersion; ++version) {
    if (header && std::ranges::equal(*header, row_columns(version))) return version;
  }
  return kBundleSchemaVersion;
}

Status read_phase(const Folder& folder, Phase phase, std::vector<Row>& rows) {
  const std::string name = metrics_name(phase);
  if (!folder.has(name)) return {};
  const std::string path = folder.path_of(name).string();
  ASSAY_TRY(const std::string text, folder.read(name, max_metrics_bytes()));
  Status status;
  ASSAY_CHECK(for_each_row(text, phase, version_of(text, path), path, [&](Result<Row> row) {
    if (row) {
      rows.push_back(*std::move(row));
    } else if (status) {
      status = std::unexpected(std::move(row).error());
    }
  }));
  return status;
}

Status read_kept_requests(const Folder& folder, Bundle& bundle) {
  if (!folder.has(kRequestsName)) return {};
  ASSAY_TRY(const std::string requests, folder.read(kRequestsName, max_metrics_bytes()));
  std::string times;
  if (folder.has(kTokenTimesName)) {
    ASSAY_TRY(times, folder.read(kTokenTimesName, max_metrics_bytes()));
  }
  ASSAY_TRY(bundle.requests,
            parse_requests(requests, times, folder.path_of(kRequestsName).string()));
  return {};
}

// The member "started_at", a time as a manifest has it.
Result<std::string> start_of(const Json& json, const std::string& object) {
  ASSAY_TRY(std::string text, json_string(json, "started_at", object));
  if (is_utc(text)) return text;
  return bad_input("{}: expected a time such as 2026-11-22T07:52:33Z at \"started_at\", found {}",
                   object, quoted_excerpt(text));
}

// The member "sittings" of origin.json; without it there was one.
Status read_origin_sittings(const Json& origin, const std::string& object, Bundle& bundle) {
  const auto listed = origin.find("sittings");
  if (listed == origin.end()) {
    Sitting only;
    ASSAY_TRY(only.started_at, start_of(origin, object));
    only.environment = Json::object();
    bundle.sittings.push_back(std::move(only));
    return {};
  }
  if (!listed->is_array() || listed->empty()) {
    return bad_input("{}: expected a list at \"sittings\", found none", object);
  }
  const auto rows = static_cast<int64_t>(bundle.rows.size());
  for (const Json& json : *listed) {
    Sitting sitting;
    ASSAY_TRY(sitting.started_at, start_of(json, object));
    ASSAY_TRY(sitting.rows_before, json_int(json, "rows_before", object));
    const int64_t least = bundle.sittings.empty() ? 0 : bundle.sittings.back().rows_before;
    const int64_t most = bundle.sittings.empty() ? 0 : rows;
    if (sitting.rows_before < least || sitting.rows_before > most) {
      return bad_input("{}: expected {} to {} rows before a sitting, found {}", object, least, most,
                       sitting.rows_before);
    }
    const auto environment = json.find("environment");
    sitting.environment = environment == json.end() ? Json::object() : *environment;
    bundle.sittings.push_back(std::move(sitting));
  }
  return {};
}

// Reads the members "parity" and "evidence" of origin.json: facts from the cells' files.
Status read_origin_cells(const Json& origin, const std::string& object, Bundle& bundle) {
  for (const char* name : {"parity", "evidence"}) {
    const auto listed = origin.find(name);
    if (listed == origin.end()) continue;
    if (!listed->is_object()) {
      return bad_input("{}: expected an object at \"{}\", found none", object, name);
    }
    for (const auto& [cell, record] : listed->items()) {
      if (std::string_view(name) == "parity") {
        bundle.parity[cell] = record;
      } else {
        ASSAY_TRY(bundle.evidence[cell], evidence_from_json(record, object));
      }
    }
  }
  return {};
}

}  // namespace

Result<Bundle> read_kept_rows(const fs::path& path) {
  Bundle bundle;
  bundle.folder = path;
  bundle.rows_alone = true;
  ASSAY_TRY(const Folder folder, Folder::open(path));
  const std::string object = folder.path_of(kOriginName).string();
  ASSAY_TRY(const std::string text, folder.read(kOriginName));
  ASSAY_TRY(bundle.manifest, parse_json(text, object));
  ASSAY_TRY(bundle.complete, json_bool(bundle.manifest, "complete", object));
  for (const Phase phase : kPhases) ASSAY_CHECK(read_phase(folder, phase, bundle.rows));
  ASSAY_CHECK(read_kept_requests(folder, bundle));
  if (bundle.rows.empty()) {
    return bad_input("{}: expected rows in PHASE/metrics.csv, found none", path.string());
  }
  std::ranges::stable_sort(bundle.rows, {}, &Row::order_index);
  ASSAY_CHECK(read_origin_sittings(bundle.manifest, object, bundle));
  ASSAY_CHECK(read_origin_cells(bundle.manifest, object, bundle));
  bundle.environment = bundle.sittings.front().environment;
  for (size_t i = 0; i < bundle.rows.size(); ++i) {
    Row& row = bundle.rows[i];
    if (row.status != RowStatus::kOk) continue;
    if (mark_false_success(row, {})) {
      bundle.false_oks.push_back(i);
    } else {
      ++bundle.speed_unjudged;
    }
  }
  return bundle;
}

Result<Bundle> read_bundle_or_rows(const fs::path& folder) {
  std::vector<CommittedUnit> units;
  return read_bundle_or_rows(folder, units);
}

Result<Bundle> read_bundle_or_rows(const fs::path& folder, std::vector<CommittedUnit>& units) {
  std::error_code unknown;  // the reader of the folder reports it
  const bool rows_alone =
      fs::exists(folder / kOriginName, unknown) && !fs::exists(folder / kManifestName, unknown);
  return rows_alone ? read_kept_rows(folder) : read_bundle(folder, units);
}

}  // namespace assay
