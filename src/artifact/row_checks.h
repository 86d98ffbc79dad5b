// verify's demands on the rows of a bundle, one by one and beside one another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "artifact/bundle.h"
#include "artifact/row.h"
#include "base/records/phase.h"

namespace assay {

// Numbers that mostly come in ascending order, of which there may be millions: 8 bytes each.
class SeenNumbers {
 public:
  // False: it was there.
  bool add(int64_t number);

 private:
  std::vector<int64_t> ascending_;
  std::set<int64_t> others_;  // each below the last of the ascending ones
};

// Takes the rows of each phase in the order of their file. The first kMostRowProblems problems of a
// file are kept and the others are counted.
class RowChecks {
 public:
  static constexpr size_t kMostRowProblems = 20;

  // `heading`: a bundle whose rows aren't read. It has to outlive this.
  explicit RowChecks(const Bundle& heading) : heading_(heading) {}

  // A row as its file has it: one that says ok and can't be is still ok here.
  void add(const Row& row);
  // A record that is no row.
  void add_unreadable(Phase phase, const Error& error);

  int64_t rows() const { return rows_; }
  // Sorted by phase, then by row.
  std::vector<VerifyProblem> problems() const;

 private:
  struct OfFile {
    int64_t rows = 0;
    size_t found = 0;
    std::vector<VerifyProblem> problems = {};
  };
  struct OfCell {
    const Evidence* evidence = nullptr;  // null: the cell has none
    SeenNumbers repetitions = {};
    int64_t processes = 0;  // so far
  };
  static void report(OfFile& file, const VerifyProblem& problem);
  static std::optional<std::string> fault_problem(const Row& row, const OfCell& cell);
  // A cell's processes are numbered in the order in which they came.
  static std::optional<std::string> process_problem(const Row& row, OfCell& cell);
  OfCell& cell_of(const Row& row);

  const Bundle& heading_;
  std::map<Phase, OfFile> files_;
  int64_t rows_ = 0;
  std::unordered_map<std::string, OfCell> cells_;  // by cell_id
};

// "OBJECT: expected ..." as object and problem.
VerifyProblem problem_of(const Error& error);

}  // namespace assay
