// Names in a column of a table that may be too narrow for them.
#pragma once

#include <string>
#include <vector>

namespace assay {

// A column of names, as narrow as it is told to be: a name that is wider goes on in further lines,
// or where it would take more than `lines` of them, is shortened.
class NameColumn {
 public:
  explicit NameColumn(size_t lines) : most_lines_(lines) {}

  void add(const std::string& name);
  void narrow();                           // by one column
  size_t width() const { return width_; }  // of the names
  size_t most_lines() const { return most_lines_; }
  // True if no name has to be shortened at this width, in columns.
  bool whole_at(size_t columns) const;
  // The lines of a name that was added, the last one with its mark.
  std::vector<std::string> of(const std::string& name, const std::string& mark = "") const;

 private:
  size_t most_lines_;
  std::vector<std::string> names_;  // different ones, whole
  std::vector<std::vector<std::string>> shown_;
  size_t width_ = 0;
};

}  // namespace assay
