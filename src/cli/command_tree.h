// The program's commands and options as plain data, for help, completion and manual pages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace assay::cli {

// An option, a flag or a positional argument.
struct TreeOption {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its one name
  bool positional = false;
  bool flag = false;  // takes no value
  bool required = false;
  bool several = false;            // of a positional: it takes more than one value
  std::string type;                // "BUNDLE", "N,..."
  std::vector<std::string> words;  // all values that it takes; empty: any text
  std::string description;

  // True if its value is the name of a file or folder.
  bool takes_path() const;
};

struct TreeCommand {
  std::string name;  // "assay", "run"
  std::string path;  // "assay run"
  std::string summary;
  std::string footer;  // printed by help behind the options; may be empty
  std::vector<TreeOption> options;
  std::vector<TreeCommand> commands;
};

TreeCommand command_tree(CLI::App& app);

// A command and all below it, itself first.
std::vector<const TreeCommand*> all_commands(const TreeCommand& root);

}  // namespace assay::cli
