// A table of published figures, as CSV.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stats/audit.h"

namespace assay::stats {

struct PublishedTable {
  struct Row {
    std::string label;  // the column `label`; may be empty
    size_t line = 0;
    PublishedRow figures;
  };
  std::vector<Row> rows;
};

// A header line of column names (figure_columns() and `label`, each at most once), then a row a
// line; an empty field or "-" is a figure that wasn't published. Errors name `object`, line and
// column: unknown or repeated columns, rows of another length, what isn't a number, n that isn't a
// whole number of at least 1, a negative deviation, a confidence outside 0 to 100, a margin that
// isn't positive, a bound ("<") where it isn't a p, and a table without any claim.
Result<PublishedTable> parse_published_table(std::string_view text, const std::string& object);

}  // namespace assay::stats
