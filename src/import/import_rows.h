// Imported runs as cells and rows: the conditions that the files state, stand-ins for the values
// that a row needs and they lack, and the one rule of rows that can't be ok (artifact/row_rule.h).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "artifact/evidence.h"
#include "artifact/row.h"
#include "import/imported.h"
#include "import/run_names.h"

namespace assay {

// Rule by which first samples count as cold.
enum class FirstSamples {
  kByFile,  // those of runs that the file doesn't call warmed up
  kCold,    // all
  kWarm,    // none
};

inline constexpr size_t kMostImportCells = 5000;

struct ImportedCell {
  std::string id;
  RunNames names;
  Phase phase = Phase::kE2eKv;
  std::string backend;
  std::string dtype;
  std::string quantization;
  std::string cache;
  std::string compile_mode;  // "compiled" where only a name or the mapping claims a compiler
  std::string dynamic;
  bool named_compiled = false;  // only the name claims one
  bool means = false;
  CompilerWord compiler;
  std::vector<EvidenceFailure> failures;
  std::string log;  // whole messages of lost calls
};

struct ImportedRows {
  std::vector<ImportedCell> cells;
  std::vector<Row> rows;                       // in the files' order, run by run
  std::vector<std::string> arms;               // as they first appear
  std::vector<LoadedRequest> requests;         // of the rows of phase load
  std::map<std::string, OfferedLoad> offered;  // to them, by scenario
  // Fields by arm that no file states for some of its runs.
  std::map<std::string, std::set<std::string>> unknown;
  // Columns that can't be empty, and the stand-in for each value that is unknown.
  std::map<std::string, std::string> stand_ins;
  int64_t cold = 0;
  int64_t means = 0;  // rows
  // Runs without a sample, by arm: they have no rows, and an arm of such runs alone is no arm.
  std::map<std::string, int64_t> empty_runs;
};

// bad_input: no samples, too many conditions, a cell with samples and means.
Result<ImportedRows> make_rows(const Imported& imported, FirstSamples first);

}  // namespace assay
