// The header of an imported bundle: the identity as far as the files state it, and the names of
// the axes that they don't state.
#pragma once

#include "import/import_bundle.h"

namespace assay {

// bad_input: the baseline that options or mapping name is no arm.
Status check_baseline(const Imported& imported, const ImportedRows& made,
                      const ImportOptions& options);

}  // namespace assay
