// A wide table of things that have much in common, for a narrow terminal.
#pragma once

#include <cstddef>

#include "base/table.h"

namespace assay::cli {

// The table as it is if its lines fit so many columns. Else what all rows share stands in its title
// ("Cells, each with phase prefill, batch 1"), and of the ids in its first column their beginning
// up to the first "-", where that tells them apart: "c012" of "c012-eager-gpt2-25m-...".
Table fitted(Table table, size_t columns);

}  // namespace assay::cli
