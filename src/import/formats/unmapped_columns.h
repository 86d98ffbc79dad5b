// Columns of a CSV that its mapping doesn't name: one that has the same value in all rows of an arm
// is a setting of that arm.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/imported.h"

namespace assay {

class UnmappedColumns {
 public:
  // `mapped` are places in the header.
  UnmappedColumns(const std::vector<std::string>& header, const std::vector<size_t>& mapped);

  void add_row(const std::string& arm, std::span<const std::string_view> fields);
  // States the settings of a run of this arm.
  void state(const std::string& arm, ImportedRun& run) const;
  // The names of those that are no setting of some arm: their values differ between its rows, or it
  // has one row, which can't show that they don't.
  std::vector<std::string> unused() const;

 private:
  struct Column {
    std::string name;
    size_t place;
  };
  struct Seen {
    size_t rows = 0;
    std::vector<std::string> values;  // of the first row, by column
    std::vector<bool> differ;
  };

  bool is_setting(const Seen& seen, size_t column) const {
    return seen.rows > 1 && !seen.differ[column];
  }

  std::vector<Column> columns_;
  std::map<std::string, Seen> arms_;
};

}  // namespace assay
