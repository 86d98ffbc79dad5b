// Helpers of the import's tests: sources in memory, and the rows made of them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/import.h"
#include "import/import_bundle.h"

namespace assay {

inline Result<Imported> import_text(const std::string& text, const std::string& mapping = "") {
  auto source = parse_source(text, "file");
  if (!source) return std::unexpected(source.error());
  if (mapping.empty()) return import_sources(std::span(&*source, 1), std::nullopt, nullptr);
  auto parsed = parse_csv_mapping(mapping, "map.yaml");
  if (!parsed) return std::unexpected(parsed.error());
  return import_sources(std::span(&*source, 1), std::nullopt, &*parsed);
}

inline Result<ImportedRows> rows_of_text(const std::string& text, const std::string& mapping = "",
                                         FirstSamples first = FirstSamples::kByFile) {
  auto imported = import_text(text, mapping);
  if (!imported) return std::unexpected(imported.error());
  return make_rows(*imported, first);
}

// The error of a text that can't be imported; "read" if it can.
inline std::string import_refusal(const std::string& text, const std::string& mapping = "") {
  const auto rows = rows_of_text(text, mapping);
  return rows ? "read" : rows.error().message;
}

inline std::vector<std::string> statuses_of(const ImportedRows& made) {
  std::vector<std::string> statuses;
  for (const Row& row : made.rows) {
    statuses.push_back(std::string(row_status_name(row.status)) +
                       (row.error_class.empty() ? "" : " " + row.error_class.str()));
  }
  return statuses;
}

}  // namespace assay
