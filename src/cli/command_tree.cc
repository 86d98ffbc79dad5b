// Reads CLI11's tree.
#include "cli/command_tree.h"

#include <algorithm>
#include <array>

#include "base/text/text.h"
#include "cli/option_types.h"

namespace assay::cli {
namespace {

TreeOption tree_option(CLI::Option& option) {
  TreeOption found;
  found.positional = option.get_positional();
  if (found.positional) {
    found.names = {option.get_name(true, false)};
  } else {
    for (const std::string& name : option.get_snames()) found.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) found.names.push_back("--" + name);
  }
  found.flag = option.get_items_expected_max() == 0;
  found.required = option.get_required();
  found.several = found.positional && option.get_items_expected_max() > 1;
  if (!found.flag) found.type = option.get_type_name();
  found.words = words_taken(option);
  found.description = option.get_description();
  return found;
}

TreeCommand tree_command(CLI::App& app, const std::string& above) {
  TreeCommand found{.name = app.get_name(),
                    .path = above.empty() ? app.get_name() : above + " " + app.get_name(),
                    .summary = app.get_description(),
                    .footer = app.get_footer(),
                    .options = {},
                    .commands = {}};
  for (CLI::Option* option : app.get_options()) {
    found.options.push_back(tree_option(*option));
  }
  for (CLI::App* below : app.get_subcommands({})) {
    // Groups of options have no name.
    if (below->get_name().empty()) {
      for (CLI::Option* option : below->get_options()) {
        found.options.push_back(tree_option(*option));
      }
    } else {
      found.commands.push_back(tree_command(*below, found.path));
    }
  }
  return found;
}

void add_all(const TreeCommand& command, std::vector<const TreeCommand*>& all) {
  all.push_back(&command);
  for (const TreeCommand& below : command.commands) add_all(below, all);
}

}  // namespace

bool TreeOption::takes_path() const {
  static constexpr std::array kPaths = {"BUNDLE", "DIR",  "STUDY", "FILE",
                                        "MODEL",  "BASE", "CAND",  "TABLE"};
  return std::ranges::any_of(
      kPaths, [&](const char* path) { return type.find(path) != std::string::npos; });
}

TreeCommand command_tree(CLI::App& app) {
  return tree_command(app, "");
}

std::vector<const TreeCommand*> all_commands(const TreeCommand& root) {
  std::vector<const TreeCommand*> all;
  add_all(root, all);
  return all;
}

}  // namespace assay::cli
