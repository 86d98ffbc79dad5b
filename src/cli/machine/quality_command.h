// `assay model quality`.
#pragma once

#include "cli/command.h"

namespace assay::cli {

void add_quality(CLI::App& model, Selected& selected);

}  // namespace assay::cli
