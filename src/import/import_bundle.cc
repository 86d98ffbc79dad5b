// Rows, evidence and the seal.
#include "import/import_bundle.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text/text.h"
#include "import/import_identity.h"

namespace assay {
namespace {

Evidence evidence_of(const ImportedCell& cell) {
  Evidence evidence;
  evidence.cell_id = cell.id;
  evidence.phase = cell.phase;
  evidence.requested.backend = cell.backend;
  evidence.requested.mode = cell.compile_mode;
  evidence.requested.cache = cell.cache;
  evidence.requested.dynamic = cell.dynamic;
  evidence.requested.dtype = cell.dtype;
  evidence.compiler_real = cell.compiler.verdict;
  evidence.reported = worker_report({{"compiler_real", compiler_real_name(cell.compiler.verdict)},
                                     {"reasons", {cell.compiler.reason}},
                                     {"imported", true}});
  evidence.failures = cell.failures;
  return evidence;
}

Status write_rows(const ImportedRows& made, BundleWriter& writer) {
  for (const Row& row : made.rows) ASSAY_CHECK(writer.append(row));
  for (const LoadedRequest& one : made.requests)
    ASSAY_CHECK(writer.append_request(one.cell_id, one.run, one.request));
  for (const ImportedCell& cell : made.cells) {
    ASSAY_CHECK(
        writer.write_cell_json(cell.id, "evidence.json", evidence_to_json(evidence_of(cell))));
    if (!cell.log.empty()) ASSAY_CHECK(writer.append_log(cell.id, cell.log));
  }
  return writer.commit_unit(0, {{"imported", true}});
}

// Bytes of the weights of each model, where all files agree on them.
Json weight_bytes_of(const Imported& imported) {
  std::map<std::string, std::set<int64_t>> found;
  const std::vector<RunNames> names = name_runs(imported);
  for (size_t i = 0; i < names.size(); ++i) {
    if (const auto bytes = imported.runs[i].weight_bytes) found[names[i].model].insert(*bytes);
  }
  Json weights = Json::object();
  for (const auto& [model, bytes] : found) {
    if (bytes.size() == 1) weights[model] = *bytes.begin();
  }
  return weights;
}

ImportSummary summarize(const ImportedRows& made, const BundleHeader& header) {
  ImportSummary summary;
  summary.rows = static_cast<int64_t>(made.rows.size());
  for (const Row& row : made.rows) {
    ++summary.rows_by_status[row.status];
    if (row.status != RowStatus::kOk) {
      ++summary.lost_by_class[fmt::format("{} ({})", row_status_name(row.status), row.error_class)];
    }
  }
  summary.cells = static_cast<int64_t>(made.cells.size());
  for (const Json& arm : header.study["arms"]) summary.arms.push_back(arm["name"]);
  for (const auto& [arm, fields] : made.unknown) {
    summary.unknown.insert(fields.begin(), fields.end());
  }
  summary.cold = made.cold;
  summary.means = made.means;
  for (const Json& warning : header.environment["warnings"]) summary.warnings.push_back(warning);
  return summary;
}

}  // namespace

Result<ImportSummary> write_imported(const Imported& imported, const ImportOptions& options,
                                     FileSystem& files, const std::filesystem::path& folder) {
  ASSAY_TRY(const ImportedRows made, make_rows(imported, options.first));
  ASSAY_CHECK(check_baseline(imported, made, options));
  const BundleHeader header = import_header(imported, made, options);
  ASSAY_TRY(BundleWriter writer, BundleWriter::create(files, folder, header));
  ASSAY_CHECK(write_rows(made, writer));
  const ImportSummary summary = summarize(made, header);
  ASSAY_CHECK(writer.seal({{"finished_at", format_utc(options.now_ns)},
                           {"finished_at_ns", options.now_ns},
                           {"model_sha256", Json::object()},
                           {"model_weight_bytes", weight_bytes_of(imported)},
                           {"rows", summary.rows},
                           {"rows_by_status", status_counts_to_json(summary.rows_by_status)}}));
  return summary;
}

}  // namespace assay
