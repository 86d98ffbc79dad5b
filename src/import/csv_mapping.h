// A mapping file: the field and the unit of each column of a CSV, other facts about all rows, and
// the meaning of the words in a status column.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/row.h"
#include "base/result.h"
#include "import/imported.h"
#include "import/run_facts.h"

namespace assay {

// Columns that aren't conditions. Exactly one of `latency`, `latencies` (an array a row, in its
// order) and `tokens_per_s` is mapped.
enum class CsvFigure {
  kLatency,
  kLatencies,
  kTokensPerS,
  kTtft,
  kDeviceTime,
  kTokens,
  kStatus,
  kError,
  kPromptId,
  kStartedAt,
  kSeries,  // rows of one value are samples of one run
};
inline constexpr size_t kCsvFigures = static_cast<size_t>(CsvFigure::kSeries) + 1;
std::string_view csv_figure_name(CsvFigure figure);

// The mapping's statement about the compiler of an arm.
struct CsvCompilerRule {
  std::string arm;
  CompilerWord word;
};

struct CsvMapping {
  std::string text;  // of the file
  std::string name;
  std::string baseline;
  std::string order;  // empty: unknown
  char delimiter = ',';
  bool warmed_up = false;
  std::map<ImportField, std::string> field_columns;
  std::map<CsvFigure, std::string> figure_columns;
  std::map<CsvFigure, double> to_ms;  // factor of each time that is mapped
  std::map<ImportField, std::string> constants;
  std::map<ImportField, std::map<std::string, std::string>> words;  // the file's word to ours
  std::map<std::string, RowStatus> statuses;
  std::optional<RowStatus> other_status;
  std::vector<CsvCompilerRule> compiler;
  std::vector<std::string> settings;  // columns that are settings, under their own names
  std::vector<std::string> ignored;   // columns that say nothing about a run
};

// `object` names the text in errors. bad_input: no YAML, an unknown key or field, a time without a
// unit, no latency, a word that isn't one of assay's, a compiler that is to be proven by a mapping.
Result<CsvMapping> parse_csv_mapping(std::string_view text, std::string_view object);

}  // namespace assay
