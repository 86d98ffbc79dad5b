// A wide table of things that have much in common, for a narrow terminal.
#pragma once

#include <cstddef>

#include "base/tables/table.h"

namespace assay::cli {

// The table as it is if its lines fit so many columns. Else the values that all rows share go into
// its title ("Cells, each with phase prefill, batch 1"), and the ids in its first column are cut at
// the first "-" if that still tells them apart: "c012" of "c012-eager-gpt2-25m-...".
Table fitted(Table table, size_t columns);

}  // namespace assay::cli
