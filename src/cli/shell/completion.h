// Scripts that complete the program's command lines in a shell.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace assay::cli {

// Each completes subcommands, options and their words; and file names where the tree says that a
// value is one.
std::string bash_completion(const TreeCommand& root);
std::string zsh_completion(const TreeCommand& root);
std::string fish_completion(const TreeCommand& root);

}  // namespace assay::cli
