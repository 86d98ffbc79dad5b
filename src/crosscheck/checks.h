// The checks that make up cross_check(), a file each.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/bundle.h"
#include "artifact/read_bundle.h"
#include "base/records/json.h"

namespace assay::crosscheck {

// The schema version whose plans, identities and evidence this program makes anew to hold a bundle
// against. Older ones are held against less.
inline constexpr int64_t kKnownVersion = 5;

// Problems, of one object no more than kMostOfObject by their words.
class Problems {
 public:
  static constexpr int64_t kMostOfObject = 5;

  void add(const std::string& object, std::string problem);
  // "expected EXPECTED, found FOUND" where they differ, both quoted.
  void hold(const std::string& object, std::string_view what, std::string_view expected,
            std::string_view found);
  // The problems, and for each object the number of those left out.
  std::vector<VerifyProblem> take() &&;

 private:
  std::vector<VerifyProblem> all_;
  std::map<std::string, int64_t> of_object_;
};

// A cell's rows, in their order. There is one at least.
struct CellRows {
  std::string id;
  std::vector<const Row*> rows;
};

// "prefill/metrics.csv: cell c001, repetition 3"
std::string row_object(const Row& row);

// The bundle and its parts, which every check looks at.
struct Checked {
  const Bundle& bundle;
  std::span<const CommittedUnit> units;
  std::vector<CellRows> cells;
  bool imported = false;  // other tools' files are behind it, and no plan
  int64_t schema_version = 0;

  // True for a run (no import) that a current program wrote.
  bool is_known_run() const { return !imported && schema_version >= kKnownVersion; }
};

// study.yaml, the manifest's study, the plan's hash, and rows as the plan has them.
void check_study(const Checked& checked, Problems& problems);
// The identity, the environments, and the arms.
void check_identity(const Checked& checked, Problems& problems);
// Rows beside the evidence of their cells.
void check_evidence(const Checked& checked, Problems& problems);
// Parity records by themselves, and beside their cells.
void check_parity(const Checked& checked, Problems& problems);
// Starts of the rows, the sittings and the run; the completion's counts.
void check_course(const Checked& checked, Problems& problems);

}  // namespace assay::crosscheck
