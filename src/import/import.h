// Other tools' result files as a bundle: detects their format and reads all of them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/records/enum_words.h"
#include "import/csv_mapping.h"
#include "import/imported.h"
#include "import/source_text.h"

namespace assay {

enum class ImportFormat {
  kLlamaBench,
  kVllmServe,
  kVllmLatency,
  kVllmThroughput,
  kGuidellm,
  kAiperf,
  kOptimum,
  kNvbench,
  kPytestBenchmark,
  kHyperfine,
  kCriterion,
  kMappedCsv,
};
// Its word for --format, as "vllm-serve".
std::string_view import_format_name(ImportFormat format);
const std::vector<std::string>& import_format_names();
std::optional<ImportFormat> parse_import_format(std::string_view name);

// The format that the content shows; absent: no format has such content.
std::optional<ImportFormat> detect_format(const SourceText& source);

struct ImportRequest {
  std::vector<std::filesystem::path> files;      // or folders of criterion's
  std::optional<ImportFormat> format;            // absent: detected
  std::optional<std::filesystem::path> mapping;  // of a CSV
  std::vector<std::string> asserted;             // FIELD=VALUE, not stated by the files
};

// Reads all files, which have one format. bad_input, one line: a file that can't be read or is of
// no known format, files of several formats, a mapping for another format, damage, a statement that
// contradicts a file.
Result<Imported> read_imported(const ImportRequest& request);
// The same for sources in memory.
Result<Imported> import_sources(std::span<const SourceText> sources,
                                std::optional<ImportFormat> format, const CsvMapping* mapping);

}  // namespace assay
