// A run's time left, by the time that it has taken so far: rows by their cost, starts apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace assay {

// The first row of a process comes after it has started, loaded and compiled. That takes up to a
// thousand times as long as a row, so it mustn't be spread over the rows that follow. `cost` of a
// row: on any scale that weighs cells against one another.
class TimeLeft {
 public:
  // Adds a unit that is to come, or drops one that won't: `rows` of a cell, at `cost` each. It
  // `starts` if its first row is the first of the cell in a process.
  void plan(size_t cell, bool starts, int64_t rows, double cost);
  void drop(size_t cell, bool starts, int64_t rows, double cost);

  // A row is done, `seconds` after the one before it.
  void row(size_t cell, bool starts, double cost, double seconds);

  // Absent before the first row. A start takes as long as the last one of its cell, or if there was
  // none as the mean of all cells'; without any, starts count as rows.
  std::optional<double> seconds() const;

 private:
  struct Starts {
    int64_t left = 0;
    std::optional<double> last_s;
  };
  std::map<size_t, Starts> starts_;  // by cell
  double cost_left_ = 0;
  double cost_done_ = 0;  // of rows that started nothing
  double seconds_done_ = 0;
};

}  // namespace assay
