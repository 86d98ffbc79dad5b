// A table of published figures, as CSV or Markdown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stats/audit/audit.h"

namespace assay::stats {

struct PublishedTable {
  struct Row {
    std::string label;  // the column `label`; may be empty
    size_t line = 0;
    PublishedRow figures;
  };
  std::vector<Row> rows;
};

// A header of column names, then a row a line. Columns are `label`, those of figure_columns(),
// pair_columns() and convention_axes(), each at most once; an empty field or a dash is a figure
// that wasn't published. Numbers are read as parse_printed() says, lists have ";" between them.
// - CSV: a byte order mark and lines that begin with "#" are passed over.
// - Markdown: every table of the text with a column that is known; the text around is passed over.
//
// Errors name `object`, line and column: unknown or repeated columns, rows of another length,
// fields that aren't numbers, figures out of their range (n a whole number of at least 1, ...), a
// bound ("<") of a figure that isn't a claim, lists of different lengths, a convention that isn't
// known, and a table without any claim.
Result<PublishedTable> parse_published_table(std::string_view text, const std::string& object);

// A table to begin with, as CSV: the meaning of every column, in comments, and one filled row.
std::string published_table_template();

}  // namespace assay::stats
