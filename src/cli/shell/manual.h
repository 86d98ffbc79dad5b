// Manual pages.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace assay::cli {

// In roff's man macros, section 1. The page of the program lists its commands; one of a command has
// its options, and those of the commands below it.
std::string manual_page(const TreeCommand& command);

// "assay-model", of `assay model`.
std::string manual_name(const TreeCommand& command);

}  // namespace assay::cli
