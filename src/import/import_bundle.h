// The one writer: imported runs to a sealed bundle, whose identity names the facts the files lack.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "artifact/bundle.h"
#include "base/files/folder.h"
#include "import/import_rows.h"
#include "import/imported.h"

namespace assay {

struct ImportOptions {
  FirstSamples first = FirstSamples::kByFile;
  std::string name;      // of the study; empty: the mapping's, else the format's
  std::string baseline;  // an arm; empty: the mapping's, else the first that claims no compiler
  std::string assay_version;
  int64_t now_ns = 0;  // of the import
};

struct ImportSummary {
  int64_t rows = 0;
  std::map<RowStatus, int64_t> rows_by_status;
  std::map<std::string, int64_t> lost_by_class;
  int64_t cells = 0;
  std::vector<std::string> arms;  // the baseline first
  std::set<std::string> unknown;  // fields that no file states for some arm
  int64_t cold = 0;
  int64_t means = 0;
  std::vector<std::string> warnings;
};

// Makes the folder (BundleWriter::create). bad_input: the errors of make_rows(), a baseline that is
// no arm. Nothing is left behind if the rows can't be made.
Result<ImportSummary> write_imported(const Imported& imported, const ImportOptions& options,
                                     FileSystem& files, const std::filesystem::path& folder);

// The parts, for tests: the header of the bundle.
BundleHeader import_header(const Imported& imported, const ImportedRows& rows,
                           const ImportOptions& options);

}  // namespace assay
