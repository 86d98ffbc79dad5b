// Rows, headers and a small run for the bundle's tests.
#include "artifact/fixture_test.h"

#include "artifact/commit_log.h"
#include "artifact/manifest.h"
#include "base/files/hash.h"
#include "base/tables/csv.h"

namespace assay {

Row test_row(int64_t order_index, Phase phase) {
  Row row;
  row.cell_id = fmt::format("c{}", phase_name(phase));
  row.backend = "native";
  row.arm = "eager";
  row.model = "m";
  row.dtype = "fp32";
  row.cache = "dynamic";
  row.compile_mode = "eager";
  row.padding = "none";
  row.phase = phase;
  row.scenario = "single_micro";
  row.prompt_id = "0";
  row.prompt_tokens = 10;
  row.padded_tokens = 10;
  row.new_tokens = phase == Phase::kPrefill ? 0 : 1;
  row.repetition = order_index;
  row.order_index = order_index;
  row.latency_ms = 1.0 + 0.1 * static_cast<double>(order_index);
  row.tokens = 1;
  row.started_at_ns = 1'700'000'000'000'000'000 + order_index;
  return row;
}

BundleHeader test_header() {
  BundleHeader header;
  header.study_yaml = "name: test\n";
  header.plan_hash = sha256_hex("plan");
  header.environment = {{"host", "here"}, {"cores", 2}};
  header.identity = {{"gpu", nullptr}, {"code", "abc"}};
  header.started_at_ns = 1'700'000'000'000'000'000;
  header.assay_version = "0.1.0";
  return header;
}

BundleHeader later_header() {
  BundleHeader header = test_header();
  header.environment["host"] = "elsewhere";
  header.started_at_ns += 3'600'000'000'000;
  return header;
}

Row unit_row(int64_t unit, int64_t i) {
  return test_row(unit * 2 + i, kPhases[unit % 3]);
}

Status write_unit(BundleWriter& writer, int64_t unit) {
  for (int64_t i = 0; i < 2; ++i) ASSAY_CHECK(writer.append(unit_row(unit, i)));
  const std::string cell = unit_row(unit, 0).cell_id.str();
  ASSAY_CHECK(writer.write_cell_json(cell, "evidence.json", {{"reported_by", unit}}));
  ASSAY_CHECK(writer.append_log(cell, fmt::format("unit {}\n", unit)));
  return writer.commit_unit(unit, {{"note", unit}});
}

Status finish_cells(BundleWriter& writer) {
  if (std::filesystem::exists(writer.folder() / "cells/cprefill/parity.json")) return {};
  ASSAY_CHECK(writer.write_cell_json("cprefill", "parity.json", {{"passed", true}}));
  return writer.commit_cells();
}

Status finish_run(BundleWriter& writer) {
  for (int64_t unit = 0; unit < kTestUnits; ++unit) {
    if (!writer.committed_units().contains(unit)) ASSAY_CHECK(write_unit(writer, unit));
  }
  ASSAY_CHECK(finish_cells(writer));
  return writer.seal({{"ended", "as planned"}});
}

Status write_older_version(const std::filesystem::path& folder, int columns_of, int version,
                           bool complete) {
  const BundleHeader header = test_header();
  const auto columns = row_columns(columns_of);
  std::string rows = csv_line({columns.begin(), columns.end()});
  for (int64_t i = 0; i < 3; ++i) {
    std::vector<std::string> fields = row_to_fields(test_row(i, Phase::kPrefill));
    fields.resize(columns.size());
    rows += csv_line(fields);
  }
  std::string chain = header.plan_hash;
  const CommitRecord record{
      0, 3, {{metrics_name(Phase::kPrefill), {rows.size(), sha256_hex(rows)}}}, nullptr};
  const std::map<std::string, std::string> files = {
      {kStudyName, header.study_yaml},
      {kEnvironmentName, to_json_text(header.environment)},
      {metrics_name(Phase::kPrefill), rows},
      {kCommitsName, commit_line(record, chain)}};
  std::filesystem::create_directories(folder / "prefill");
  FileEntries entries;
  for (const auto& [name, text] : files) {
    ASSAY_CHECK(write_file(folder / name, text));
    entries[name] = file_entry(text);
  }
  Json manifest = opening_manifest(header);
  manifest["schema_version"] = version;
  manifest["complete"] = complete;
  if (complete) manifest["files"] = file_entries_to_json(entries);
  return write_file(folder / kManifestName, manifest_text(manifest));
}

}  // namespace assay
